"""Callers, components and a Finder that is the real one: who may call what, and what becomes of a call when
somebody goes away or is hostile. The test plays the manager.
"""

import contextlib
import logging
import os
import random
import socket
import struct
import subprocess
import sys
import time
import unittest

from weft.xrl import (
    BadArgs,
    CommandFailed,
    InheritError,
    NoFinder,
    NoSuchMethod,
    Node,
    ReplyTimedOut,
    ResolveFailed,
    SendFailed,
    SendFailedTransient,
    XrlError,
    wire,
)

import support
from weft.xrl.finder import own_interface
from weft.xrl.text import read_arguments, write_arguments
from support import CENSUS, INTERFACES, NEEDS_WEFT, PATIENCE, WEFT, finder, serving, wait_until
from test_text import VALUES

PROBE = (INTERFACES / "probe.xif").read_text()


def probe_handlers(**more):
    """The methods of the interface probe/1.2."""
    def forget(_args, _caller):
        raise AssertionError("nobody calls this")

    handlers = {
        "probe/echo": lambda args, _: args,
        "probe/add": lambda args, _: {"sum": args["a"] + args["b"]},
        "probe/take": lambda args, _: {"count": len(args["routes"])},
        "probe/forget": forget,
        "probe/pass": forget,
        "probe/zero": lambda _, __: None,
        "probe/ten": lambda _, __: None,
        "probe/twentyfive": lambda _, __: None,
    }
    return {**handlers, **{f"probe/{name}": function for name, function in more.items()}}


def everything():
    """A value for each argument of probe/echo."""
    of = {}
    for kind, value, _ in VALUES:
        of.setdefault(kind, value)
    names = {"i": "i32", "u": "u32", "il": "i64", "ul": "u64", "f": "fp64", "b": "bool", "t": "txt",
             "bytes": "binary", "mac": "mac", "ip": "ip", "v4": "ipv4", "v6": "ipv6", "net": "ipnet",
             "net4": "ipv4net", "net6": "ipv6net", "id": "id", "route": "route"}
    return {**{name: of[kind] for name, kind in names.items()},
            "list": [[""], [], ["a,b", "[c]"]], "routes": [of["route"]] * 3, "note": None}


