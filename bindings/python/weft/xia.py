"""Datagram sockets of XIA: a program's way to the XIA node on its machine.

    from weft.xia import Socket

    with Socket("/run/weft/host/xia.sock") as socket:
        print("others reach this socket at", socket.address)
        socket.send(b"hello", "hid-0123…-1:xdp-9876…-0")
        data, source = socket.recv(timeout=1.0)

Addresses are texts, as everywhere in weft ("Addresses" in its handbook); ``parse`` and ``emit`` give and take
their rows as they are in packets. A socket is used by one thread at a time and has a ``fileno()`` for ``select``
and ``asyncio``.

There are no multicast groups to join. To send to many, send to ``path(tree(link, …), sink)``: through a
zFilter, the union of the identifiers of a tree's links, to a sink. To receive, bind to that sink on every
machine; each machine's node must let packets in by a link of its own, which its operator says.

This stands on the C library, libweftxia; ``weft_xia.h`` says what its functions do. It is looked for where the
environment's WEFT_XIA_LIBRARY says, and otherwise where the system keeps libraries.
"""

import ctypes
import functools
import operator

from weft._library import c_string, load, milliseconds, patience

__all__ = [
    "BadAddress",
    "Closed",
    "Hostile",
    "NoNode",
    "Refused",
    "Socket",
    "TimedOut",
    "XiaError",
    "emit",
    "parse",
    "path",
    "tree",
]

#: How far a datagram goes if nothing else is said, in hops.
HOP_LIMIT = 128
#: No datagram is longer, in bytes. What links carry is less.
LONGEST = 65536

_ROW, _MOST_ROWS, _TEXT = 28, 9, 640


class XiaError(OSError):
    """Something could not be done; the text says what and how to mend it."""


class Closed(XiaError):
    """The node went away; ``reattach`` waits for it to return."""


class Hostile(XiaError):
    """The node broke the rules of the channel; this socket is of no more use."""


class TimedOut(XiaError, TimeoutError):
    """It could not be done in the time given."""


class NoNode(XiaError):
    """There is no node there, or this user may not talk to it."""


class Refused(XiaError):
    """The node refused something; the text says what and why."""


class BadAddress(ValueError):
    """This is no address, or no XID."""


_ERRORS = {-1: Closed, -2: Hostile, -3: TimedOut, -7: NoNode, -8: Refused, -13: BadAddress}


class _Address(ctypes.Structure):
    _fields_ = [("count", ctypes.c_uint8), ("rows", ctypes.c_uint8 * (_MOST_ROWS * _ROW))]


_socket, _int, _text, _size = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t
_address, _texts = ctypes.POINTER(_Address), ctypes.POINTER(ctypes.c_char_p)
_library = load(
    "libweftxia.so",
    "WEFT_XIA_LIBRARY",
    {
        "weft_xia_parse": (_int, [_text, _address]),
        "weft_xia_text": (ctypes.c_int64, [_address, _text, _size]),
        "weft_xia_path": (_int, [_texts, _size, _address]),
        "weft_xia_tree": (ctypes.c_int64, [_texts, _size, _text, _size]),
        "weft_xia_open": (_socket, [_text, _text, _int, ctypes.POINTER(_int)]),
        "weft_xia_local": (_int, [_socket, _address]),
        "weft_xia_set_hop_limit": (_int, [_socket, _int]),
        "weft_xia_send": (ctypes.c_int64, [_socket, _text, _size, _address, _int]),
        "weft_xia_recv": (ctypes.c_int64, [_socket, _text, _size, _address, _int]),
        "weft_xia_fd": (_int, [_socket]),
        "weft_xia_room_fd": (_int, [_socket]),
        "weft_xia_reattach": (_int, [_socket, _int]),
        "weft_xia_close": (None, [_socket]),
        "weft_xia_error": (_text, []),
    },
)


def _failure(number):
    text = _library.weft_xia_error().decode(errors="replace")
    return _ERRORS.get(number, XiaError)(text)


def _check(number):
    if number < 0:
        raise _failure(number)
    return number


def _one(text):
    """A text in C's form."""
    try:
        return c_string(text, "the text")
    except ValueError as error:
        raise BadAddress(str(error)) from None


def _given(texts):
    """Texts in C's form."""
    return (_text * len(texts))(*map(_one, texts)), len(texts)


