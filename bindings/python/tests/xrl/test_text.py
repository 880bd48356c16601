"""Values, arguments, interfaces, limits, frames and statements: what they mean, and that nothing but the
errors that are foreseen comes of bytes of whatever kind.
"""

import ipaddress
import pathlib
import random
import struct
import unittest

from weft.xrl import ConfigError, Id, Interface, XifError, Xrl, XrlError, parse_statements
from weft.xrl import text, wire, xif
from weft.xrl.errors import BadArgs
from weft.xrl.limits import Limits
from weft.xrl.text import read_arguments, read_value, write_arguments, write_value

INTERFACES = pathlib.Path(__file__).resolve().parents[4] / "interfaces"
PROBE = Interface.parse((INTERFACES / "probe.xif").read_text())
ECHO = PROBE.methods["echo"]

#: Every type: its value in Python, and the text that Rust writes for it.
VALUES = [
    ("i32", -5, "-5"),
    ("u32", 4294967295, "4294967295"),
    ("i64", -(1 << 63), "-9223372036854775808"),
    ("u64", (1 << 64) - 1, "18446744073709551615"),
    ("fp64", 0.1, "0.1"),
    ("fp64", 1.0, "1"),
    ("fp64", 1e21, "1000000000000000000000"),
    ("fp64", -2.5e-7, "-0.00000025"),
    ("fp64", float("inf"), "inf"),
    ("bool", True, "true"),
    ("txt", "", ""),
    ("txt", "a b&c=d,e;f(g)[h]%é", "a%20b%26c%3Dd%2Ce%3Bf%28g%29%5Bh%5D%25%C3%A9"),
    ("txt", "-._~:/@!*$", "-._~:/@!*$"),
    ("binary", bytes(range(4)) + b"\xff", "%00%01%02%03%FF"),
    ("mac", "02:00:00:00:00:0a", "02:00:00:00:00:0a"),
    ("ip", ipaddress.ip_address("2001:db8::1"), "2001:db8::1"),
    ("ipv4", ipaddress.ip_address("192.0.2.1"), "192.0.2.1"),
    ("ipv6", ipaddress.ip_address("::ffff:192.0.2.1"), "::ffff:192.0.2.1"),
    ("ipnet", ipaddress.ip_interface("192.0.2.7/24"), "192.0.2.7/24"),
    ("ipv4net", ipaddress.ip_interface("192.0.2.0/24"), "192.0.2.0/24"),
    ("ipv6net", ipaddress.ip_interface("2001:db8::/32"), "2001:db8::/32"),
    ("id", Id(7, b"\x00\xab"), "7:00ab"),
    ("list<txt>", [], ""),
    ("list<txt>", [""], ","),
    ("list<txt>", ["", "a"], ",a"),
    ("list<txt>", ["a", ""], "a,,"),
    ("list<list<txt>>", [[], [""], ["a", "b"]], "[],[,],[a,b]"),
    (
        "route",
        {"net": ipaddress.ip_interface("10.0.0.0/8"), "nexthop": ipaddress.ip_address("::1"),
         "metric": 3, "comment": "x;y"},
        "(net=10.0.0.0/8;nexthop=::1;metric=3;comment=x%3By)",
    ),
]