@unittest.skipUnless(WEFT, NEEDS_WEFT)
class Calls(unittest.TestCase):
    def test_values_of_every_type_come_back(self):
        with finder() as one, serving(one.run, "probe", PROBE, probe_handlers()), one.owner() as node:
            self.assertEqual(node.call("probe", "probe/1.2/echo", everything()), everything())
            again = {**everything(), "note": "x"}
            self.assertEqual(node.call("probe", "probe/1.0/echo", again), again)

    def test_many_calls_are_on_their_way_at_a_time(self):
        with finder() as one, serving(one.run, "probe", PROBE, probe_handlers()), one.owner() as node:
            pending = [node.begin("probe", "probe/1.2/add", a=n, b=1) for n in range(1000)]
            self.assertEqual([node.wait(call)["sum"] for call in pending], list(range(1, 1001)))

    def test_errors_are_those_of_xorp(self):
        def add(args, _caller):
            if args["a"] == 7:
                raise CommandFailed("seven")
            return {"sum": -1} if args["a"] == 8 else {}[0]

        with finder() as one, serving(one.run, "probe", PROBE, probe_handlers(add=add)), one.owner() as node:
            with self.assertRaisesRegex(CommandFailed, "102 COMMAND_FAILED: seven"):
                node.call("finder://probe/probe/1.0/add?b:u32=1&a:u32=7")
            with self.assertRaisesRegex(BadArgs, "-1 is no u32"):
                node.call("probe", "probe/1.0/add", a=8, b=0)
            with self.assertLogs("weft.xrl", "ERROR"), self.assertRaisesRegex(CommandFailed, "KeyError"):
                node.call("probe", "probe/1.0/add", a=9, b=0)
            with self.assertRaisesRegex(BadArgs, "no argument `note`"):
                node.call("finder://probe/probe/1.0/add?a:u32=1&note:txt=x")
            with self.assertRaises(BadArgs):
                node.call("probe", "probe/1.0/add", a=1)
            with self.assertRaisesRegex(NoSuchMethod, "probe/1.2"):
                node.call("probe", "probe/1.3/add", a=1, b=1)
            with self.assertRaisesRegex(ResolveFailed, "nobody"):
                node.call("nobody", "probe/1.0/add", a=1, b=1)
            with self.assertRaises(ValueError):
                node.call("finder://probe/probe/add")

    def test_an_answer_may_be_as_long_as_a_message(self):
        long = "x" * (12 << 20)
        with finder() as one, serving(one.run, "probe", PROBE, probe_handlers()), one.owner() as node:
            address, ticket, key = resolved(node, "probe/1.2/echo")
            values = {**everything(), "t": long}
            interface = node.interfaces("probe")[0]
            text = write_arguments(values, interface.methods["echo"].args, interface)
            with Raw(address) as raw:
                raw.send(hello(ticket), wire.Bind(0, key).emit())
                self.assertIsInstance(raw.one(), wire.Welcome)
                raw.send(wire.Call(0, 1, 0, text.encode()).emit())
                # It is carried out, and answered, before this call is; only then is the answer read.
                self.assertEqual(node.call("probe", "probe/1.0/add", a=1, b=1), {"sum": 2})
                self.assertTrue(long.encode() in raw.one().args)

    def test_a_call_that_takes_too_long_is_given_up(self):
        def zero(_args, _caller):
            asked.append(1)
            wait_until(lambda: len(asked) > 1, "the end of the wait")

        asked = []
        with finder() as one, serving(one.run, "probe", PROBE, probe_handlers(zero=zero)), one.owner() as node:
            node.call("probe", "probe/1.0/add", a=1, b=1)
            pending = node.begin("probe", "probe/1.0/zero")
            wait_until(lambda: asked, "the call")
            with self.assertRaises(ReplyTimedOut):
                node.wait(pending, timeout=0.05)
            asked.append(2)
            self.assertEqual(node.call("probe", "probe/1.0/add", a=1, b=1), {"sum": 2})

    def test_a_handler_may_call_others_meanwhile(self):
        with finder() as one, serving(one.run, "back", PROBE, probe_handlers()):
            def add(args, _caller):
                return front.node.call("back", "probe/1.0/add", args)

            with serving(one.run, "front", PROBE, probe_handlers(add=add)) as front, one.owner() as node:
                self.assertEqual(node.call("front", "probe/1.0/add", a=2, b=3), {"sum": 5})

    def test_without_a_finder_nothing_is_called(self):
        with support.directory() as run, Node(run, timeout=0.05) as node:
            with self.assertRaises(NoFinder):
                node.call("probe", "probe/1.0/zero")


