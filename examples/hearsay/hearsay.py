#!/usr/bin/env python3
"""Hearsay in Python: the routing protocol of `control/example`, as a program of others.

The node starts it if the node file names it (README.md). Everything that it does it does by XRLs: the FEA relays
its datagrams and tells it of interfaces, the RIB takes its routes, and each of these only as far as its access list
goes. `weft show protocol hearsay-py` shows its state.

Reference: `control/example/src/wire.rs` has the form of the datagrams, `control/example/src/lib.rs` the rules.
"""

import argparse
import ipaddress
import json
import logging
import pathlib
import re
import signal
import struct
import sys
import time

# In the source tree the package stands beside the examples.
sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "bindings" / "python"))

from weft.xrl import BadArgs, Component, Node, XrlError, inherited, parse_statements  # noqa: E402

INTERFACE = pathlib.Path(__file__).resolve().parents[2] / "interfaces" / "protocol.xif"

#: The group and the port of RFC 4727.
GROUP = "224.0.0.254:1021"
VERSION, INFINITY = 1, 16
#: Routes of a neighbour, and bytes of a datagram, at most.
MOST_ROUTES, LONGEST = 10_000, 1200
#: How many hellos a neighbour may miss, and how often what goes is told as out of reach.
HOLD = 4
#: When what has failed is tried again, in seconds.
AGAIN = 1.0

SCHEMA = """\
version 1;
container config {
    leaf-list interface interface { help "an interface on which there may be neighbours"; }
    leaf-list network prefix { help "a network of IPv4 that neighbours are told"; }
    leaf hello duration { range 100ms 15s; default 1s; help "how often everything is told"; }
    leaf distance number { range 1 254; default 130; help "how little its routes are trusted"; }
}
"""


def parse(data: bytes) -> tuple[float, list, list]:
    """How long a hello holds, whom its sender hears, and its routes. Raises ValueError."""
    if len(data) < 4 or data[0] != VERSION:
        raise ValueError("it is no hello of this version")
    count, hold = data[1], int.from_bytes(data[2:4])
    end = 4 + 4 * count
    if count > 128 or len(data) < end or (len(data) - end) % 6:
        raise ValueError("it has not as many bytes as it says")
    heard = [ipaddress.IPv4Address(data[at:at + 4]) for at in range(4, end, 4)]
    routes = []
    for address, length, hops in struct.iter_unpack("!4sBB", data[end:]):
        if hops > INFINITY:
            raise ValueError(f"{hops} hops are more than out of reach")
        routes.append((ipaddress.IPv4Network((address, length)), hops))
    return hold / 1000, heard, routes


def write(hold: float, heard: list, routes: list) -> list[bytes]:
    """The datagrams of a hello, one at least."""
    head = bytes([VERSION, len(heard[:128])]) + round(hold * 1000).to_bytes(2)
    head += b"".join(address.packed for address in heard[:128])
    told = [net.network_address.packed + bytes([net.prefixlen, hops]) for net, hops in routes]
    most = (LONGEST - len(head)) // 6
    return [head + b"".join(told[at:at + most]) for at in range(0, max(len(told), 1), most)]


class Neighbour:
    """What a router has said."""

    def __init__(self) -> None:
        self.until = 0.0
        #: Until when it counts as one that hears this router; 0 if it does not. What it said holds as long as a hello does.
        self.hears_us = 0.0
        self.routes: dict = {}


class Link:
    """A link on which hearsay is spoken."""

    def __init__(self, index: int, name: str, own: ipaddress.IPv4Interface) -> None:
        self.index, self.name, self.own = index, name, own
        self.relay: int | None = None
        self.is_opening = False


