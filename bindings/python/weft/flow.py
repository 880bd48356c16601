"""Flows: the channel between a program and a stack of weft on the same machine.

    from weft.flow import Flow

    with Flow("/run/weft/r1/stack.sock") as flow:
        flow.send(b"ping")
        print(flow.recv(timeout=1.0))

A flow carries messages, whose borders are kept, or with ``kind=STREAM`` bytes. It is used by one thread
at a time, and has a ``fileno()`` for ``select`` and ``asyncio``.

This stands on the C library, libweftflow; ``weft_flow.h`` says what its functions do. It is looked for
where the environment's WEFT_FLOW_LIBRARY says, and otherwise where the system keeps libraries.
"""

import ctypes

from weft._library import c_string, load, milliseconds, number, patience

DATAGRAM = 1
STREAM = 2

#: The longest message, in bytes.
LONGEST = 65536


class FlowError(OSError):
    """Something could not be done with a flow; the text says what and how to mend it."""


class Closed(FlowError):
    """The other side closed the flow or died, and everything that it sent was received."""


class Hostile(FlowError):
    """The other side broke the rules of flows; this one is of no more use."""


class TimedOut(FlowError, TimeoutError):
    """It could not be done in the time given."""


class NoStack(FlowError):
    """Nobody listens there, or this user may not connect, or the stack refused."""


class TooSmall(FlowError):
    """The next message is longer than the buffer; it stays."""


_ERRORS = {-1: Closed, -2: Hostile, -3: TimedOut, -6: TooSmall, -7: NoStack, -8: NoStack, -9: NoStack}


_pointer, _int = ctypes.c_void_p, ctypes.c_int
_library = load(
    "libweftflow.so",
    "WEFT_FLOW_LIBRARY",
    {
        "weft_flow_connect": (
            _pointer,
            [ctypes.c_char_p, _int, ctypes.c_uint32, ctypes.c_uint32, _int, ctypes.POINTER(_int)],
        ),
        "weft_flow_send": (ctypes.c_int64, [_pointer, ctypes.c_char_p, ctypes.c_size_t, _int]),
        "weft_flow_recv": (ctypes.c_int64, [_pointer, ctypes.c_char_p, ctypes.c_size_t, _int]),
        "weft_flow_fd": (_int, [_pointer]),
        "weft_flow_room_fd": (_int, [_pointer]),
        "weft_flow_reattach": (_int, [_pointer, _int]),
        "weft_flow_close": (None, [_pointer]),
        "weft_flow_error": (ctypes.c_char_p, []),
    },
)


def _failure(number):
    text = _library.weft_flow_error().decode(errors="replace")
    return _ERRORS.get(number, FlowError)(text)


def _check(number):
    if number < 0:
        raise _failure(number)
    return number


class Flow:
    """A flow to the stack whose control socket is at ``path``.

    ``up`` and ``down`` are the wanted sizes of the rings to the stack and from it, in bytes; 0 means what
    is usual. ``timeout`` (seconds) is how long to wait for a stack that does not answer.
    """

    def __init__(self, path, kind=DATAGRAM, *, up=0, down=0, timeout=5.0):
        self._flow = None
        error = ctypes.c_int()
        self._flow = _library.weft_flow_connect(
            c_string(path, "the path"),
            number(kind, STREAM, "the kind"),
            number(up, 2**32 - 1, "the size"),
            number(down, 2**32 - 1, "the size"),
            patience(timeout),
            ctypes.byref(error),
        )
        if not self._flow:
            raise _failure(error.value)
        self._buffer = ctypes.create_string_buffer(LONGEST)

    def send(self, data, timeout=None):
        """Sends a message, or bytes of a stream; returns how many bytes were sent, of a stream fewer
        than all if the time (seconds; None: for ever; 0: not at all) was over before."""
        data = bytes(data)
        return _check(
            _library.weft_flow_send(self._open(), data, len(data), milliseconds(timeout))
        )

    def recv(self, timeout=None):
        """Receives one message, or what there is of a stream, at most LONGEST bytes at a time."""
        length = _library.weft_flow_recv(
            self._open(), self._buffer, LONGEST, milliseconds(timeout)
        )
        return ctypes.string_at(self._buffer, _check(length))

    def fileno(self):
        """The descriptor to wait for before recv(timeout=0), which has to be called until it raises
        TimedOut before the descriptor is waited for again."""
        return _check(_library.weft_flow_fd(self._open()))

    def room_fileno(self):
        """The descriptor to wait for (readable) after send(timeout=0) raised TimedOut."""
        return _check(_library.weft_flow_room_fd(self._open()))

    def reattach(self, timeout=None):
        """After Closed: waits for the stack to return and attaches again."""
        _check(_library.weft_flow_reattach(self._open(), milliseconds(timeout)))

    def close(self):
        """Closes the flow. What was sent still arrives."""
        if self._flow:
            _library.weft_flow_close(self._flow)
            self._flow = None

    def _open(self):
        if not self._flow:
            raise Closed("this side closed the flow")
        return self._flow

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        self.close()