@unittest.skipUnless(WEFT, NEEDS_WEFT)
class Coming(unittest.TestCase):
    def test_a_target_that_was_started_again_is_found_again(self):
        with finder() as one, one.owner() as node:
            for _ in range(2):
                with serving(one.run, "probe", PROBE, probe_handlers()):
                    self.assertEqual(node.call("probe", "probe/1.0/add", a=1, b=1), {"sum": 2})
                with self.assertRaises(ResolveFailed):
                    node.call("probe", "probe/1.0/add", a=1, b=1)

    def test_a_call_to_somebody_who_dies_fails_at_once(self):
        with finder() as one, one.owner() as node:
            code = (
                "import os, sys; sys.path[:0] = eval(sys.argv[2])\n"
                "from test_calls import *\n"
                "die = lambda args, caller: os._exit(3)\n"
                "with Node(sys.argv[1], timeout=60) as node:\n"
                "    Component = __import__('weft.xrl').xrl.Component\n"
                "    one = Component(node, 'probe', 'probe', PROBE, probe_handlers(zero=die))\n"
                "    node.serve()\n"
            )
            process = subprocess.Popen([sys.executable, "-c", code, str(one.run), repr(sys.path)])
            try:
                births = []
                node.watch("probe", born=lambda *who: births.append(who))
                wait_until(lambda: node.poll(0.1) or births, "the birth")
                with self.assertRaises(SendFailed):
                    node.call("probe", "probe/1.0/zero")
                self.assertEqual(process.wait(PATIENCE), 3)
            finally:
                support.end(process)

    def test_births_and_deaths_are_told(self):
        with finder() as one, one.owner() as node:
            told = []
            node.watch("probe", born=lambda *who: told.append(("born", *who)),
                       died=lambda *who: told.append(("died", *who)))
            with serving(one.run, "probe", PROBE, probe_handlers(), instance="p1"):
                wait_until(lambda: node.poll(0.1) or told, "the birth")
            with serving(one.run, "other", PROBE, probe_handlers()):
                wait_until(lambda: node.poll(0.1) or len(told) > 1, "the death")
            self.assertEqual(told, [("born", "probe", "p1"), ("died", "probe", "p1")])
            with self.assertRaises(RuntimeError):
                node.enqueue(node.poll)
                node.poll(1)

    def test_everybody_is_there_again_when_the_finder_is_back_and_nobody_died(self):
        with finder() as one, serving(one.run, "probe", PROBE, probe_handlers()), one.owner() as node:
            told = []
            node.watch("probe", born=lambda *who: told.append(who), died=lambda *who: told.append(("died", *who)))
            node.poll(PATIENCE)
            self.assertEqual(node.call("probe", "probe/1.0/add", a=1, b=1), {"sum": 2})
            one.restart()
            # What is known already needs no Finder.
            self.assertEqual(node.call("probe", "probe/1.0/add", a=1, b=2), {"sum": 3})

            def is_back():
                try:
                    return node.call("probe", "probe/1.0/take", routes=[]) == {"count": 0}
                except ResolveFailed:
                    # It has not registered again yet.
                    return False

            wait_until(is_back, "the component")
            wait_until(lambda: not node.poll(0.1) and ("probe", "probe") in node.finder.births.alive, "the birth")
            self.assertEqual(told, [("probe", "probe")])

    def test_who_does_not_come_back_with_the_finder_counts_as_dead(self):
        with finder() as one, one.owner() as node:
            told = []
            node.watch("probe", died=lambda *who: told.append(who))
            with serving(one.run, "probe", PROBE, probe_handlers()):
                wait_until(lambda: node.poll(0.1) or node.finder.births.alive, "the birth")
                one.process.kill()
                one.process.wait()
                # It ends unheard.
                wait_until(lambda: node.poll(0.1) or node.finder.births.doubted, "the end of the Finder")
            one.start()
            wait_until(lambda: node.poll(0.1) and told, "the death")
            self.assertEqual(told[0], ("probe", "probe"))