class Hearsay:
    """The protocol."""

    def __init__(self, node: Node, name: str) -> None:
        self.node, self.name = node, name
        self.interfaces: set[str] = set()
        self.networks: set[ipaddress.IPv4Network] = set()
        self.hello, self.distance = 1.0, 130
        self.configured: float | None = None
        self.known: dict[int, tuple[str, ipaddress.IPv4Interface]] = {}
        self.links: dict[int, Link] = {}
        self.neighbours: dict[tuple[int, ipaddress.IPv4Address], Neighbour] = {}
        self.best: dict[ipaddress.IPv4Network, tuple[int, int, ipaddress.IPv4Address]] = {}
        self.gone: dict[ipaddress.IPv4Network, int] = {}
        self.changed: set[ipaddress.IPv4Network] = set()
        self.origin: int | None = None
        self.has_ended = False
        #: What is done when: a function by the time.
        self.timers: dict = {}
        self.next_hello = 0.0

    # Calls whose answers come later.

    def call(self, then, target: str, path: str, **arguments) -> None:
        """Makes a call; `then` gets what it returns, or the error."""
        try:
            pending = self.node.begin(target, path, timeout=60, **arguments)
        except XrlError as error:
            return self.node.enqueue(lambda error=error: then(None, error))

        def answered(one) -> None:
            if one.error:
                return then(None, one.error)
            then(self.node.wait(one), None)

        pending.then = lambda one: self.node.enqueue(lambda: answered(one))

    def later(self, what, seconds: float = AGAIN) -> None:
        self.timers[what] = time.monotonic() + seconds

    # The FEA: interfaces and datagrams.

    def fea_born(self, _class: str, _instance: str) -> None:
        self.known.clear()
        self.links.clear()
        self.watch(True)

    def watch(self, begin: bool = True) -> None:
        self.call(self.interfaces_told, "fea", "fea/1.0/watch_interfaces", begin=begin, at_most=64,
                  wait=20_000)

    def interfaces_told(self, told, error) -> None:
        if error:
            return self.later(self.watch)
        if told["again"]:
            self.known.clear()
        for index in told["gone"]:
            self.known.pop(index, None)
        for one in told["interfaces"]:
            own = [address["address"] for address in told["addresses"]
                   if address["interface"] == one["index"] and address["address"].version == 4]
            self.known.pop(one["index"], None)
            if one["running"] and own:
                self.known[one["index"]] = one["name"], own[0]
        self.settle_links()
        self.watch(False)

    def settle_links(self) -> None:
        """Speaks on the links of the configuration, and on no others."""
        wanted = {index: one for index, one in self.known.items() if one[0] in self.interfaces}
        for index, link in list(self.links.items()):
            if wanted.get(index) != (link.name, link.own):
                del self.links[index]
                self.lose([one for one in self.neighbours if one[0] == index])
                if link.relay is not None:
                    self.call(lambda *_: None, "fea", "fea/1.0/close_relay", relay=link.relay)
        for index, (name, own) in wanted.items():
            link = self.links.setdefault(index, Link(index, name, own))
            if link.relay is None and not link.is_opening:
                link.is_opening = True
                self.call(lambda told, error, link=link: self.opened(link, told, error), "fea",
                          "fea/1.0/open_relay", spec=f"group:{name}:{GROUP}")

    def opened(self, link: Link, told, error) -> None:
        link.is_opening = False
        if self.links.get(link.index) is not link:
            return
        if error:
            logging.warning("%s: %s", link.name, error)
            return self.later(self.settle_links)
        link.relay = told["relay"]
        self.soon()
        self.receive(link)

    def receive(self, link: Link) -> None:
        self.call(lambda told, error: self.received(link, told, error), "fea",
                  "fea/1.0/receive_packets", relay=link.relay, at_most=64, wait=20_000)

    def received(self, link: Link, told, error) -> None:
        if self.links.get(link.index) is not link:
            return
        if error:
            link.relay = None
            return self.later(self.settle_links)
        for packet in told["packets"]:
            try:
                self.hear(link, packet["peer"], packet["bytes"])
            except ValueError as wrong:
                logging.info("%s: %s: %s", link.name, packet["peer"], wrong)
        self.receive(link)

    # What neighbours say.

    def hear(self, link: Link, peer: str, data: bytes) -> None:
        address, _, port = peer.rpartition(":")
        address = ipaddress.IPv4Address(address)
        if address not in link.own.network or address == link.own.ip or port != "1021":
            return
        hold, heard, routes = parse(data)
        key = link.index, address
        if not hold:
            return self.lose([key])
        now, is_new = time.monotonic(), key not in self.neighbours
        one = self.neighbours.setdefault(key, Neighbour())
        says_so, nets = link.own.ip in heard, {net for net, _ in routes}
        did, one.until = bool(one.hears_us), now + hold
        if says_so:
            one.hears_us = one.until
        elif one.hears_us <= now:
            one.hears_us = 0.0
        is_other = is_new or did != bool(one.hears_us)
        if is_other:
            nets.update(one.routes)
        if is_other or not says_so:
            # Who does not hear this router may at its next word.
            self.soon()
        for net, hops in routes:
            if hops < INFINITY and (net in one.routes or len(one.routes) < MOST_ROUTES):
                one.routes[net] = hops, one.until
            elif hops == INFINITY:
                one.routes.pop(net, None)
        self.settle(nets)

    def lose(self, keys: list) -> None:
        lost = [self.neighbours.pop(key) for key in keys if key in self.neighbours]
        self.settle({net for one in lost for net in one.routes})

    def settle(self, nets) -> None:
        """Finds the best routes: the shortest, of several that of the first neighbour."""
        for net in nets:
            ways = [(one.routes[net][0] + 1, *key) for key, one in self.neighbours.items()
                    if one.hears_us and net in one.routes and one.routes[net][0] + 1 < INFINITY]
            best = min(ways) if ways and net not in self.networks else None
            if best != self.best.get(net):
                self.best.pop(net, None)
                if best:
                    self.best[net] = best
                self.gone[net] = HOLD
                self.changed.add(net)
        if self.changed:
            self.soon()
            self.tell_rib()

    def soon(self) -> None:
        self.next_hello = min(self.next_hello, time.monotonic() + 0.05)

    def expire(self) -> None:
        now = time.monotonic()
        self.lose([key for key, one in self.neighbours.items() if one.until <= now])
        old = set()
        for one in self.neighbours.values():
            nets = [net for net, (_, until) in one.routes.items() if until <= now]
            old.update(nets)
            for net in nets:
                del one.routes[net]
            if one.hears_us and one.hears_us <= now:
                one.hears_us = 0.0
                old.update(one.routes)
        self.settle(old)

    def say(self, hold: float) -> None:
        """Tells all neighbours everything."""
        for link in self.links.values():
            if link.relay is None:
                continue
            told = dict.fromkeys(self.gone, INFINITY) | dict.fromkeys(self.networks, 0)
            told |= {net: INFINITY if index == link.index else hops
                     for net, (hops, index, _) in self.best.items()}
            heard = [address for index, address in self.neighbours if index == link.index]
            packets = [{"bytes": data, "peer": GROUP} for data in write(hold, heard, sorted(told.items()))]
            self.call(lambda *_: None, "fea", "fea/1.0/send_packets", relay=link.relay, packets=packets)
        self.gone = {net: left - 1 for net, left in self.gone.items() if left > 1}
        self.next_hello = time.monotonic() + self.hello

    # The RIB.

    def rib_born(self, _class: str = "", _instance: str = "") -> None:
        self.origin = None
        self.open_origin()

    def open_origin(self) -> None:
        if self.configured is not None:
            self.call(self.origin_opened, "rib", "rib/1.1/open_origin", protocol=self.name,
                      external=False, distance=self.distance)

    def origin_opened(self, told, error) -> None:
        if error:
            return self.later(self.open_origin)
        self.origin, self.has_ended = told["origin"], False
        self.changed.update(self.best)
        self.tell_rib()

    def tell_rib(self) -> None:
        if self.origin is None:
            return
        hops, routes, gone = [], [], []
        for net in self.changed:
            prefix = ipaddress.ip_interface(net)
            if net not in self.best:
                gone.append(prefix)
                continue
            metric, index, gateway = self.best[net]
            hop = {"set": 16 + len(hops), "gateway": gateway, "interface": index, "weight": 1}
            hops.append(hop)
            routes.append({"net": prefix, "set": hop["set"], "metric": metric, "tag": 0})
        self.changed.clear()
        if routes or gone:
            self.call(self.rib_told, "rib", "rib/1.1/change", origin=self.origin, hops=hops,
                      routes=routes, gone=gone)
        # What neighbours have not said again by then is of an earlier life.
        if not self.has_ended and time.monotonic() >= self.configured + HOLD * self.hello:
            self.has_ended = True
            self.call(self.rib_told, "rib", "rib/1.1/end", origin=self.origin)

    def rib_told(self, _told, error) -> None:
        if error and self.origin is not None:
            self.origin = None
            self.later(self.open_origin)

    # Who asks: the manager, and operators.

    @staticmethod
    def check(source: str, line: int, text: str) -> tuple:
        interfaces, networks, hello, distance = set(), set(), 1.0, 130
        for statement in parse_statements(text, source, line):
            for leaf in statement.block:
                name, *words = leaf.words
                if name == "interface":
                    interfaces.update(words)
                elif name == "network":
                    try:
                        networks.update(ipaddress.IPv4Network(word) for word in words)
                    except ValueError as error:
                        raise leaf.error(f"{error}: give networks of IPv4") from None
                elif name == "hello" and (found := re.fullmatch(r"(\d+)(ms|s)", " ".join(words))):
                    hello = int(found[1]) / (1000 if found[2] == "ms" else 1)
                elif name == "distance" and words and words[0].isdecimal():
                    distance = int(words[0])
                else:
                    raise leaf.error("there are interface, network, hello (as 1s or 500ms) and distance")
        return interfaces, networks, hello, distance

    def configure(self, source: str, line: int, text: str) -> None:
        before = self.networks
        self.interfaces, self.networks, self.hello, self.distance = self.check(source, line, text)
        self.gone |= dict.fromkeys(before - self.networks, HOLD)
        if self.configured is None:
            self.configured = time.monotonic()
        self.later(self.tell_rib, HOLD * self.hello)
        self.rib_born()
        self.settle({net for one in self.neighbours.values() for net in one.routes} | set(self.best))
        self.settle_links()
        self.soon()

    def status(self) -> tuple[bool, str]:
        return self.configured is not None, f"{len(self.neighbours)} neighbours; {len(self.best)} routes"

    def views(self, _args: dict, _caller: str) -> dict:
        return {"views": [{"name": "routes", "help": "the best routes that neighbours have told"},
                          {"name": "neighbours", "help": "the routers that are heard"}]}

    def show(self, args: dict, _caller: str) -> dict:
        name = lambda index: self.known.get(index, ("",))[0]  # noqa: E731
        if args["view"] == "routes":
            columns = ["prefix", "hops", "gateway", "interface"]
            rows = [(str(net), hops, str(gateway), name(index))
                    for net, (hops, index, gateway) in sorted(self.best.items())]
        elif args["view"] == "neighbours":
            columns = ["address", "interface", "hears-us", "routes"]
            rows = [(str(address), name(index), bool(one.hears_us), len(one.routes))
                    for (index, address), one in sorted(self.neighbours.items())]
        else:
            raise BadArgs("there is no such view: say routes or neighbours")
        return {"columns": columns, "rows": json.dumps([dict(zip(columns, row)) for row in rows])}

    def work(self) -> None:
        """Does what is due, and waits for what comes."""
        now = time.monotonic()
        for what in [what for what, at in self.timers.items() if at <= now]:
            del self.timers[what]
            what()
        if self.configured is not None and self.next_hello <= now:
            self.expire()
            self.say(HOLD * self.hello)
        until = min([self.next_hello, *self.timers.values()]) if self.configured is not None else now + 60
        self.node.poll(max(until - time.monotonic(), 0))


