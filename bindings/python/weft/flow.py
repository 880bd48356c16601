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
import os

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


def _load():
    name = os.environ.get("WEFT_FLOW_LIBRARY", "libweftflow.so")
    try:
        library = ctypes.CDLL(name)
    except OSError as error:
        raise ImportError(
            f"the C library of weft cannot be loaded ({error}): "
            "install libweftflow.so, or name it in WEFT_FLOW_LIBRARY"
        ) from error
    pointer, c_int = ctypes.c_void_p, ctypes.c_int
    signatures = {
        "weft_flow_connect": (
            pointer,
            [ctypes.c_char_p, c_int, ctypes.c_uint32, ctypes.c_uint32, c_int, ctypes.POINTER(c_int)],
        ),
        "weft_flow_send": (ctypes.c_int64, [pointer, ctypes.c_char_p, ctypes.c_size_t, c_int]),
        "weft_flow_recv": (ctypes.c_int64, [pointer, ctypes.c_char_p, ctypes.c_size_t, c_int]),
        "weft_flow_fd": (c_int, [pointer]),
        "weft_flow_room_fd": (c_int, [pointer]),
        "weft_flow_reattach": (c_int, [pointer, c_int]),
        "weft_flow_close": (None, [pointer]),
        "weft_flow_error": (ctypes.c_char_p, []),
    }
    for function, (result, arguments) in signatures.items():
        getattr(library, function).restype = result
        getattr(library, function).argtypes = arguments
    return library


_library = _load()


def _failure(number):
    text = _library.weft_flow_error().decode(errors="replace")
    return _ERRORS.get(number, FlowError)(text)


def _check(number):
    if number < 0:
        raise _failure(number)
    return number


def _milliseconds(timeout):
    """C's form of a timeout: None waits for ever, and a part of a millisecond counts as a whole one."""
    if timeout is None:
        return -1
    return min(max(0, -int(-timeout * 1000 // 1)), 2**31 - 1)


class Flow:
    """A flow to the stack whose control socket is at ``path``.

    ``up`` and ``down`` are the wanted sizes of the rings to the stack and from it, in bytes; 0 means what
    is usual. ``timeout`` (seconds) is how long to wait for a stack that does not answer.
    """

    def __init__(self, path, kind=DATAGRAM, *, up=0, down=0, timeout=5.0):
        self._flow = None
        error = ctypes.c_int()
        patience = _milliseconds(timeout)
        self._flow = _library.weft_flow_connect(
            os.fsencode(path), kind, up, down, patience, ctypes.byref(error)
        )
        if not self._flow:
            raise _failure(error.value)
        self._buffer = ctypes.create_string_buffer(LONGEST)

    def send(self, data, timeout=None):
        """Sends a message, or bytes of a stream; returns how many bytes were sent, of a stream fewer
        than all if the time (seconds; None: for ever; 0: not at all) was over before."""
        data = bytes(data)
        return _check(
            _library.weft_flow_send(self._open(), data, len(data), _milliseconds(timeout))
        )

    def recv(self, timeout=None):
        """Receives one message, or what there is of a stream, at most LONGEST bytes at a time."""
        length = _library.weft_flow_recv(
            self._open(), self._buffer, LONGEST, _milliseconds(timeout)
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
        _check(_library.weft_flow_reattach(self._open(), _milliseconds(timeout)))

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