@unittest.skipUnless(WEFT, NEEDS_WEFT)
class Rights(unittest.TestCase):
    A, B = b"a" * 32, b"b" * 32

    def allow(self, owner, access):
        processes = [
            {"instance": "probe", "class": "probe", "secret": self.A, "access": ""},
            {"instance": "b", "class": "b", "secret": self.B, "access": access},
        ]
        owner.call("finder", "finder/1.0/set_processes", processes=processes)

    def test_a_process_calls_what_its_access_list_names_within_the_ranges(self):
        with finder() as one, one.owner() as owner:
            self.allow(owner, "probe/probe/1.0/add?a=1..9 probe/probe/1.0/take?routes.net=10.0.0.0/8")
            callers = []

            def add(args, caller):
                callers.append(caller)
                return {"sum": args["a"] + args["b"]}

            with serving(one.run, "probe", PROBE, probe_handlers(add=add), secret=self.A):
                with Node(one.run, secret=self.B, timeout=PATIENCE) as node:
                    self.assertEqual(node.call("probe", "probe/1.0/add", a=9, b=9), {"sum": 18})
                    with self.assertRaisesRegex(BadArgs, "`a` may not be 10"):
                        node.call("probe", "probe/1.0/add", a=10, b=9)
                    route = {"net": "10.1.0.0/16", "nexthop": "::1", "metric": 1, "comment": ""}
                    self.assertEqual(node.call("probe", "probe/1.0/take", routes=[route]), {"count": 1})
                    with self.assertRaisesRegex(BadArgs, "`routes.net` may not be 11.0.0.0/8"):
                        node.call("probe", "probe/1.0/take", routes=[route, {**route, "net": "11.0.0.0/8"}])
                    with self.assertRaisesRegex(ResolveFailed, "b may not call"):
                        node.call("probe", "probe/1.0/zero")
                    self.assertEqual(callers, ["b"])
                    # It may call something else from now on.
                    self.allow(owner, "probe/probe/1.0/zero")

                    def may_not_add():
                        try:
                            node.call("probe", "probe/1.0/add", a=1, b=1)
                        except (ResolveFailed, SendFailed):
                            return True
                        return False

                    wait_until(may_not_add, "the end of the right")
                    self.assertEqual(node.call("probe", "probe/1.0/zero"), {})

    def test_a_component_is_told_of_callers_that_are_gone_and_whether_for_good(self):
        with finder() as one, one.owner() as owner:
            self.allow(owner, "probe/probe/1.0/add")
            left = []

            def tell(caller, removed):
                left.append((caller, removed))
                raise AssertionError("what it does wrong ends nothing")

            def called_by_b(stack):
                node = stack.enter_context(Node(one.run, secret=self.B, timeout=PATIENCE))
                node.call("probe", "probe/1.0/add", a=1, b=1)

            with (
                self.assertLogs("weft.xrl", "ERROR"),
                serving(one.run, "probe", PROBE, probe_handlers(), secret=self.A, left=tell),
            ):
                with contextlib.ExitStack() as stack:
                    called_by_b(stack)
                    called_by_b(stack)
                # Of the first of the two nothing is said: somebody of this name is there.
                wait_until(lambda: left, "the end of the caller")
                with contextlib.ExitStack() as stack:
                    called_by_b(stack)
                    probe = {"instance": "probe", "class": "probe", "secret": self.A, "access": ""}
                    owner.call("finder", "finder/1.0/set_processes", processes=[probe])
                    self.assertEqual(left, [("b", False)])
                wait_until(lambda: left[-1] == ("b", True), "the end for good")
                self.assertLessEqual(len(left), 3)
                # Without a Finder it is known by the end of the connection.
                self.allow(owner, "probe/probe/1.0/add")
                with contextlib.ExitStack() as stack:
                    called_by_b(stack)
                    left.clear()
                    one.process.kill()
                    one.process.wait()
                wait_until(lambda: left == [("b", False)], "the end of the caller")

    def test_a_process_registers_as_what_it_is_only(self):
        with finder() as one, one.owner() as owner:
            self.allow(owner, "")
            with self.assertLogs("weft.xrl", "WARNING"):
                with serving(one.run, "probe", PROBE, probe_handlers(), secret=self.B) as component:
                    self.assertRegex(str(component.trouble), "may register itself only")

    def test_a_secret_that_nobody_has_is_refused(self):
        with finder() as one, one.owner() as owner:
            self.allow(owner, "")
            with Node(one.run, secret=b"?" * 32, timeout=PATIENCE) as node, self.assertRaises(ResolveFailed):
                node.call("finder", "finder/1.0/targets")
        with self.assertRaises(ValueError):
            Node("/nowhere", secret=b"short")

    def test_a_range_that_does_not_fit_the_method_is_refused_when_it_is_resolved(self):
        with finder() as one, one.owner() as owner:
            self.allow(owner, "probe/probe/1.0/add?nope=1")
            with serving(one.run, "probe", PROBE, probe_handlers(), secret=self.A):
                with Node(one.run, secret=self.B, timeout=PATIENCE) as node:
                    with self.assertRaisesRegex(XrlError, "no argument `nope`"):
                        node.call("probe", "probe/1.0/add", a=1, b=1)


class Raw:
    """A connection that says what it likes."""

    def __init__(self, address):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(address.partition(":")[2])
        self.socket.settimeout(PATIENCE)

    def send(self, *frames):
        data = b"".join(struct.pack("<I", len(frame)) + frame for frame in frames)
        self.socket.sendall(data)

    def read(self):
        """All frames until the other side ends the connection."""
        data = b""
        try:
            while more := self.socket.recv(65536):
                data += more
        except ConnectionResetError:
            pass
        frames = []
        while data:
            (length,) = struct.unpack_from("<I", data)
            frames.append(wire.parse(data[4:4 + length]))
            data = data[4 + length:]
        return frames

    def one(self):
        """The next frame."""
        (length,) = struct.unpack("<I", self._exactly(4))
        return wire.parse(self._exactly(length))

    def _exactly(self, count):
        data = bytearray()
        # With a time limit, less may come than is waited for.
        while len(data) < count and (more := self.socket.recv(count - len(data))):
            data += more
        return bytes(data)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()


def resolved(node, method="probe/1.0/add"):
    """A ticket, a key and where they are good."""
    answer = node.call("finder", "finder/1.0/resolve", target="probe", method=method)
    return answer["address"].removeprefix("text+"), answer["ticket"], answer["key"]