class Values(unittest.TestCase):
    def test_values_are_written_as_rust_writes_them_and_read_back(self):
        for word, value, written in VALUES:
            with self.subTest(type=word, text=written):
                kind = xif.Type.of(word)
                self.assertEqual(write_value(kind, value, PROBE), written)
                self.assertEqual(read_value(kind, written, PROBE), value)

    def test_what_is_no_value_of_its_type_is_refused(self):
        for word, wrong in [
            ("u32", "-1"), ("u32", "4294967296"), ("u32", ""), ("u32", "1_0"), ("u32", "٣"), ("i32", "0x1"),
            ("u32", "9" * 100_000), ("u64", "18446744073709551616"), ("fp64", "1_0"), ("fp64", "0x1p3"),
            ("bool", "True"), ("bool", "1"), ("mac", "02:00:00:00:00"), ("mac", "02-00-00-00-00-01"),
            ("ip", "192.0.2"), ("ipv4", "::1"), ("ipv6", "fe80::1%25eth0"), ("ipv4", "192.0.2.01"),
            ("ipnet", "192.0.2.1"), ("ipnet", "192.0.2.0/255.255.255.0"), ("ipv4net", "192.0.2.0/33"),
            ("id", "65536:00"), ("id", "1:0"), ("id", "1"), ("txt", "%f"), ("txt", "a b"), ("txt", "%ff"),
            ("list<list<txt>>", "a"), ("list<txt>", "("), ("list<txt>", ")"), ("handle", "0"),
            ("route", "(net=10.0.0.0/8)"), ("route", "net=10.0.0.0/8"), ("route", "("),
        ]:
            with self.subTest(type=word, text=wrong[:40]), self.assertRaises(BadArgs):
                read_value(xif.Type.of(word), wrong, PROBE)

    def test_values_that_do_not_fit_are_not_sent(self):
        for word, wrong in [
            ("u32", -1), ("u32", True), ("u32", "1"), ("txt", b"x"), ("binary", "x"), ("bool", 1),
            ("txt", "\ud800"), ("ipv4", "::1"), ("list<txt>", "abc"), ("list<u32>", 3), ("route", {"net": 1}),
            ("id", (1, b"x" * 256)), ("mac", 7), ("fp64", "x"), ("handle", 3), ("binary", 1 << 40),
        ]:
            with self.subTest(type=word, value=repr(wrong)[:40]), self.assertRaises(BadArgs):
                write_value(xif.Type.of(word), wrong, PROBE)

    def test_addresses_may_be_given_as_text_or_networks(self):
        net = ipaddress.ip_network("192.0.2.0/24")
        self.assertEqual(write_value(xif.Type.of("ipnet"), net, PROBE), "192.0.2.0/24")
        self.assertEqual(write_value(xif.Type.of("ip"), "192.0.2.1", PROBE), "192.0.2.1")

    def test_lists_of_any_texts_come_back(self):
        generator = random.Random(1)
        kind = xif.Type.of("list<list<txt>>")
        for _ in range(300):
            value = [["".join(generator.choices("a,;()[]%&=é ", k=generator.randrange(3)))
                      for _ in range(generator.randrange(4))] for _ in range(generator.randrange(4))]
            self.assertEqual(read_value(kind, write_value(kind, value, PROBE), PROBE), value)

    def test_arbitrary_text_is_a_value_or_refused(self):
        generator = random.Random(2)
        for word, _, written in VALUES * 40:
            broken = list(written)
            for _ in range(generator.randrange(4)):
                at = generator.randrange(len(broken) + 1)
                broken[at:at + generator.randrange(2)] = generator.choice("[](),;=&%:/.0e-\x00\U0001f600")
            try:
                read_value(xif.Type.of(word), "".join(broken), PROBE)
            except BadArgs:
                pass


