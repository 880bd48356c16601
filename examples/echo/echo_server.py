#!/usr/bin/env python3
"""Sends every datagram back to where it came from: echo_server.py NODE [BIND]

NODE is the path of the node's socket, /run/weft/NAME/xia.sock. BIND is what to be reached by: a sink such as
xdp-<40 hex digits>, or a whole address; without it the node draws a sink at random.
"""

import sys

from weft.xia import Closed, Refused, Socket, XiaError


def main(node, bind="xdp"):
    with Socket(node, bind) as socket:
        print("echoing at", socket.address, flush=True)
        while True:
            try:
                data, source = socket.recv()
                # Without the address of its sender a datagram cannot be answered.
                if source:
                    socket.send(data, source)
            except Refused:
                pass  # An answer could not leave the node, and that was all.
            except Closed:
                print("the node went away; waiting for it to return", file=sys.stderr)
                socket.reattach()


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(f"usage: {sys.argv[0]} NODE [BIND]")
    try:
        main(*sys.argv[1:])
    except (XiaError, ValueError) as error:
        sys.exit(f"{sys.argv[0]}: {error}")
    except KeyboardInterrupt:
        pass
