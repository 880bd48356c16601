"""Datagram sockets of XIA: a program's way to the XIA node on its machine.

    from weft.xia import Socket

    with Socket("/run/weft/host/xia.sock") as socket:
        print("others reach this socket at", socket.address)
        socket.send(b"hello", "hid-0123…-1:xdp-9876…-0")
        data, source = socket.recv(timeout=1.0)

Addresses are texts, as everywhere in weft ("Addresses" in its handbook). A socket is used by one thread at
a time and has a ``fileno()`` for ``select`` and ``asyncio``; it stands on weft.flow. The messages are those of
the handbook's chapter "Applications".
"""

import re
import time

from weft.flow import Closed, Flow, FlowError, TimedOut

__all__ = ["Closed", "FlowError", "Refused", "Socket", "TimedOut", "emit", "parse"]

#: How far a datagram goes if nothing else is said, in hops.
HOP_LIMIT = 128

_TYPES = {
    "ad": 0x10,
    "hid": 0x11,
    "cid": 0x12,
    "sid": 0x13,
    "uni4id": 0x14,
    "united4id": 0x14,
    "i4id": 0x15,
    "u4id": 0x16,
    "xdp": 0x17,
    "serval": 0x18,
    "flowid": 0x19,
    "ether": 0x1A,
    "u6id": 0x1B,
    "zf": 0x20,
    "lpm": 0x21,
}
_NAMES = {number: name for name, number in _TYPES.items() if name != "united4id"}
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_NO_EDGE, _CHOSEN = 0x7F, 0x80
_ROW, _MOST_ROWS = 28, 9
_TEXT_OF_ROW = re.compile(
    r"(?P<type>0x[0-9a-f]{1,8}|[a-z][a-z0-9]*)-(?P<id>[0-9a-f]{40})(?:-(?P<edges>(?:>?[0-9a-z*]){1,4}))?"
)


class Refused(OSError):
    """The node refused something; the text says what and why."""


def _number(name):
    if name.startswith("0x"):
        return int(name, 16)
    if name not in _TYPES:
        raise ValueError(f"{name!r} is no type of XID: write its number, such as 0x17")
    return _TYPES[name]


def parse(text):
    """The rows of an address, as they are in messages; ``text`` may be one XID alone."""
    rows = []
    parts = text.strip().lower().removeprefix("!").split(":")
    for part in parts:
        row = _TEXT_OF_ROW.fullmatch(part.strip())
        if row is None:
            raise ValueError(f"{part.strip()!r} in {text!r} is no row of an address: TYPE-ID-EDGES")
        edges = row["edges"] or ("0" if len(parts) == 1 else "")
        marked = re.findall(r"(>?)(.)", edges)
        codes = [
            (_NO_EDGE if edge == "*" else _DIGITS.index(edge)) | (_CHOSEN if mark else 0)
            for mark, edge in marked
        ]
        codes += [_NO_EDGE] * (4 - len(codes))
        rows.append(_number(row["type"]).to_bytes(4) + bytes.fromhex(row["id"]) + bytes(codes))
    if len(rows) > _MOST_ROWS:
        raise ValueError(f"an address has at most {_MOST_ROWS} rows and not {len(rows)}")
    return b"".join(rows)


def emit(rows):
    """The text of an address that came in a message."""
    if not rows or len(rows) % _ROW or len(rows) > _ROW * _MOST_ROWS:
        raise ValueError(f"{len(rows)} bytes are no rows of an address")
    parts = []
    for begin in range(0, len(rows), _ROW):
        row = rows[begin : begin + _ROW]
        number = int.from_bytes(row[:4])
        text = f"{_NAMES.get(number, hex(number))}-{row[4:24].hex()}"
        edges = list(row[24:])
        while edges and edges[-1] == _NO_EDGE:
            edges.pop()
        if edges:
            text += "-" + "".join(map(_edge, edges))
        parts.append(text)
    return ":".join(parts)


def _edge(code):
    number = code & ~_CHOSEN
    if number != _NO_EDGE and number >= len(_DIGITS):
        raise ValueError(f"an edge leads to row {number}, which no address has")
    return (">" if code & _CHOSEN else "") + ("*" if number == _NO_EDGE else _DIGITS[number])


def _bind_message(bind):
    text = bind.strip().lower()
    if re.fullmatch(r"0x[0-9a-f]{1,8}|[a-z][a-z0-9]*", text):
        return b"\x01\x02" + _number(text).to_bytes(4)
    if ":" not in text and re.fullmatch(r"[^-]+-[0-9a-f]{40}", text):
        return b"\x01\x01" + parse(text)[:24]
    return b"\x01\x00" + parse(text)


class Socket:
    """A datagram socket of the node whose socket is at ``path``.

    ``bind`` is an address, which becomes the socket's own; or an XID, which the node completes by its own
    address; or a type of XID, of which the node chooses one and completes it. ``timeout`` (seconds) is how
    long to wait for a node that does not answer.
    """

    def __init__(self, path, bind="xdp", *, timeout=5.0):
        request = _bind_message(bind)
        self.hop_limit = HOP_LIMIT
        self._flow = Flow(path, timeout=timeout)
        try:
            self._bind(request, timeout)
        except BaseException:
            self.close()
            raise

    def _bind(self, request, timeout):
        self._flow.send(request, timeout)
        kind, answer = self._receive(timeout)
        if kind != 0x81:
            raise Refused(f"the node answered a bind with a message of kind {kind:#04x}")
        #: The address that others reach this socket by.
        self.address = emit(answer)

    def send(self, data, to, timeout=None):
        """Sends a datagram to an address. That it left says nothing about its arrival."""
        rows = parse(to)
        front = bytes([0x02, self.hop_limit, len(rows) // _ROW])
        self._flow.send(front + rows + bytes(data), timeout)

    def recv(self, timeout=None):
        """Waits for a datagram (seconds; None: for ever; 0: not at all); returns its payload and its
        source, which is None if the sender gave none. Refused tells that an earlier datagram could not
        leave the node; it can be called again."""
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            left = None if end is None else max(0.0, end - time.monotonic())
            kind, body = self._receive(left)
            if kind == 0x83 and body and len(body) > body[0] * _ROW:
                rows, data = body[1 : 1 + body[0] * _ROW], body[1 + body[0] * _ROW :]
                return data, emit(rows) if rows else None

    def fileno(self):
        """The descriptor to wait for before recv(timeout=0), which has to be called until it raises
        TimedOut before the descriptor is waited for again."""
        return self._flow.fileno()

    def reattach(self, timeout=None):
        """After Closed: waits for the node to return, and binds to the same address."""
        self._flow.reattach(timeout)
        self._bind(_bind_message(self.address), timeout)

    def close(self):
        """Closes the socket. What was sent still leaves the node."""
        self._flow.close()

    def _receive(self, timeout):
        message = self._flow.recv(timeout)
        kind, body = message[0], message[1:]
        if kind in (0x82, 0x85):
            raise Refused(body.decode(errors="replace"))
        return kind, body

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