def hello(ticket, kind=wire.TICKET, version=1):
    return wire.Hello(version, 64, kind, ticket).emit()


@unittest.skipUnless(WEFT, NEEDS_WEFT)
class Hostile(unittest.TestCase):
    def setUp(self):
        stack = self.enterContext
        one = stack(finder())
        log = logging.getLogger("weft.xrl")
        self.addCleanup(log.setLevel, log.level)
        log.setLevel(logging.CRITICAL)
        stack(serving(one.run, "probe", PROBE, probe_handlers()))
        self.node = stack(one.owner())
        self.node.call("probe", "probe/1.0/add", a=1, b=1)

    def still_works(self):
        self.assertEqual(self.node.call("probe", "probe/1.0/add", a=1, b=1), {"sum": 2})

    def test_tickets_are_good_once_and_for_one_process(self):
        address, ticket, key = resolved(self.node)
        code = (
            "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])\n"
            "s.sendall(bytes.fromhex(sys.argv[2])); s.settimeout(60); sys.stdout.buffer.write(s.recv(999))\n"
        )
        data = hello(ticket)
        data = struct.pack("<I", len(data)) + data
        stolen = subprocess.run(
            [sys.executable, "-c", code, address.partition(":")[2], data.hex()], stdout=subprocess.PIPE, check=True)
        self.assertIn(b"given to another process", stolen.stdout)
        with Raw(address) as raw:
            raw.send(hello(ticket), wire.Bind(3, key).emit(), wire.Call(3, 9, 0, b"a:u32=1&b:u32=2").emit())
            self.assertIsInstance(raw.one(), wire.Welcome)
            self.assertEqual(raw.one(), wire.Reply(9, b"sum:u32=3"))
            with Raw(address) as second:
                second.send(hello(ticket))
                self.assertIn("used before", str(second.read()[0].error))
            raw.send(hello(ticket))
            self.assertIn("hello already", str(raw.read()[0].error))
        self.still_works()

    def test_who_shows_nothing_calls_nothing(self):
        address, ticket, key = resolved(self.node)
        for frames, part in [
            ([hello(b"", wire.NOTHING)], "a ticket is needed"),
            ([hello(b"s" * 32, wire.SECRET)], "a ticket is needed"),
            ([hello(b"?" * 16)], "void"),
            ([hello(ticket, version=2)], "version 1"),
            ([wire.Welcome(1, 1, "x").emit()], "only callers"),
        ]:
            with self.subTest(part=part), Raw(address) as raw:
                raw.send(*frames)
                self.assertIn(part, str(raw.read()[-1].error))
        with Raw(address) as raw:
            raw.send(wire.Bind(1, key).emit(), wire.Call(1, 5, 0, b"a:u32=1&b:u32=2").emit())
            self.assertIsInstance(raw.one().error, ResolveFailed)
        with Raw(address) as raw:
            raw.send(hello(ticket), wire.Bind(1, b"?" * 16).emit(), wire.Bind(65535, key).emit(),
                     wire.Call(1, 5, 0, b"").emit(), wire.Call(65535, 6, 0, b"").emit())
            self.assertIsInstance(raw.one(), wire.Welcome)
            self.assertIsInstance(raw.one().error, ResolveFailed)
            self.assertIsInstance(raw.one().error, ResolveFailed)
        self.still_works()

    def test_arguments_of_any_kind_are_answered(self):
        address, ticket, key = resolved(self.node, "probe/1.2/echo")
        generator = random.Random(6)
        with Raw(address) as raw:
            raw.send(hello(ticket), wire.Bind(0, key).emit())
            self.assertIsInstance(raw.one(), wire.Welcome)
            for number in range(300):
                arguments = bytes(generator.choices(b"iubt:32=&()[];,%f\xff\x00 ", k=generator.randrange(60)))
                raw.send(wire.Call(0, number, 0, arguments, generator.random() < 0.9).emit())
                self.assertEqual((frame := raw.one()).id, number)
                self.assertIsInstance(frame.error, BadArgs)
        self.still_works()

    def test_bytes_of_any_kind_end_the_connection_at_worst(self):
        address, _, _ = resolved(self.node)
        generator = random.Random(7)
        for _ in range(60):
            with Raw(address) as raw:
                raw.socket.sendall(generator.randbytes(generator.randrange(1, 200)))
                raw.socket.shutdown(socket.SHUT_WR)
                raw.read()
        for length in (0, wire.LONGEST_FRAME + 1, 0xFFFF_FFFF):
            with Raw(address) as raw:
                raw.socket.sendall(struct.pack("<I", length))
                self.assertEqual(raw.read(), [])
        self.still_works()

    def test_connections_that_say_nothing_make_room_for_others(self):
        address, _, _ = resolved(self.node)
        silent = [self.enterContext(Raw(address)) for _ in range(200)]
        self.assertEqual(silent[0].read(), [])
        self.still_works()

    def test_who_does_not_read_its_answers_is_given_up(self):
        address, ticket, key = resolved(self.node, "probe/1.2/echo")
        arguments = everything()
        interface = self.node.interfaces("probe")[0]
        text = write_arguments({**arguments, "t": "x" * 500_000}, interface.methods["echo"].args, interface)
        with Raw(address) as raw:
            raw.send(hello(ticket), wire.Bind(0, key).emit())
            frame = wire.Call(0, 1, 0, text.encode()).emit()
            with self.assertRaises((BrokenPipeError, ConnectionResetError, AssertionError)):
                for _ in range(200):
                    raw.send(frame)
                # Whatever was sent, not everything was answered.
                self.assertEqual(len(raw.read()), 201)
        self.still_works()

    def test_too_many_calls_at_a_time_are_refused(self):
        address, ticket, key = resolved(self.node)
        with Raw(address) as raw:
            calls = [wire.Call(0, number, 0, b"a:u32=1&b:u32=2").emit() for number in range(2000)]
            raw.send(hello(ticket), wire.Bind(0, key).emit(), *calls)
            self.assertIsInstance(raw.one(), wire.Welcome)
            answers = [raw.one() for _ in calls]
            refused = [one for one in answers if isinstance(one, wire.Failed)]
            self.assertTrue(all(isinstance(one.error, SendFailedTransient) for one in refused))
            self.assertEqual({one.id for one in answers}, set(range(2000)))
        self.still_works()


