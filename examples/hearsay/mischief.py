#!/usr/bin/env python3
"""A program that does what no protocol should: it crashes, loops, floods or talks nonsense.

    mischief.py crash|loop|flood|nonsense

`mischief.lab` shows that a node does not mind. What a program may call, its access list says; what it may tell the
RIB, a guard does.
"""

import ipaddress
import logging
import os
import pathlib
import random
import socket
import sys
import time

# In the source tree the package stands beside the examples.
sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "bindings" / "python"))

from weft.xrl import Component, Node, XrlError, inherited  # noqa: E402

XIF = "interface mischief/1.0 { nothing; }"
ORIGIN = "rib/1.1/open_origin"


def crash(_node: Node, _name: str) -> None:
    """Dies in the middle of what it does."""
    os.abort()


def loop(_node: Node, _name: str) -> None:
    """Never answers anything any more."""
    while True:
        pass


def flood(node: Node, name: str) -> None:
    """Tells and takes back as fast as it is let, far more than it may, and what it has never told."""
    origin = node.call("rib", ORIGIN, protocol=name, external=False, distance=5)["origin"]
    nets = [ipaddress.ip_interface(f"198.19.{third}.{fourth}/32") for third in range(8) for fourth in range(256)]
    hops = [{"set": 16, "gateway": "10.0.1.2", "interface": 0, "weight": 1}]
    pendings = []
    while True:
        random.shuffle(nets)
        routes = [{"net": net, "set": 16, "metric": 1, "tag": 0} for net in nets[:500]]
        pendings.append(node.begin("rib", "rib/1.1/change", timeout=60, origin=origin, hops=hops,
                                   routes=routes, gone=nets[500:]))
        while len(pendings) > 64:
            node.wait(pendings.pop(0), timeout=60)


def nonsense(node: Node, name: str) -> None:
    """Calls what it may not, with what makes no sense, and speaks no XRL at all."""
    node.call("rib", ORIGIN, protocol=name, external=False, distance=5)
    wrong = [
        "finder://rib/rib/1.1/open_origin?protocol:txt=bgp&external:bool=false&distance:u32=1",
        "finder://rib/rib/1.1/open_origin?protocol:txt=nonsense&external:bool=true&distance:u32=999",
        "finder://rib/rib/1.1/end?origin:u32=1",
        "finder://rib/rib/1.1/change?origin:u32=4000000000&hops:list<hop>=&routes:list<route>=&gone:list<ipnet>=",
        "finder://rib/rib/1.1/change?origin:txt=one",
        "finder://manager/manager/1.0/signal?instance:txt=bgp&number:u32=9",
        "finder://bgp/bgp/1.1/clear",
        "finder://fea/fea/1.0/open_relay?spec:txt=group:outside:224.0.0.9:520",
    ]
    refused = 0
    while True:
        for one in wrong:
            try:
                node.call(one)
                logging.error("this was carried out: %s", one)
                return
            except (XrlError, ValueError):
                refused += 1
        for name in ("xrl-rib", "xrl-finder", "xrl-bgp"):
            with socket.socket(socket.AF_UNIX) as raw:
                try:
                    raw.settimeout(1)
                    raw.connect(os.path.join(node.run_dir, name))
                    raw.send(random.randbytes(random.choice([1, 64, 4096])))
                except OSError:
                    pass
        if refused % 800 == 0:
            logging.warning("refused %d times", refused)
            time.sleep(0.01)


def main() -> None:
    given = inherited()
    what = {"crash": crash, "loop": loop, "flood": flood, "nonsense": nonsense}[sys.argv[1]]
    logging.basicConfig(format=f"{given.instance}: %(message)s")
    with Node(given.run_dir, secret=given.secret, timeout=30) as node:
        name = given.instance
        with Component(node, name, name, XIF, {"mischief/nothing": lambda *_: None},
                       listen=next(iter(given.listeners.values()), None)):
            logging.warning("begins")
            what(node, name)


if __name__ == "__main__":
    main()