@functools.lru_cache(maxsize=256)
def _parsed(text):
    """The address with this text. Nobody may change it."""
    address = _Address()
    _check(_library.weft_xia_parse(_one(text), address))
    return address


def _printed(address):
    text = ctypes.create_string_buffer(_TEXT)
    _check(_library.weft_xia_text(address, text, _TEXT))
    return text.value.decode()


def parse(text):
    """The rows of an address, as they are in packets: 28 bytes each. ``text`` may be one XID alone.
    BadAddress tells what is wrong with it."""
    address = _parsed(text)
    return bytes(address.rows[: address.count * _ROW])


def emit(rows):
    """The text of an address with these rows; it begins with "!" if the address is not sound."""
    count, rest = divmod(len(rows), _ROW)
    if rest or not 0 < count <= _MOST_ROWS:
        raise BadAddress(f"{len(rows)} bytes are no rows of an address")
    address = _Address(count)
    address.rows[: len(rows)] = rows
    return _printed(address)


def path(*xids):
    """The address entry → first → second → … → last of these XIDs."""
    address = _Address()
    _check(_library.weft_xia_path(*_given(xids), address))
    return _printed(address)


def tree(*links):
    """The zFilter of the tree that has these links, each of which may be a tree itself."""
    text = ctypes.create_string_buffer(_TEXT)
    _check(_library.weft_xia_tree(*_given(links), text, _TEXT))
    return text.value.decode()


class Socket:
    """A datagram socket of the node whose socket is at ``path``.

    ``bind`` is an address, which becomes the socket's own; or an XID, which the node completes by its own
    address; or a type of XID, of which the node chooses one and completes it. ``timeout`` (seconds) is how
    long to wait for a node that does not answer.
    """

    def __init__(self, path, bind="xdp", *, timeout=5.0):
        self._socket = None
        self._hop_limit = HOP_LIMIT
        error = _int()
        self._socket = _library.weft_xia_open(
            c_string(path, "the path"), _one(bind), patience(timeout), ctypes.byref(error)
        )
        if not self._socket:
            raise _failure(error.value)
        self._buffer = ctypes.create_string_buffer(LONGEST)

    @property
    def address(self):
        """The address that others reach this socket by."""
        address = _Address()
        _check(_library.weft_xia_local(self._open(), address))
        return _printed(address)

    @property
    def hop_limit(self):
        """How far datagrams go, in hops, 0 to 255."""
        return self._hop_limit

    @hop_limit.setter
    def hop_limit(self, hops):
        hops = operator.index(hops)
        if not 0 <= hops <= 255:
            raise XiaError(f"{hops} hops are not among 0 to 255")
        _check(_library.weft_xia_set_hop_limit(self._open(), hops))
        self._hop_limit = hops

    def send(self, data, to, timeout=None):
        """Sends a datagram to an address; waits for room (seconds; None: for ever; 0: not at all). That it
        was sent says nothing about its arrival."""
        data = bytes(data)
        timeout = milliseconds(timeout)
        _check(_library.weft_xia_send(self._open(), data, len(data), _parsed(to), timeout))

    def recv(self, timeout=None):
        """Waits for a datagram; returns its payload and its source, which is None if the sender gave none.
        Refused tells that an earlier datagram could not leave the node; it can be called again."""
        source = _Address()
        length = _library.weft_xia_recv(
            self._open(), self._buffer, LONGEST, source, milliseconds(timeout)
        )
        data = ctypes.string_at(self._buffer, _check(length))
        return data, _printed(source) if source.count else None

    def fileno(self):
        """The descriptor to wait for before recv(timeout=0), which has to be called until it raises
        TimedOut before the descriptor is waited for again."""
        return _check(_library.weft_xia_fd(self._open()))

    def room_fileno(self):
        """The descriptor to wait for (readable) after send(timeout=0) raised TimedOut."""
        return _check(_library.weft_xia_room_fd(self._open()))

    def reattach(self, timeout=None):
        """After Closed: waits for the node to return, and binds to the same address."""
        _check(_library.weft_xia_reattach(self._open(), milliseconds(timeout)))

    def close(self):
        """Closes the socket. What was sent still leaves the node."""
        if self._socket:
            _library.weft_xia_close(self._socket)
            self._socket = None

    def _open(self):
        if not self._socket:
            raise Closed("this side closed the socket")
        return self._socket

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        self.close()
