"""A whole node, called from Python, and a component in Python that `weft call` calls."""

import json
import shutil
import subprocess
import sys
import unittest

from weft.xrl import BadArgs, CommandFailed, Interface, Node, XrlError
from weft.xrl.text import write_arguments

import support
from support import CENSUS, NEEDS_WEFT, PATIENCE, WEFT, serving, wait_until
from test_calls import PROBE, everything, probe_handlers

NODE = "version 1;\nnode t;\nxia { principal xdp; }\n"


@unittest.skipUnless(WEFT, NEEDS_WEFT)
class WholeNode(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.run_dir = cls.enterClassContext(support.directory())
        file = cls.run_dir / "node.conf"
        file.write_text(NODE)
        cls.process = subprocess.Popen(
            [WEFT, "run", str(file), "--run-dir", str(cls.run_dir)], stderr=subprocess.DEVNULL)
        cls.addClassCleanup(support.end, cls.process)
        with Node(cls.run_dir, timeout=PATIENCE) as node:
            wait_until(lambda: cls.runs(node, "xia"), "the node")

    @staticmethod
    def runs(node, name):
        try:
            processes = node.call("manager", "manager/1.0/processes")["processes"]
        except XrlError:
            return False
        return any(one["instance"] == name and one["state"] == "running" for one in processes)

    def weft_call(self, *arguments):
        command = [WEFT, "call", "--run-dir", str(self.run_dir), "--timeout", "60000", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=2 * PATIENCE)

    def test_the_node_is_called(self):
        with Node(self.run_dir, timeout=PATIENCE) as node:
            answer = node.call("finder://manager/manager/1.0/processes")
            self.assertEqual(answer["node"], "t")
            self.assertLessEqual({"fea", "finder", "xia"}, {one["instance"] for one in answer["processes"]})
            shown = json.loads(node.call("xia", "xia/1.0/show", what="principals")["json"])
            self.assertIn("xdp", shown)
            self.assertIn("xia/1.0", map(str, node.interfaces("xia")))

    def test_a_component_that_dies_is_seen_and_called_again(self):
        with Node(self.run_dir, timeout=PATIENCE) as node:
            told = []
            node.watch("xia", born=lambda *_: told.append("born"), died=lambda *_: told.append("died"))
            wait_until(lambda: node.poll(0.1) or told, "the birth")
            node.call("xia", "xia/1.0/show")
            node.call("manager", "manager/1.0/signal", instance="xia", number=9)
            wait_until(lambda: (node.poll(0.1), len(told) == 3)[1], "the next birth")
            self.assertEqual(told, ["born", "died", "born"])
            wait_until(lambda: self.runs(node, "xia"), "the stack")
            self.assertIn("xdp", node.call("xia", "xia/1.0/show", what="principals")["json"])

    def test_weft_call_reaches_a_component_in_python(self):
        arguments = write_arguments(everything(), Interface.parse(PROBE).methods["echo"].args, Interface.parse(PROBE))
        with serving(self.run_dir, "probe", PROBE, probe_handlers()):
            done = self.weft_call(f"finder://probe/probe/1.2/echo?{arguments}")
            self.assertEqual((done.stdout, done.stderr), (arguments + "\n", ""))
            done = self.weft_call("finder://probe/probe/1.2/add?a:u32=1&b:u32=x")
            self.assertEqual(done.returncode, 1)
            self.assertIn("101 BAD_ARGS: `x` is no u32", done.stderr)
            listed = self.weft_call("--list", "probe").stdout
            self.assertIn("finder://probe/probe/1.2/add?a:u32&b:u32->sum:u32", listed)
            self.assertIn("finder://probe/component/1.0/status", listed)

    def test_packets_are_relayed_to_who_takes_no_descriptors(self):
        def call(node, method, **arguments):
            return node.call("fea", f"fea/1.0/{method}", **arguments)

        with Node(self.run_dir, timeout=PATIENCE) as one, Node(self.run_dir, timeout=PATIENCE) as other:
            ours = call(one, "open_relay", spec="udp:127.0.0.1:0")
            theirs = call(other, "open_relay", spec="udp:127.0.0.1:0")
            nothing = call(other, "receive_packets", relay=theirs["relay"], at_most=9, wait=0)
            self.assertEqual((nothing["packets"], nothing["dropped"]), ([], 0))
            packets = [{"bytes": b"x" * n, "peer": theirs["local"]} for n in (1, 1400)]
            call(one, "send_packets", relay=ours["relay"], packets=packets)
            received = []
            while len(received) < 2:
                wait = {"at_most": 1, "wait": 60_000}
                received += call(other, "receive_packets", relay=theirs["relay"], **wait)["packets"]
            self.assertEqual([one["bytes"] for one in received], [one["bytes"] for one in packets])
            self.assertEqual({one["peer"] for one in received}, {ours["local"]})

            # A relay is its owner's alone.
            for method, more in [("send_packets", {"packets": []}), ("close_relay", {}),
                                 ("receive_packets", {"at_most": 1, "wait": 0})]:
                with self.assertRaisesRegex(CommandFailed, "no relay"):
                    call(one, method, relay=theirs["relay"], **more)
            with self.assertRaisesRegex(BadArgs, "is no peer"):
                call(one, "send_packets", relay=ours["relay"], packets=[{"bytes": b"x", "peer": "x"}])
            with self.assertRaisesRegex(BadArgs, "no packet port"):
                call(one, "open_relay", spec="udp")

            # Who waits hears of the end, and the port is free again.
            waiting = other.begin("fea", "fea/1.0/receive_packets", relay=theirs["relay"], at_most=1, wait=60_000)
            call(other, "close_relay", relay=theirs["relay"])
            self.assertEqual(other.wait(waiting)["packets"], [])
            again = call(one, "open_relay", spec=f"udp:{theirs['local']}")
            self.assertEqual(again["local"], theirs["local"])

        # A connection takes its relays with it.
        with Node(self.run_dir, timeout=PATIENCE) as third:
            spec = f"udp:{ours['local']}"

            def opened():
                try:
                    return call(third, "open_relay", spec=spec)["local"] == ours["local"]
                except CommandFailed as error:
                    self.assertIn("in use", str(error))
                    return False

            wait_until(opened, "the port's end")

    def test_the_example_counts(self):
        process = subprocess.Popen([sys.executable, str(CENSUS), "--run-dir", str(self.run_dir)])
        try:
            with Node(self.run_dir, timeout=PATIENCE) as node:
                births = []
                node.watch("census", born=lambda *who: births.append(who))
                wait_until(lambda: node.poll(0.1) or births, "the example")

                def counted():
                    counts = node.call("census", "census/1.0/counts")["counts"]
                    return {"manager", "fea", "xia", "census"} <= {one["class"] for one in counts}

                wait_until(counted, "the counts")
                (one,) = node.call("census", "census/1.0/counts", {"class": "manager"})["counts"]
                self.assertEqual(one, {"class": "manager", "present": 1, "births": 1, "deaths": 0})
                self.assertTrue(node.call("census", "census/1.0/pids")["pids"])
                node.call("census", "census/1.0/reset")
                self.assertEqual(node.call("census", "census/1.0/events"), {"events": []})
        finally:
            support.end(process)
        self.assertEqual(process.returncode, 0)


@unittest.skipUnless(WEFT, NEEDS_WEFT)
class Program(unittest.TestCase):
    """The example as a program that the node file names."""

    def test_the_node_starts_it_confines_it_and_gives_it_its_configuration(self):
        run = self.enterContext(support.directory())
        # The program's own user must be able to read it.
        copy = run / "source" / "examples"
        shutil.copytree(CENSUS.parent, copy / "component-python")
        package = run / "source" / "bindings" / "python" / "weft"
        shutil.copytree(support.ROOT / "bindings" / "python" / "weft", package)
        file = run / "node.conf"
        file.write_text(f"""{NODE}
program census {{
    execute {copy / "component-python" / CENSUS.name};
    access manager/manager/1.0/processes;
    config {{ log 7; }}
}}
program strict {{
    execute {copy / "component-python" / CENSUS.name};
    config {{
        log 0;
    }}
}}
""")
        process = subprocess.Popen([WEFT, "run", str(file), "--run-dir", str(run)])
        try:
            with Node(run, timeout=PATIENCE) as node:
                wait_until(lambda: WholeNode.runs(node, "census"), "the program")
                wait_until(lambda: "of 7 events" in node.call("census", "component/1.0/status")["detail"],
                           "its configuration")
                # What it refuses is shown where it was written.
                def strict():
                    every = node.call("manager", "manager/1.0/processes")["processes"]
                    return next(one for one in every if one["instance"] == "strict")

                wait_until(lambda: strict()["state"] == "refused", "the refusal")
                line = file.read_text().splitlines().index("        log 0;") + 1
                self.assertTrue(
                    strict()["trouble"].startswith(f"{file}:{line}:9: strict refuses this: `log` is how many"),
                    strict()["trouble"])
                pids = node.call("census", "census/1.0/pids")["pids"]
                own = next(one for one in node.call("manager", "manager/1.0/processes")["processes"]
                           if one["instance"] == "census")
                self.assertIn(own["pid"], pids)
                # It is started again, and has its configuration again.
                node.call("manager", "manager/1.0/signal", instance="census", number=9)

                def again():
                    processes = node.call("manager", "manager/1.0/processes")["processes"]
                    (one,) = (one for one in processes if one["instance"] == "census")
                    return one["restarts"] == 1 and one["state"] == "running"

                wait_until(again, "the next program")
                node.call("manager", "manager/1.0/lock")

                # What may be configured is what the program says.
                def offered():
                    line = "set program census config "
                    words = node.call("manager", "manager/1.0/complete", line=line)["words"]
                    return {one["text"]: one["help"] for one in words}.get("log")

                wait_until(lambda: "how many events are kept" in (offered() or ""), "the program's schema")
                with self.assertRaisesRegex(BadArgs, "command:1:31: `0` is out of range: it must be 1 to 10000"):
                    node.call("manager", "manager/1.0/edit", command="set program census config log 0")
                with self.assertRaisesRegex(BadArgs, "`lock`: accepted here: `log`"):
                    node.call("manager", "manager/1.0/edit", command="set program census config lock 8")
                # The schema of one whose statement does not fit it is not used.
                strict = "set program strict config lock 8"
                node.call("manager", "manager/1.0/edit", command=strict)
                node.call("manager", "manager/1.0/edit", command="delete program strict config lock")
                node.call("manager", "manager/1.0/edit", command="set program census config log 8")
                self.assertEqual(node.call("manager", "manager/1.0/compare")["text"].split("\n")[1:3],
                                 ["-   log 7;", "+   log 8;"])
                node.call("manager", "manager/1.0/commit", comment="more")
                # When it does fit, it is.
                node.call("manager", "manager/1.0/edit", command="delete program strict config log")
                node.call("manager", "manager/1.0/edit", command="set program strict config log 9")
                node.call("manager", "manager/1.0/commit", comment="fits")

                def checked():
                    try:
                        node.call("manager", "manager/1.0/edit", command=strict)
                        node.call("manager", "manager/1.0/edit", command="delete program strict config lock")
                    except BadArgs as error:
                        return "`lock`" in str(error)

                wait_until(checked, "the schema of the other program")
                wait_until(lambda: "of 8 events" in node.call("census", "component/1.0/status")["detail"],
                           "the next configuration")
                node.call("manager", "manager/1.0/edit", command="delete program census")
                node.call("manager", "manager/1.0/commit", comment="none")
                with self.assertRaises(XrlError):
                    wait_until(lambda: not node.call("census", "component/1.0/status"), "its end")
        finally:
            support.end(process)


if __name__ == "__main__":
    unittest.main()
