"""weft.xia against a running node. Which: WEFT_XIA_SOCKET; the program: WEFT."""

import os
import select
import subprocess
import sys
import unittest

from weft.xia import BadAddress, Closed, NoNode, Refused, Socket, TimedOut, emit, parse, path, tree

NODE = os.environ["WEFT_XIA_SOCKET"]
WEFT = os.environ["WEFT"]
ECHO = os.path.join(os.path.dirname(__file__), "../../../../examples/echo")
#: However busy the machine is, in seconds.
PATIENCE = 60.0
ID = "ab" * 20


class Addresses(unittest.TestCase):
    def test_texts_are_read_back(self):
        for text in [
            f"xdp-{ID}-0",
            f"hid-{ID}-1:xdp-{ID}-10",
            f"ad-{ID}-21:hid-{ID}-2:0x99-{ID}-210",
            f"zf-{ID}:xdp-{ID}-01",
        ]:
            self.assertEqual(emit(parse(text)), text)

    def test_one_xid_alone_is_an_address(self):
        self.assertEqual(parse(f"hid-{ID}"), parse(f"HID-{ID}-0"))
        self.assertEqual(parse(f"hid-{ID}").hex(), "00000011" + ID + "007f7f7f")

    def test_what_is_no_address_is_said(self):
        for text in ["", "xdp", "xdp-12", f"nothing-{ID}", f"xdp-{ID}-01234", ":".join([f"hid-{ID}-1"] * 10)]:
            with self.assertRaises(BadAddress):
                parse(text)
        for rows in [b"", b"x" * 27, b"x" * 28 * 10]:
            with self.assertRaises(BadAddress):
                emit(rows)
        self.assertTrue(emit(b"x" * 28).startswith("!"))

    def test_texts_do_not_end_at_a_nul(self):
        xid = f"hid-{ID}\0 and more"
        for build in [lambda: parse(xid), lambda: path(xid), lambda: tree(f"zf-{ID}\0"), lambda: Socket("x", xid)]:
            with self.assertRaisesRegex(BadAddress, "NUL"):
                build()
        with self.assertRaisesRegex(ValueError, "NUL"):
            Socket(NODE + "\0.other")

    def test_addresses_are_built(self):
        east, west = "zf-" + "80" * 20, "zf-" + "01" * 20
        self.assertEqual(tree(east, west), "zf-" + "81" * 20)
        self.assertEqual(path(tree(east, west), f"xdp-{ID}"), f"zf-{'81' * 20}-1:xdp-{ID}-0")
        for build in [lambda: tree(), lambda: tree(f"hid-{ID}"), lambda: path(), lambda: path("nothing")]:
            with self.assertRaises(BadAddress):
                build()


