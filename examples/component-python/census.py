#!/usr/bin/env python3
"""A component in Python: it counts births and deaths of a node's components.

The node starts it if the node file names it (README.md). By hand, with the rights of whoever starts it:

    PYTHONPATH=bindings/python examples/component-python/census.py --run-dir /run/weft/r1
"""

import argparse
import logging
import pathlib
import signal
import sys
import time
from collections import Counter, deque

# In the source tree the package stands beside the examples.
sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "bindings" / "python"))

from weft.xrl import Component, Node, inherited, parse_statements  # noqa: E402

INTERFACE = pathlib.Path(__file__).with_name("census.xif")

#: What the configuration may say.
SCHEMA = """\
version 1;
container config {
    leaf log number { range 1 10000; default 100; help "how many events are kept"; }
}
"""


class Census:
    """Births and deaths, counted."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.log: deque = deque(maxlen=100)
        self.last = 0
        self.present: set[tuple[str, str]] = set()
        self.births: Counter = Counter()
        self.deaths: Counter = Counter()

    def born(self, class_: str, instance: str) -> None:
        self.present.add((class_, instance))
        self.births[class_] += 1
        self.note(True, class_, instance)

    def died(self, class_: str, instance: str) -> None:
        self.present.discard((class_, instance))
        self.deaths[class_] += 1
        self.note(False, class_, instance)

    def note(self, born: bool, class_: str, instance: str) -> None:
        self.last += 1
        event = {"number": self.last, "time": time.time(), "born": born}
        self.log.append({**event, "class": class_, "instance": instance})

    # The interface census/1.0.

    def counts(self, args: dict, _caller: str) -> dict:
        present = Counter(class_ for class_, _ in self.present)
        known = {*present, *self.births, *self.deaths}
        classes = sorted(known if args["class"] is None else known & {args["class"]})
        return {"counts": [{"class": one, "present": present[one], "births": self.births[one],
                            "deaths": self.deaths[one]} for one in classes]}

    def events(self, args: dict, _caller: str) -> dict:
        return {"events": [one for one in self.log if one["number"] > (args["after"] or 0)]}

    def pids(self, _args: dict, _caller: str) -> dict:
        # A call to another component, which the node must allow: access "manager/manager/1.0/processes".
        processes = self.node.call("manager", "manager/1.0/processes")["processes"]
        return {"pids": [one["pid"] for one in processes if one["pid"]]}

    def reset(self, _args: dict, _caller: str) -> None:
        self.births.clear()
        self.deaths.clear()
        self.log.clear()

    # The interface component/1.0.

    @staticmethod
    def check(source: str, line: int, text: str) -> int:
        """Reads `config { log NUMBER; }`; returns the number."""
        kept = 100
        for statement in parse_statements(text, source, line):
            for leaf in statement.block:
                if leaf.words[0] != "log" or len(leaf.words) != 2 or leaf.block:
                    raise leaf.error("unknown statement; there is `log NUMBER;`")
                if not leaf.words[1].isdecimal() or not 1 <= int(leaf.words[1]) <= 10_000:
                    raise leaf.error("`log` is how many events are kept, 1 to 10000")
                kept = int(leaf.words[1])
        return kept

    def configure(self, source: str, line: int, text: str) -> None:
        self.log = deque(self.log, maxlen=self.check(source, line, text))

    def status(self) -> tuple[bool, str]:
        return True, f"{len(self.present)} components, {len(self.log)} of {self.log.maxlen} events"


def main() -> None:
    given = inherited()
    options = argparse.ArgumentParser(description="counts births and deaths of a node's components")
    options.add_argument("--run-dir", default=given.run_dir, required=not given.run_dir)
    options.add_argument("--instance", default=given.instance or "census")
    arguments = options.parse_args()
    logging.basicConfig(format=f"{arguments.instance}: %(message)s")
    with Node(arguments.run_dir, secret=given.secret, timeout=30) as node:
        signal.signal(signal.SIGTERM, lambda *_: node.stop())
        signal.signal(signal.SIGINT, lambda *_: node.stop())
        census = Census(node)
        handlers = {f"census/{one.__name__}": one
                    for one in (census.counts, census.events, census.pids, census.reset)}
        # What the node starts may register as what the node file calls it, and as nothing else.
        component = Component(
            node, given.instance or "census", arguments.instance, INTERFACE.read_text(), handlers,
            listen=next(iter(given.listeners.values()), None),
            check=census.check, configure=census.configure, schema=SCHEMA, status=census.status,
        )
        with component:
            node.watch(born=census.born, died=census.died)
            node.serve()


if __name__ == "__main__":
    main()
