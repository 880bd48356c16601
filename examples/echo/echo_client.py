#!/usr/bin/env python3
"""Sends each line of standard input as a datagram, and prints what comes back and from where:
echo_client.py NODE SERVER [ANSWERS]

NODE is the path of the node's socket, /run/weft/NAME/xia.sock. SERVER is the address that an echo server prints,
or one that leads to several through a zFilter; then ANSWERS says how many answers each line has. A datagram may
be lost: when a node has said that it was dropped, or after two seconds, the client says so and goes on with the next
line; it ends with status 1.
"""

import sys
import time

from weft.xia import Refused, Socket, TimedOut, XiaError

PATIENCE = 2.0


def answers(socket, line, wanted):
    """Prints the answers to a line; returns how many there were."""
    end = time.monotonic() + PATIENCE
    found = 0
    while found < wanted:
        try:
            data, source = socket.recv(max(0.0, end - time.monotonic()))
        except TimedOut:
            break
        # A late answer to an earlier line is none to this one.
        if data == line:
            print(f"{line.decode(errors='replace')} (from {source or 'nobody'})", flush=True)
            found += 1
    return found


def main(node, server, wanted="1"):
    status = 0
    with Socket(node) as socket:
        for line in sys.stdin.buffer:
            line = line.rstrip(b"\n")
            socket.send(line, server)
            try:
                found = answers(socket, line, int(wanted))
            except Refused as error:
                print(f"{line.decode(errors='replace')}: {error}", file=sys.stderr)
                status = 1
                continue
            if found < int(wanted):
                text = line.decode(errors="replace")
                print(f"{text}: {found} of {wanted} answers", file=sys.stderr)
                status = 1
    return status


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(f"usage: {sys.argv[0]} NODE SERVER [ANSWERS]")
    try:
        sys.exit(main(*sys.argv[1:]))
    except (XiaError, ValueError) as error:
        sys.exit(f"{sys.argv[0]}: {error}")
