"""What a process waits for: its connections, moments of time, and work that is to be done in order.

A Loop is for one thread at a time; `stop` alone may be called from elsewhere.
"""

from __future__ import annotations

import logging
import os
import selectors
import socket
import time
from collections import deque
from typing import Any, Callable

from . import wire

log = logging.getLogger("weft.xrl")


class Alarm:
    """Has something done at a moment, if one is set."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        #: The moment, in seconds of the monotonic clock.
        self.at: float | None = None

    def set(self, seconds: float) -> None:
        """In so many seconds from now, and not when it was set before."""
        self.at = time.monotonic() + seconds

    def clear(self) -> None:
        """Never."""
        self.at = None

    def tick(self, now: float) -> None:
        """Does it if its moment has come."""
        if self.at is not None and self.at <= now:
            self.at = None
            self._work()


class Loop:
    """Takes in what comes; what the program is to be told or asked waits in a queue until it is there for it."""

    def __init__(self) -> None:
        self.stopped = False
        self._queue: deque[Callable[[], None]] = deque()
        self._delivering = False
        self._alarms: list[Alarm] = []
        self._selector = selectors.DefaultSelector()
        self._channels: dict[wire.Channel, tuple[Callable[[wire.Frame], None], Callable[[], None]]] = {}
        self._closed: list[wire.Channel] = []
        self._wake_read, self._wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._selector.register(self._wake_read, selectors.EVENT_READ, self._woken)

    def close(self) -> None:
        """Ends all connections, without a word to those who listened to them."""
        for channel in list(self._channels):
            channel.close()
        self._selector.close()
        os.close(self._wake_read)
        os.close(self._wake)

    # What is waited for.

    def add_channel(
        self,
        channel: wire.Channel,
        frame: Callable[[wire.Frame], None],
        closed: Callable[[], None],
    ) -> None:
        """Listens to a channel: `frame` gets what comes, and `closed` is called once it is closed."""
        self._channels[channel] = frame, closed
        self._selector.register(channel, selectors.EVENT_READ, channel)
        channel.closing = self._closing

    def add_listener(self, sock: socket.socket, accept: Callable[[], None]) -> None:
        """Calls `accept` when there is a connection to be accepted."""
        sock.setblocking(False)
        self._selector.register(sock, selectors.EVENT_READ, accept)

    def remove_listener(self, sock: socket.socket) -> None:
        """Accepts no more."""
        self._selector.unregister(sock)

    def alarm(self, work: Callable[[], None]) -> Alarm:
        """An alarm, which is not set yet."""
        alarm = Alarm(work)
        self._alarms.append(alarm)
        return alarm

    # Work in order.

    def enqueue(self, work: Callable[[], None]) -> None:
        """Has something done by `poll`, after everything that was enqueued before."""
        self._queue.append(work)

    def poll(self, timeout: float) -> int:
        """Takes in what has come, or comes within `timeout` seconds, and does what was enqueued. Returns how
        much that was."""
        if not self._queue:
            self.until(lambda: bool(self._queue) or self.stopped, time.monotonic() + timeout)
        if self._delivering:
            raise RuntimeError("handlers and callbacks cannot wait for others; they can call")
        self._delivering = True
        count = 0
        try:
            while self._queue and not self.stopped:
                self._queue.popleft()()
                count += 1
                self.step(0)
        finally:
            self._delivering = False
        return count

    def serve(self) -> None:
        """Polls until `stop` is called."""
        while not self.stopped:
            self.poll(3600.0)
        self.stopped = False

    def stop(self) -> None:
        """Ends `serve`. May be called from a handler, a signal handler, and another thread."""
        self.stopped = True
        try:
            os.write(self._wake, b"x")
        except (BlockingIOError, OSError):
            pass

    # Waiting.

    def until(self, done: Callable[[], Any], deadline: float) -> bool:
        """Takes in what comes until something is so."""
        while not done():
            left = deadline - time.monotonic()
            if left <= 0:
                self.step(0)
                return bool(done())
            self.step(left)
        return True

    def step(self, timeout: float) -> None:
        """Takes in what has come, or comes first within `timeout` seconds."""
        moments = [alarm.at for alarm in self._alarms if alarm.at is not None]
        if moments:
            timeout = max(min(timeout, min(moments) - time.monotonic()), 0)
        for channel in self._channels:
            if not channel.closed:
                wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if channel.unsent else 0)
                if self._selector.get_key(channel).events != wanted:
                    self._selector.modify(channel, wanted, channel)
        for key, events in self._selector.select(timeout):
            if isinstance(key.data, wire.Channel):
                self._ready(key.data, events)
            else:
                key.data()
        while self._closed:
            entry = self._channels.pop(self._closed.pop(), None)
            if entry:
                entry[1]()
        now = time.monotonic()
        for alarm in self._alarms:
            alarm.tick(now)

    def _ready(self, channel: wire.Channel, events: int) -> None:
        if events & selectors.EVENT_WRITE:
            channel.flush()
        if not events & selectors.EVENT_READ or channel.closed:
            return
        take = self._channels[channel][0]
        for data in channel.receive():
            try:
                take(wire.parse(data))
            except wire.ProtocolError as error:
                log.warning("a connection ends: %s", error)
                return channel.close()

    def _closing(self, channel: wire.Channel) -> None:
        self._selector.unregister(channel)
        self._closed.append(channel)

    def _woken(self) -> None:
        try:
            os.read(self._wake_read, 4096)
        except BlockingIOError:
            pass
