"""The datagrams of `examples/hearsay`: the same bytes as in `control/example/src/tests.rs`."""

import importlib.util
import ipaddress
import random
import unittest

from support import ROOT

spec = importlib.util.spec_from_file_location("hearsay", ROOT / "examples" / "hearsay" / "hearsay.py")
hearsay = importlib.util.module_from_spec(spec)
spec.loader.exec_module(hearsay)

BYTES = bytes([1, 1, 0x0F, 0xA0, 10, 0, 1, 2, 192, 0, 2, 0, 24, 0, 203, 0, 113, 128, 25, 16])
HEARD = [ipaddress.IPv4Address("10.0.1.2")]
ROUTES = [(ipaddress.IPv4Network("192.0.2.0/24"), 0), (ipaddress.IPv4Network("203.0.113.128/25"), 16)]


class Datagrams(unittest.TestCase):
    def test_a_hello_has_these_bytes(self):
        self.assertEqual(hearsay.write(4.0, HEARD, ROUTES), [BYTES])
        self.assertEqual(hearsay.parse(BYTES), (4.0, HEARD, ROUTES))

    def test_what_is_cut_off_is_refused_unless_whole_routes_are_missing(self):
        for end in range(len(BYTES)):
            if end in (8, 14):
                hearsay.parse(BYTES[:end])
            else:
                self.assertRaises(ValueError, hearsay.parse, BYTES[:end])

    def test_many_routes_need_several_datagrams(self):
        routes = [(ipaddress.IPv4Network((number << 8, 24)), 1) for number in range(500)]
        datagrams = hearsay.write(1.0, HEARD, routes)
        self.assertTrue(all(len(one) <= hearsay.LONGEST for one in datagrams))
        self.assertEqual([route for one in datagrams for route in hearsay.parse(one)[2]], routes)
        self.assertEqual(len(hearsay.write(1.0, [], [])), 1)

    def test_any_bytes_are_read_or_refused(self):
        source = random.Random(7)
        for _ in range(2000):
            data = bytes([1, source.randrange(3)]) + source.randbytes(source.randrange(40))
            try:
                hold, heard, routes = hearsay.parse(data)
            except ValueError:
                continue
            self.assertEqual(hearsay.write(hold, heard, routes), [data])


if __name__ == "__main__":
    unittest.main()
