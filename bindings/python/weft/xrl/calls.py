"""Calls on one connection: what was sent, what waits for the other side's window, and their answers."""

from __future__ import annotations

from collections import deque
from typing import Callable

from . import wire
from .errors import InternalError, ReplyTimedOut, SendFailed, XrlError
from .loop import Loop
from .xif import Interface, Method


class Pending:
    """A call that was made; `Node.wait` waits for its answer."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.done = False
        self.text = ""
        self.error: XrlError | None = None
        #: Told once it is done.
        self.then: Callable[[Pending], None] | None = None
        self.method: tuple[Interface, Method] | None = None
        #: The calls among which it is.
        self.among: Outgoing | None = None

    def wait(self, loop: Loop, deadline: float) -> str:
        """The return arguments, as they came; waits for them no longer than until `deadline`."""
        if not loop.until(lambda: self.done, deadline):
            if self.among:
                self.among.give_up(self)
            raise ReplyTimedOut(f"no reply came in time: {self.what}")
        if self.error:
            raise self.error
        return self.text

    def finish(self, text: str = "", error: XrlError | None = None) -> None:
        """Notes the answer."""
        if not self.done:
            self.done, self.text, self.error = True, text, error
            if self.then:
                self.then(self)


class Outgoing:
    """The calls on one connection: what was sent, and what waits for the other side's window."""

    def __init__(self, channel: wire.Channel) -> None:
        self.channel = channel
        self.window = wire.FIRST_WINDOW
        self.welcome = False
        self.last_id = 0
        self.sent: dict[int, Pending] = {}
        self.waiting: deque[tuple[int, str, float, Pending]] = deque()

    def call(self, slot: int, args: str, timeout: float, pending: Pending) -> None:
        pending.among = self
        self.waiting.append((slot, args, timeout, pending))
        self.flush()

    def flush(self) -> None:
        while self.waiting and len(self.sent) < self.window:
            slot, args, timeout, pending = self.waiting[0]
            data = args.encode()
            if not self.welcome and len(data) + 16 > wire.FIRST_FRAME:
                return  # The other side takes it once it knows who this is.
            self.waiting.popleft()
            if pending.done:
                continue
            if len(data) + 16 > wire.LONGEST_FRAME:
                pending.finish(error=SendFailed("the arguments are longer than a message"))
                continue
            self.last_id = (self.last_id + 1) & 0xFFFF_FFFF
            self.sent[self.last_id] = pending
            milliseconds = min(max(int(timeout * 1000), 1), 0xFFFF_FFFF)
            self.channel.send(wire.Call(slot, self.last_id, milliseconds, data).emit())

    def take(self, frame: wire.Frame) -> None:
        """Takes a frame of the other side, if it is about calls."""
        if isinstance(frame, wire.Welcome):
            self.window = max(frame.window, 1)
            self.welcome = True
        elif isinstance(frame, (wire.Reply, wire.Failed)):
            pending = self.sent.pop(frame.id, None)
            if pending is None:
                return
            if isinstance(frame, wire.Failed):
                pending.finish(error=frame.error)
            elif frame.text:
                try:
                    pending.finish(frame.args.decode())
                except UnicodeDecodeError:
                    pending.finish(error=InternalError("the reply is not UTF-8"))
            else:
                pending.finish(error=InternalError("the reply has the wrong form"))
        self.flush()

    def give_up(self, pending: Pending) -> None:
        """Waits for a call no more."""
        self.sent = {number: one for number, one in self.sent.items() if one is not pending}
        pending.done = True

    def abandon(self, sent: XrlError, unsent: XrlError) -> None:
        """The connection is gone."""
        pendings, self.sent = list(self.sent.values()), {}
        waiting, self.waiting = self.waiting, deque()
        for pending in pendings:
            pending.finish(error=sent)
        for *_, pending in waiting:
            pending.finish(error=unsent)
