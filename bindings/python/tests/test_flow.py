"""weft.flow against a stack that echoes, and closes the flow of one that says "close".

The environment says where it listens (WEFT_FLOW_STACK), and where nobody does (WEFT_FLOW_MISSING);
`cargo test -p weft-flow-c` runs this.
"""

import os
import select
import unittest

from weft import flow

STACK = os.environ.get("WEFT_FLOW_STACK")


@unittest.skipUnless(STACK, "there is no stack to talk to: cargo test -p weft-flow-c")
class FlowTest(unittest.TestCase):
    def test_messages_come_back_as_they_were(self):
        with flow.Flow(STACK) as one:
            for length in (1, 64, 1400, flow.LONGEST):
                message = bytes(at * 7 % 256 for at in range(length))
                self.assertEqual(one.send(message), length)
                self.assertEqual(one.recv(), message)

    def test_a_loop_of_ones_own_waits_for_the_descriptor(self):
        with flow.Flow(STACK) as one:
            with self.assertRaises(flow.TimedOut):
                one.recv(timeout=0)
            one.send(b"hello")
            while True:
                try:
                    self.assertEqual(one.recv(timeout=0), b"hello")
                    break
                except TimeoutError:
                    select.select([one], [], [])

    def test_a_stream_loses_nothing(self):
        data = bytes(at * 11 % 256 for at in range(100_000))
        with flow.Flow(STACK, flow.STREAM, up=4096, down=4096) as one:
            received, sent = b"", 0
            while len(received) < len(data):
                try:
                    sent += one.send(data[sent:], timeout=0) if sent < len(data) else 0
                except flow.TimedOut:
                    pass
                try:
                    received += one.recv(timeout=0)
                except flow.TimedOut:
                    pass
            self.assertEqual(received, data)

    def test_a_stack_that_closes_can_be_attached_to_again(self):
        with flow.Flow(STACK) as one:
            one.send(b"close")
            with self.assertRaises(flow.Closed):
                one.recv()
            one.reattach()
            one.send(b"again")
            self.assertEqual(one.recv(), b"again")

    def test_errors_are_exceptions_that_say_what_to_do(self):
        with self.assertRaisesRegex(flow.NoStack, "is the node running"):
            flow.Flow(os.environ["WEFT_FLOW_MISSING"])
        one = flow.Flow(STACK)
        with self.assertRaisesRegex(flow.FlowError, "at least one byte"):
            one.send(b"")
        with self.assertRaisesRegex(flow.FlowError, "65537 bytes"):
            one.send(bytes(flow.LONGEST + 1))
        one.close()
        one.close()
        with self.assertRaises(flow.Closed):
            one.send(b"x")

    def test_timeouts_are_rounded_up(self):
        inf = float("inf")
        self.assertEqual([flow.milliseconds(t) for t in (None, inf, -inf, -1, 0, 0.0001, 1.5, 1e12)],
                         [-1, -1, 0, 0, 0, 1, 1500, 2**31 - 1])
        self.assertEqual([flow.patience(t) for t in (None, inf, 1.5)], [-1, 2**31 - 1, 1500])
        with self.assertRaises(ValueError):
            flow.milliseconds(float("nan"))

    def test_what_does_not_fit_is_said_and_not_changed(self):
        with self.assertRaisesRegex(ValueError, "NUL"):
            flow.Flow(STACK + "\0.other")
        for wrong in [{"kind": 2**32 + flow.STREAM}, {"up": 2**32}, {"down": -1}]:
            with self.assertRaisesRegex(ValueError, "is not among 0 to"):
                flow.Flow(STACK, **wrong)
        with self.assertRaises(TypeError):
            flow.Flow(STACK, up=4096.5)


if __name__ == "__main__":
    unittest.main()