class Arguments(unittest.TestCase):
    def test_arguments_stand_in_any_order_and_may_be_left_out(self):
        interface = Interface.parse("interface t/1.0 { m ? a:u32 & b:list<txt> & [c:bool]; }")
        args = interface.methods["m"].args
        values = read_arguments("b:list<txt>=x,y&a:u32=7", args, interface)
        self.assertEqual(values, {"a": 7, "b": ["x", "y"], "c": None})
        self.assertEqual(write_arguments(values, args, interface), "a:u32=7&b:list<txt>=x,y")
        for wrong in ["a:u32=7", "a:u32=7&b:txt=x", "a:u32=7&b:list<txt>", "a:u32=7&a:u32=8&b:list<txt>=",
                      "a:u32=7&b:list<txt>=&d:u32=1", "a=7", "a:u32=7&", "&", "a:list<list<list<list<list<txt>>>>>="]:
            with self.subTest(text=wrong), self.assertRaises(BadArgs):
                read_arguments(wrong, args, interface)
        newer = read_arguments("a:u32=7&b:list<txt>=&d:u32=1", args, interface, newer=True)
        self.assertEqual(newer, {"a": 7, "b": [], "c": None})
        with self.assertRaises(BadArgs):
            write_arguments({"a": 1, "b": [], "x": 1}, args, interface)

    def test_xrls_are_read_or_refused(self):
        xrl = Xrl.parse("finder://a/b/1.0/c?d:u32=1->e:u32")
        self.assertEqual((xrl.target, xrl.path, xrl.arguments), ("a", "b/1.0/c", "d:u32=1"))
        for wrong in ["", "a/b/1.0/c", "finder://a/b/1/c", "finder:///b/1.0/c", "finder://a/b/1.0/c/d",
                      "stcp://a/b/1.0/c", "finder://a/b/1.0/c?d", "finder://a b/b/1.0/c"]:
            with self.subTest(text=wrong), self.assertRaises((ValueError, XrlError)):
                Xrl.parse(wrong)


class Interfaces(unittest.TestCase):
    def test_all_interfaces_of_the_house_are_read(self):
        for file in INTERFACES.glob("*.xif"):
            interface = Interface.parse(file.read_text())
            self.assertEqual(interface.name, file.stem)
            self.assertTrue(interface.methods)
        self.assertEqual(str(PROBE), "probe/1.2")
        self.assertEqual(str(ECHO.args[-1]), "[note:txt]")
        self.assertEqual(str(ECHO.args[-2]), "routes:list<route>")

    def test_mistakes_are_shown_with_their_line(self):
        for wrong, part in [
            ("", "expected `interface`"), ("interface a/1 { }", "no version"), ("interface a/1.0 {", "found"),
            ("interface a/1.0 {\n m ? x:nope; }", "line 2"), ("interface a/1.0 { m; m; }", "there already"),
            ("interface a/1.0 { m ? [x:u32] & y:u32; }", "optional"), ("interface a/1.0 { record r { } }", "no fields"),
            ("interface a/1.0 { record r { x: list<u32>; } }", "hold not"), ("interface a/1.0 { } x", "the end"),
            ("interface é/1.0 { }", "unexpected"),
            ("interface a/1.0 { m ? x:list<list<list<list<list<u32>>>>>; }", "deeply"),
        ]:
            with self.subTest(text=wrong), self.assertRaisesRegex(XifError, part):
                Interface.parse(wrong)

    def test_arbitrary_text_is_an_interface_or_refused(self):
        source, generator = (INTERFACES / "finder.xif").read_text(), random.Random(3)
        for _ in range(150):
            broken = list(source)
            for _ in range(generator.randrange(1, 5)):
                at = generator.randrange(len(broken))
                some = generator.choices("{}<>/;:?&[]-@ x1.\x00é", k=generator.randrange(4))
                broken[at:at + generator.randrange(40)] = some
            try:
                Interface.parse("".join(broken))
            except XifError:
                pass

    def test_records_are_not_nested_without_end(self):
        records = "record r0 { x: u32; }" + "".join(
            f"record r{n} {{ x: r{n - 1}; y: r{n - 1}; }}" for n in range(1, 200))
        with self.assertRaisesRegex(XifError, "deeply"):
            Interface.parse(f"interface a/1.0 {{ {records} }}")

    def test_a_newer_minor_version_answers_an_older_caller(self):
        self.assertIsNotNone(text.find_method([PROBE], "probe/1.0/add"))
        self.assertIsNotNone(text.find_method([PROBE], "probe/1.2/add"))
        for path in ["probe/1.3/add", "probe/2.0/add", "probe/1.2/nope", "other/1.0/add", "probe", "//", "a/b/c/d"]:
            self.assertIsNone(text.find_method([PROBE], path))


