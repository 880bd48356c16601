"""What two processes say to each other on a channel: frames with their length in front.

The handbook's chapter on XRLs lists the frames. Calls and replies of this package are text (09, 0a); what
the Finder calls comes with its arguments in binary form, of which the few types are read here.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
import time
from collections import deque
from typing import Any, Callable, Iterable, NamedTuple

from .errors import InternalError, SendFailed, XrlError
from .xif import Field

#: The version of the protocol.
PROTOCOL = 1
#: The most bytes of a frame.
LONGEST_FRAME = 32 << 20
#: The longest frame of somebody who connected and is not known yet.
FIRST_FRAME = 1 << 20
#: How many calls may be sent before the welcome says how many the other side takes.
FIRST_WINDOW = 64
#: Bytes of a key, and of a ticket.
KEY_LEN = 16
#: Bytes of the secret of a process.
SECRET_LEN = 32
#: Bytes of the hash of an operator's public key.
HASH_LEN = 20
#: Credentials in a hello. The last one is what a gateway shows: the ticket of an operator on another machine, and
#: the hash of the operator's key. Number 3 is for the Finder only.
NOTHING, SECRET, TICKET, TICKET_FOR = 0, 1, 2, 4

_CREDENTIAL_LEN = {NOTHING: 0, SECRET: SECRET_LEN, TICKET: KEY_LEN, TICKET_FOR: KEY_LEN + HASH_LEN}
#: How much of the other side's data is read at a time.
_AT_A_TIME = 1 << 16


class ProtocolError(Exception):
    """The other side does not keep to the protocol."""


class Hello(NamedTuple):
    """The first frame of who connects."""

    version: int
    window: int
    credential: int
    data: bytes

    def emit(self) -> bytes:
        return struct.pack("<BHIB", 1, self.version, self.window, self.credential) + self.data


class Welcome(NamedTuple):
    """The answer to a hello."""

    version: int
    window: int
    name: str

    def emit(self) -> bytes:
        return struct.pack("<BHI", 2, self.version, self.window) + self.name.encode()


class Bind(NamedTuple):
    """A number for a key."""

    slot: int
    key: bytes

    def emit(self) -> bytes:
        return struct.pack("<BH", 3, self.slot) + self.key


class Name(NamedTuple):
    """A number for a path; with the Finder only."""

    slot: int
    path: str

    def emit(self) -> bytes:
        return struct.pack("<BH", 4, self.slot) + self.path.encode()


class Call(NamedTuple):
    """A call; the timeout is in milliseconds, 0 is none."""

    slot: int
    id: int
    timeout: int
    args: bytes
    text: bool = True

    def emit(self) -> bytes:
        kind = 9 if self.text else 5
        return struct.pack("<BHII", kind, self.slot, self.id, self.timeout) + self.args


class Reply(NamedTuple):
    """A call was carried out."""

    id: int
    args: bytes
    text: bool = True

    def emit(self) -> bytes:
        return struct.pack("<BI", 10 if self.text else 6, self.id) + self.args


class Failed(NamedTuple):
    """A call was not carried out."""

    id: int
    error: XrlError

    def emit(self) -> bytes:
        return struct.pack("<BI", 7, self.id) + _error(self.error)


class Goodbye(NamedTuple):
    """The connection ends because of this."""

    error: XrlError

    def emit(self) -> bytes:
        return b"\x08" + _error(self.error)


Frame = Hello | Welcome | Bind | Name | Call | Reply | Failed | Goodbye


def _error(error: XrlError) -> bytes:
    return struct.pack("<H", int(error.code)) + error.note.encode(errors="replace")


def parse(data: bytes) -> Frame:
    """Reads a frame."""
    try:
        return _parse(data)
    except (struct.error, UnicodeDecodeError, IndexError):
        first = data[0] if data else 0
        what = f"a message of {len(data)} bytes that begins with {first:#04x} is no XRL frame"
        raise ProtocolError(what) from None


def _parse(data: bytes) -> Frame:
    kind = data[0]
    if kind in (5, 9):
        slot, number, timeout = struct.unpack_from("<HII", data, 1)
        return Call(slot, number, timeout, data[11:], kind == 9)
    if kind in (6, 10):
        return Reply(*struct.unpack_from("<I", data, 1), data[5:], kind == 10)
    if kind == 7:
        number, code = struct.unpack_from("<IH", data, 1)
        return Failed(number, XrlError.of(code, data[7:].decode()))
    if kind == 8:
        (code,) = struct.unpack_from("<H", data, 1)
        return Goodbye(XrlError.of(code, data[3:].decode()))
    if kind == 1:
        version, window, credential = struct.unpack_from("<HIB", data, 1)
        rest = data[8:]
        if _CREDENTIAL_LEN.get(credential) != len(rest):
            raise IndexError
        return Hello(version, window, credential, rest)
    if kind == 2:
        return Welcome(*struct.unpack_from("<HI", data, 1), data[7:].decode())
    if kind in (3, 4):
        (slot,) = struct.unpack_from("<H", data, 1)
        if kind == 4:
            return Name(slot, data[3:].decode())
        if len(data) != 3 + KEY_LEN:
            raise IndexError
        return Bind(slot, data[3:])
    raise IndexError


class Channel:
    """A connection that carries frames, without waiting."""

    def __init__(
        self, sock: socket.socket, most_unsent: int | None = None, longest: int = LONGEST_FRAME
    ) -> None:
        sock.setblocking(False)
        #: The longest frame that is taken, in bytes.
        self.longest = longest
        self.socket = sock
        self._in = bytearray()
        self._out: deque[bytes] = deque()
        self.unsent = 0
        self._most_unsent = most_unsent
        self.closed = False
        #: Told before the socket is closed.
        self.closing: Callable[[Channel], None] | None = None

    def fileno(self) -> int:
        return self.socket.fileno()

    def send(self, frame: bytes) -> None:
        """Sends a frame, or keeps it until there is room. Who does not read is given up."""
        self.flush()
        # This frame does not count: however long it is, the other side had no time yet to read it.
        if self._most_unsent is not None and self.unsent > self._most_unsent:
            self.close()
        if self.closed:
            return
        self._out.append(struct.pack("<I", len(frame)) + frame)
        self.unsent += len(frame) + 4
        self.flush()

    def flush(self) -> None:
        """Sends what there is room for."""
        while self._out and not self.closed:
            first = self._out[0]
            try:
                sent = self.socket.send(first, socket.MSG_NOSIGNAL)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                # What the other side has said before it went is still to be read.
                self._out.clear()
                self.unsent = 0
                return
            self.unsent -= sent
            if sent == len(first):
                self._out.popleft()
            else:
                self._out[0] = first[sent:]

    def receive(self) -> list[bytes]:
        """The frames that have come. The channel is closed behind the last one if the other side has
        ended it, or sends what is no frame."""
        try:
            data = self.socket.recv(_AT_A_TIME)
        except (BlockingIOError, InterruptedError):
            return []
        except OSError:
            data = b""
        if not data:
            self.close()
            return []
        self._in += data
        frames, at = [], 0
        while len(self._in) - at >= 4:
            (length,) = struct.unpack_from("<I", self._in, at)
            if not 1 <= length <= self.longest:
                self.close()
                break
            if len(self._in) - at < 4 + length:
                break
            frames.append(bytes(self._in[at + 4 : at + 4 + length]))
            at += 4 + length
        if not self.closed:
            del self._in[:at]
        return frames

    def close(self) -> None:
        """Ends the connection."""
        if not self.closed:
            self.closed = True
            self._out.clear()
            self._in.clear()
            self.unsent = 0
            if self.closing:
                self.closing(self)
            self.socket.close()


#: What stands in the place of an argument that was left out.
_ABSENT = b"\0"
#: Types in binary form: the number of each, and that of the value or of its length.
_BINARY = {"u32": (2, "<I"), "u64": (13, "<Q"), "txt": (8, "<I"), "binary": (11, "<I"), "bool": (10, "<B")}


def read_binary(data: bytes, fields: Iterable[Field]) -> dict[str, Any]:
    """The values of arguments in binary form, which are numbers, truth values, texts and bytes."""
    values: dict[str, Any] = {}
    at = 0
    try:
        for field in fields:
            if field.optional and data[at : at + 1] in (b"", _ABSENT):
                at += 1
                continue
            kind = field.type.kind
            tag, form = _BINARY[kind]
            if data[at] != tag:
                raise ProtocolError(f"`{field.name}` is of another type")
            (number,) = struct.unpack_from(form, data, at + 1)
            at += 1 + struct.calcsize(form)
            if kind in ("u32", "u64"):
                values[field.name] = number
                continue
            if kind == "bool":
                if number > 1:
                    raise ProtocolError(f"{number} is no truth value")
                values[field.name] = number == 1
                continue
            value = data[at : at + number]
            at += number
            if len(value) != number:
                raise IndexError
            values[field.name] = value.decode() if kind == "txt" else value
    except (IndexError, KeyError, UnicodeDecodeError, struct.error):
        raise ProtocolError("the arguments are malformed") from None
    return values


def connect(address: str, name: str, deadline: float) -> socket.socket:
    """Connects to an address as it is registered."""
    form, _, place = address.removeprefix("text+").partition(":")
    left = max(deadline - time.monotonic(), 0.001)
    try:
        if form == "tcp":
            host, _, port = place.rpartition(":")
            at = str(ipaddress.ip_address(host.strip("[]"))), int(port)
            return socket.create_connection(at, left)
        if form == "unix":
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
            sock.setblocking(False)
            try:
                _connect_unix(sock, place, deadline)
            except OSError:
                sock.close()
                raise
            return sock
    except (OSError, ValueError) as error:
        raise SendFailed(f"{name} at {address} cannot be reached: {error}") from None
    raise InternalError(f"{name} is at `{address}`, which is no address")


def _connect_unix(sock: socket.socket, path: str, deadline: float) -> None:
    while True:
        try:
            return sock.connect(path)
        except BlockingIOError:
            # The other side has to accept others first.
            if time.monotonic() >= deadline:
                raise
            time.sleep(0.005)