def main() -> None:
    given = inherited()
    options = argparse.ArgumentParser(description="hearsay, a small routing protocol")
    options.add_argument("--run-dir", default=given.run_dir, required=not given.run_dir)
    options.add_argument("--instance", default=given.instance or "hearsay-py")
    arguments = options.parse_args()
    logging.basicConfig(format=f"{arguments.instance}: %(message)s")
    is_over = []

    def end(*_) -> None:
        is_over.append(True)
        node.stop()

    with Node(arguments.run_dir, secret=given.secret, timeout=30) as node:
        signal.signal(signal.SIGTERM, end)
        signal.signal(signal.SIGINT, end)
        hearsay = Hearsay(node, arguments.instance)
        handlers = {"protocol/views": hearsay.views, "protocol/show": hearsay.show}
        component = Component(
            node, given.instance or "hearsay-py", arguments.instance, INTERFACE.read_text(), handlers,
            listen=next(iter(given.listeners.values()), None),
            check=hearsay.check, configure=hearsay.configure, schema=SCHEMA, status=hearsay.status,
        )
        with component:
            node.watch("fea", born=hearsay.fea_born)
            node.watch("rib", born=hearsay.rib_born)
            while not is_over:
                hearsay.work()
            hearsay.say(0.0)
            node.poll(0.0)


if __name__ == "__main__":
    main()
