#!/usr/bin/env python3
"""A neighbour that speaks hearsay badly: bytes that are none, and ten thousand routes that come and go.

    noise.py INTERFACE ADDRESS     the interface, and the address of the router whose neighbour it is
"""

import itertools
import random
import socket
import sys
import time

GROUP = ("224.0.0.254", 1021)


def hello(router: str, third: int, hops: int) -> bytes:
    """A hello with 190 routes below 198.18.0.0/15."""
    head = bytes([1, 1]) + (4000).to_bytes(2) + socket.inet_aton(router)
    return head + b"".join(bytes([198, 18, third, fourth, 32, hops]) for fourth in range(190))


def main() -> None:
    interface, router = sys.argv[1:]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
        sender.bind(("", GROUP[1]))
        for turn in itertools.count():
            for third in range(50):
                sender.sendto(hello(router, third, turn % 2 * 16), GROUP)
                sender.sendto(random.randbytes(random.randrange(1, 1400)), GROUP)
                time.sleep(0.001)
            if turn == 3:
                print("four turns are over", flush=True)


if __name__ == "__main__":
    main()