class Ranges(unittest.TestCase):
    def limits(self, rules, method="echo"):
        return Limits(rules, PROBE.methods[method], PROBE)

    def allows(self, rules, method="echo", **values):
        try:
            self.limits(rules, method).check(values)
        except BadArgs:
            return False
        return True

    def test_arguments_must_be_in_a_range(self):
        self.assertTrue(self.allows("u=1..9|20", u=9) and self.allows("u=1..9|20", u=20))
        self.assertFalse(self.allows("u=1..9|20", u=10))
        self.assertTrue(self.allows("il=-5..-1", il=-3) and not self.allows("il=-5..-1", il=0))
        self.assertTrue(self.allows("t=ethernet:*:0xc0de", t="ethernet:eth0:0xc0de"))
        self.assertFalse(self.allows("t=ethernet:*:0xc0de", t="udp:ethernet:x:0xc0de"))
        self.assertTrue(self.allows("t=a*c*e", t="abcde") and not self.allows("t=a*c*e", t="abde"))
        self.assertTrue(self.allows("t=a%20b", t="a b") and not self.allows("t=ab", t="a b"))
        self.assertTrue(self.allows("", u=3) and self.allows("note=x", note=None))

    def test_addresses_must_be_inside_of_a_prefix(self):
        address, interface = ipaddress.ip_address, ipaddress.ip_interface
        self.assertTrue(self.allows("ip=10.0.0.0/8|2001:db8::/32", ip=address("10.1.2.3")))
        self.assertTrue(self.allows("ip=10.0.0.0/8|2001:db8::/32", ip=address("2001:db8::1")))
        self.assertFalse(self.allows("ip=10.0.0.0/8", ip=address("11.0.0.1")))
        self.assertFalse(self.allows("ip=10.0.0.0/8", ip=address("::ffff:10.0.0.1")))
        self.assertTrue(self.allows("net=10.0.0.0/8", net=interface("10.1.0.0/16")))
        self.assertFalse(self.allows("net=10.0.0.0/8", net=interface("0.0.0.0/0")))

    def test_every_record_of_a_list_is_looked_at(self):
        route = {"net": ipaddress.ip_interface("10.1.0.0/16"), "nexthop": ipaddress.ip_address("::1"),
                 "metric": 3, "comment": ""}
        far = {**route, "net": ipaddress.ip_interface("11.0.0.0/8")}
        rules = "routes.net=10.0.0.0/8 routes.metric=0..3"
        self.assertTrue(self.allows(rules, "take", routes=[route, route]))
        self.assertFalse(self.allows(rules, "take", routes=[route, far]))
        self.assertFalse(self.allows(rules, "take", routes=[{**route, "metric": 4}]))
        self.assertTrue(self.allows("list=a|b", list=[["a"], ["b", "a"]]))
        self.assertFalse(self.allows("list=a|b", list=[["a"], ["c"]]))

    def test_rules_that_do_not_fit_the_method_are_refused(self):
        for rules in ["nope=1", "u", "u.x=1", "route=1", "route.nope=1", "route.net"]:
            with self.subTest(rules=rules), self.assertRaises(BadArgs):
                self.limits(rules)


