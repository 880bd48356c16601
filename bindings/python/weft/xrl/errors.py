"""What can become of a call besides its answer: XORP's error classes, with their numbers.

Reference: libxipc of XORP, xrl_error.cc: 1xx the call was answered, 20x it found no target, 21x it was
not carried, 220 somebody is broken.
"""

from __future__ import annotations

import enum


class ErrorCode(enum.IntEnum):
    """The kinds of failure of a call."""

    BAD_ARGS = 101
    COMMAND_FAILED = 102
    NO_FINDER = 200
    RESOLVE_FAILED = 201
    NO_SUCH_METHOD = 202
    SEND_FAILED = 210
    REPLY_TIMED_OUT = 211
    SEND_FAILED_TRANSIENT = 212
    INTERNAL_ERROR = 220


class XrlError(Exception):
    """Why a call failed. Each kind is a class of its own, so that it can be caught alone."""

    #: The kind of failure.
    code: ErrorCode = ErrorCode.INTERNAL_ERROR
    #: What happened, for people, in one sentence.
    note: str

    def __init__(self, note: str) -> None:
        super().__init__(note)
        self.note = note

    def __str__(self) -> str:
        return f"{int(self.code)} {self.code.name}: {self.note}"

    @staticmethod
    def of(number: int, note: str) -> XrlError:
        """The error with a number; an unknown one is the other side's mistake."""
        return _KINDS.get(number, InternalError)(note)


class BadArgs(XrlError):
    """The arguments are not those of the method, or out of the caller's range."""

    code = ErrorCode.BAD_ARGS


class CommandFailed(XrlError):
    """The component could not do it. A handler raises it to say why."""

    code = ErrorCode.COMMAND_FAILED


class NoFinder(XrlError):
    """There is no Finder, or the target could not be reached in time. Nothing was carried out."""

    code = ErrorCode.NO_FINDER


class ResolveFailed(XrlError):
    """The target is not there, or the caller may not call it."""

    code = ErrorCode.RESOLVE_FAILED


class NoSuchMethod(XrlError):
    """The target has no such method, or not in this version."""

    code = ErrorCode.NO_SUCH_METHOD


class SendFailed(XrlError):
    """The connection ended; whether the call was carried out is not known."""

    code = ErrorCode.SEND_FAILED


class ReplyTimedOut(XrlError):
    """No reply came in time; whether the call was carried out is not known."""

    code = ErrorCode.REPLY_TIMED_OUT


class SendFailedTransient(XrlError):
    """The call was not sent, and can be tried again: a limit was reached."""

    code = ErrorCode.SEND_FAILED_TRANSIENT


class InternalError(XrlError):
    """Somebody does not keep to the protocol."""

    code = ErrorCode.INTERNAL_ERROR


_KINDS: dict[int, type[XrlError]] = {
    int(kind.code): kind
    for kind in (
        BadArgs,
        CommandFailed,
        NoFinder,
        ResolveFailed,
        NoSuchMethod,
        SendFailed,
        ReplyTimedOut,
        SendFailedTransient,
        InternalError,
    )
}