class Sockets(unittest.TestCase):
    def test_two_programs_exchange_datagrams(self):
        with Socket(NODE, timeout=PATIENCE) as here, Socket(NODE, "xdp", timeout=PATIENCE) as there:
            self.assertNotEqual(here.address, there.address)
            for data in [b"one", bytes(1400), bytes(60_000)]:
                here.send(data, there.address)
                self.assertEqual(there.recv(PATIENCE), (data, here.address))

    def test_a_datagram_to_nowhere_is_refused_and_the_socket_goes_on(self):
        with Socket(NODE, f"xdp-{ID}", timeout=PATIENCE) as socket:
            self.assertIn(f"xdp-{ID}", socket.address)
            socket.send(b"lost", f"hid-{ID}-1:xdp-{ID}-0")
            with self.assertRaises(Refused):
                socket.recv(PATIENCE)
            with self.assertRaises(TimedOut):
                socket.recv(0)
            socket.send(b"self", socket.address)
            self.assertEqual(socket.recv(float("inf")), (b"self", socket.address))

    def test_a_node_that_is_not_there_is_said(self):
        with self.assertRaisesRegex(NoNode, "weft run"):
            Socket(NODE + ".missing", timeout=PATIENCE)

    def test_a_hop_limit_is_a_number_of_hops(self):
        with Socket(NODE, timeout=PATIENCE) as socket:
            socket.hop_limit = 7
            for hops in [256, -1, 2**32 + 9]:
                with self.assertRaises(OSError):
                    socket.hop_limit = hops
            with self.assertRaises(TypeError):
                socket.hop_limit = 7.5
            self.assertEqual(socket.hop_limit, 7)

    def test_a_loop_of_ones_own_waits_for_the_descriptor(self):
        with Socket(NODE, timeout=PATIENCE) as here, Socket(NODE, timeout=PATIENCE) as there:
            self.assertNotEqual(here.fileno(), here.room_fileno())
            here.send(b"ready", there.address)
            while True:
                try:
                    data, _ = there.recv(0)
                    break
                except TimedOut:
                    select.select([there], [], [], PATIENCE)
            self.assertEqual(data, b"ready")

    def test_the_echo_pair_of_the_examples(self):
        server = subprocess.Popen(
            [sys.executable, os.path.join(ECHO, "echo_server.py"), NODE], stdout=subprocess.PIPE, text=True
        )
        try:
            address = server.stdout.readline().split()[-1]
            client = subprocess.run(
                [sys.executable, os.path.join(ECHO, "echo_client.py"), NODE, address],
                input="one\ntwo\n",
                capture_output=True,
                text=True,
            )
            self.assertEqual(client.stdout, f"one (from {address})\ntwo (from {address})\n", client.stderr)
            self.assertEqual(client.returncode, 0, client.stderr)
        finally:
            server.kill()
            server.wait()
            server.stdout.close()

    def test_an_address_belongs_to_one(self):
        with Socket(NODE, timeout=PATIENCE) as first:
            with self.assertRaises(Refused):
                Socket(NODE, first.address, timeout=PATIENCE)

    def test_the_tools_of_weft_are_answered(self):
        with Socket(NODE, timeout=PATIENCE) as socket:
            run = [WEFT, "xia", "cat", socket.address, "--run-dir", os.path.dirname(NODE)]
            tool = subprocess.Popen(run, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            try:
                tool.stdin.write(b"from the tool")
                tool.stdin.flush()
                data, source = socket.recv(PATIENCE)
                self.assertEqual(data, b"from the tool")
                socket.send(b"from Python", source)
                self.assertEqual(os.read(tool.stdout.fileno(), 100), b"from Python")
            finally:
                tool.kill()
                tool.wait()
                tool.stdin.close()
                tool.stdout.close()

    def test_the_example_of_the_handbook(self):
        chapter = os.path.join(os.path.dirname(__file__), "../../../../docs/src/xia/applications.md")
        with open(chapter, encoding="utf-8") as text:
            example = text.read().split("```python\n")[1].split("```")[0]
        tool = subprocess.Popen([sys.executable, "-c", example, NODE], stdout=subprocess.PIPE, text=True)
        try:
            address = tool.stdout.readline().split()[-1]
            with Socket(NODE, timeout=PATIENCE) as socket:
                socket.send(b"hello", address)
                self.assertEqual(socket.recv(PATIENCE)[0], b"HELLO")
        finally:
            tool.kill()
            tool.wait()
            tool.stdout.close()


class Restarts(unittest.TestCase):
    @unittest.skipUnless("WEFT_XIA_RESTART" in os.environ, "nobody restarts the node")
    def test_a_socket_is_bound_again_when_the_node_is_back(self):
        with Socket(NODE, timeout=PATIENCE) as socket:
            address = socket.address
            subprocess.run(os.environ["WEFT_XIA_RESTART"], shell=True, check=True)
            with self.assertRaises(Closed):
                socket.recv(PATIENCE)
            socket.reattach(PATIENCE)
            self.assertEqual(socket.address, address)
            socket.send(b"back", address)
            self.assertEqual(socket.recv(PATIENCE), (b"back", address))


if __name__ == "__main__":
    unittest.main()