class Frames(unittest.TestCase):
    FRAMES = [
        wire.Hello(1, 64, wire.NOTHING, b""),
        wire.Hello(1, 64, wire.SECRET, b"s" * 32),
        wire.Hello(1, 64, wire.TICKET, b"t" * 16),
        wire.Welcome(1, 64, "operator"),
        wire.Bind(7, b"k" * 16),
        wire.Name(7, "finder/1.0/resolve"),
        wire.Call(7, 9, 1000, b"a:u32=1"),
        wire.Call(7, 9, 1000, b"\x02\x01\x00\x00\x00", False),
        wire.Reply(9, b"a:u32=1"),
        wire.Reply(9, b"", False),
    ]

    def test_frames_come_back(self):
        for frame in self.FRAMES:
            self.assertEqual(wire.parse(frame.emit()), frame)
        failed = wire.parse(wire.Failed(9, BadArgs("no")).emit())
        self.assertEqual((failed.id, type(failed.error), failed.error.note), (9, BadArgs, "no"))
        goodbye = wire.parse(wire.Goodbye(BadArgs("no")).emit())
        self.assertEqual(str(goodbye.error), "101 BAD_ARGS: no")

    def test_the_first_bytes_are_those_of_the_protocol(self):
        self.assertEqual(self.FRAMES[0].emit().hex(), "0101004000000000")
        self.assertEqual(wire.Call(2, 3, 4, b"x").emit().hex(), "090200030000000400000078")
        self.assertEqual(wire.Reply(3, b"x").emit().hex(), "0a0300000078")
        self.assertEqual(wire.Failed(3, BadArgs("x")).emit().hex(), "0703000000650078")

    def test_arbitrary_bytes_are_a_frame_or_refused(self):
        generator = random.Random(4)
        samples = [frame.emit() for frame in self.FRAMES]
        for _ in range(3000):
            data = bytearray(generator.choice(samples))
            for _ in range(generator.randrange(3)):
                data[generator.randrange(len(data))] = generator.randrange(256)
            cut = bytes(data[:generator.randrange(len(data) + 1)]) if generator.random() < 0.5 else bytes(data)
            try:
                wire.parse(cut)
            except wire.ProtocolError:
                pass

    def test_what_the_finder_calls_is_read_or_refused(self):
        client = Interface.parse((INTERFACES / "finder_client.xif").read_text())
        fields = client.methods["grant"].args

        def txt(tag, data):
            return bytes([tag]) + struct.pack("<I", len(data)) + data

        good = (txt(8, b"census") + txt(8, b"xia") + b"\x0d" + struct.pack("<Q", 1 << 60)
                + b"\x02" + struct.pack("<I", 7) + b"\x02" + struct.pack("<I", 0)
                + txt(11, b"t" * 16) + txt(11, b"k" * 16) + txt(8, b"census/1.0/counts") + txt(8, b""))
        values = wire.read_binary(good, fields)
        self.assertEqual((values["session"], values["pid"], values["key"]), (1 << 60, 7, b"k" * 16))
        revoke = client.methods["revoke"].args
        session = b"\x0d" + struct.pack("<Q", 9)
        for more, values in ((b"", {"session": 9}), (b"\x00", {"session": 9}), (b"\x0a\x01", {"session": 9, "removed": True})):
            self.assertEqual(wire.read_binary(session + more, revoke), values)
        for wrong in (b"\x0a\x02", b"\x0a", b"\x02\x01"):
            with self.assertRaises(wire.ProtocolError):
                wire.read_binary(session + wrong, revoke)
        generator = random.Random(5)
        for _ in range(2000):
            data = bytearray(good)
            data[generator.randrange(len(data))] = generator.randrange(256)
            try:
                wire.read_binary(bytes(data[:generator.randrange(len(data) + 1)]), fields)
            except wire.ProtocolError:
                pass


class Statements(unittest.TestCase):
    def test_statements_have_words_blocks_and_places(self):
        source = 'config { # remark\n  log 10; name "a \\"b\\" \\u{e9}"; // more\n /* and */ in { } }'
        (config,) = parse_statements(source, "n.conf", 7)
        self.assertEqual(config.words, ["config"])
        self.assertEqual([one.words for one in config.block], [["log", "10"], ["name", 'a "b" é'], ["in"]])
        self.assertEqual(str(config.block[0].error("no")), "102 COMMAND_FAILED: n.conf:8:3: no")
        self.assertEqual(parse_statements(""), [])

    def test_mistakes_have_places(self):
        for wrong in ["a", "a {", "}", ";", "a { b }", 'a "b', 'a "\\x";', "a é;", "a { ;", "{ }", "a { " * 1000]:
            with self.subTest(text=wrong[:20]), self.assertRaisesRegex(ConfigError, "t:1:"):
                parse_statements(wrong, "t")


if __name__ == "__main__":
    unittest.main()