@unittest.skipUnless(WEFT, NEEDS_WEFT)
class Remote(unittest.TestCase):
    """Operators on other machines; the test is the gateway, which connects for each of them."""

    SECRET = b"g" * 32
    ANN, BOB = b"\xaa" * 20, b"\xbb" * 20

    def guest(self, one, key):
        """A ticket, a key and where they are good, as the Finder gives them to an operator."""
        name = wire.Name(0, "finder/1.0/resolve").emit()
        arguments = b"target:txt=probe&method:txt=probe/1.0/add"
        raw = self.enterContext(Raw(f"unix:{one.run}/xrl-finder"))
        raw.send(hello(self.SECRET + key, 3), name, wire.Call(0, 1, 0, arguments).emit())
        frame = raw.one()
        while not isinstance(frame, wire.Reply):
            frame = raw.one()
        answer = read_arguments(frame.args.decode(), self.finder.methods["resolve"].returns, self.finder)
        return answer["address"].removeprefix("text+"), answer["ticket"], answer["key"]

    def test_an_operator_calls_through_the_gateway_and_as_itself_only(self):
        self.finder = own_interface("finder")
        callers = []

        def add(args, caller):
            callers.append(caller)
            return {"sum": args["a"] + args["b"]}

        with finder() as one, one.owner() as owner:
            gateway = {"instance": "gateway", "class": "gateway", "secret": self.SECRET, "access": ""}
            owner.call("finder", "finder/1.0/set_processes", processes=[gateway])
            remote = [{"key": key.hex(), "access": "probe"} for key in (self.ANN, self.BOB)]
            owner.call("finder", "finder/1.0/set_operators", operators=[], remote=remote)
            with serving(one.run, "probe", PROBE, probe_handlers(add=add)):
                address, ticket, key = self.guest(one, self.ANN)
                _, other_ticket, other_key = self.guest(one, self.BOB)
                call = wire.Call(3, 9, 0, b"a:u32=1&b:u32=2").emit()
                with Raw(address) as raw:
                    raw.send(hello(ticket + self.ANN, 4), wire.Bind(3, key).emit(), call)
                    self.assertIsInstance(raw.one(), wire.Welcome)
                    self.assertEqual(raw.one(), wire.Reply(9, b"sum:u32=3"))
                    self.assertEqual(callers, [f"operator (key {self.ANN.hex()})"])
                    # Both come from the gateway's process; each has its own rights nevertheless.
                    raw.send(wire.Bind(3, other_key).emit(), call)
                    self.assertIsInstance(raw.one().error, ResolveFailed)
                with self.assertLogs("weft.xrl", "WARNING"), Raw(address) as raw:
                    raw.send(hello(other_ticket + self.ANN, 4))
                    self.assertIn("given to another process", str(raw.read()[0].error))


@unittest.skipUnless(WEFT, NEEDS_WEFT)
class Started(unittest.TestCase):
    """The example, started as the launcher starts programs, with an access list of its own."""

    MANAGER = (INTERFACES / "manager.xif").read_text()

    def manager(self):
        from weft.xrl import Interface

        def processes(_args, caller):
            one = {"instance": "x", "class": "x", "pid": 4711, "uid": 0, "state": "running",
                   "since": 0, "restarts": 0, "trouble": "", "ended": "", "memory": 0, "processor": 0}
            self.callers.append(caller)
            return {"node": "t", "processes": [one], "missing": []}

        handlers = {f"manager/{name}": lambda *_: None for name in Interface.parse(self.MANAGER).methods}
        return {**handlers, "manager/processes": processes}

    def test_it_takes_its_socket_and_its_secret_and_calls_what_it_may(self):
        self.callers = []
        with finder() as one, one.owner() as owner:
            secret = b"c" * 32

            def allow(access):
                process = {"instance": "census", "class": "census", "secret": secret, "access": access}
                owner.call("finder", "finder/1.0/set_processes", processes=[process])

            allow("manager/manager/1.0/processes")
            sock = support.listener(one.run / "xrl-census")
            process = support.launch(
                [sys.executable, str(CENSUS)], one.run, "census", "program", sock, secret)
            sock.close()
            try:
                births = []
                owner.watch("census", born=lambda *who: births.append(who))
                wait_until(lambda: owner.poll(0.1) or births, "the example")
                with serving(one.run, "manager", self.MANAGER, self.manager()):
                    self.assertEqual(owner.call("census", "census/1.0/pids"), {"pids": [4711]})
                    self.assertEqual(self.callers, ["census"])
                    # Its connection ends with its rights, and it comes back with the new ones.
                    allow("manager/manager/1.0/signal")
                    wait_until(lambda: self.refusal(owner) == "census may not call", "the end of the right")
                configure = {"source": "n.conf", "line": 7}
                owner.call("census", "component/1.0/configure", configure, text="config { log 1; }")
                with self.assertRaisesRegex(CommandFailed, "n.conf:8:2: "):
                    owner.call("census", "component/1.0/check", configure, text="config {\n log 0; }")
                events = owner.call("census", "census/1.0/events")["events"]
                self.assertEqual(len(events), 1)
                ready = owner.call("census", "component/1.0/status")
                self.assertTrue(ready["ready"] and "of 1 events" in ready["detail"])
                self.assertIn("container config", owner.call("census", "component/1.0/schema")["text"])
                process.terminate()
                self.assertEqual(process.wait(PATIENCE), 0)
            finally:
                support.end(process)

    @staticmethod
    def refusal(owner):
        try:
            return str(owner.call("census", "census/1.0/pids"))
        except (ResolveFailed, SendFailed) as error:
            return error.note[:len("census may not call")]


class Inherited(unittest.TestCase):
    def inherit(self, text):
        code = "from weft.xrl import inherited; import os\ninherited(); print(os.environ.get('WEFT_INHERITED'))"
        environment = {**os.environ, "WEFT_INHERITED": text, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
        return done.stdout + done.stderr

    def test_what_a_launcher_does_not_set_is_refused(self):
        self.assertEqual(self.inherit("[]"), "None\n")
        for wrong in ["", "{}", "[1]", '[{"fd": 0, "kind": "kept", "name": "x"}]', '[{"fd": 99}]',
                      '[{"fd": 99, "kind": "secret", "name": "x"}]']:
            with self.subTest(text=wrong):
                self.assertIn(InheritError.__name__, self.inherit(wrong) or "")


if __name__ == "__main__":
    unittest.main()
