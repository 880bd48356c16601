"""The way to the components of a node: the Finder, and the targets that it resolves.

A Node is for one thread at a time. Calls wait for their answers; meanwhile everything else that
comes is taken in, but handlers and callbacks of the program run in `poll` and `serve` only, one after
the other.

Reference: Handley et al. (XORP), section 6.2.
"""

from __future__ import annotations

import importlib.resources
import logging
import os
import selectors
import socket
import time
from collections import deque
from typing import Any, Callable, Protocol

from . import wire
from .calls import Outgoing, Pending
from .errors import (
    InternalError,
    NoFinder,
    NoSuchMethod,
    ReplyTimedOut,
    SendFailed,
    SendFailedTransient,
    XrlError,
)
from .text import Xrl, find_method, read_arguments, write_arguments
from .xif import Interface, Method

log = logging.getLogger("weft.xrl")

#: How long a call may take unless it says otherwise, in seconds.
DEFAULT_TIMEOUT = 5.0
#: The file name of the Finder's socket in a run directory.
FINDER_SOCKET = "xrl-finder"
#: How many calls this side takes at a time from one connection.
WINDOW = 256

#: First and longest time between attempts to reach the Finder.
_RETRY = (0.01, 0.32)
#: How long components may take to register again after the Finder came back.
_GRACE = 3.0
#: When a refused registration is tried again.
_REGISTER_AGAIN = 0.5
#: Methods that are bound on one connection.
_MOST_SLOTS = 4000


def own_interface(name: str) -> Interface:
    """One of the interfaces that come with the package: component, finder or finder_client."""
    text = importlib.resources.files(__package__).joinpath(f"{name}.xif").read_text("utf-8")
    return Interface.parse(text)


class _Target:
    """A component that is called."""

    def __init__(self, instance: str, channel: wire.Channel) -> None:
        self.instance = instance
        self.channel = channel
        self.outgoing = Outgoing(channel)
        self.slots: dict[str, int] = {}


class Served(Protocol):
    """What of this process can be called; see `weft.xrl.Component`."""

    instance: str

    def registration(self) -> dict[str, Any]: ...
    def registered(self, error: XrlError | None) -> None: ...
    def grant(self, grant: dict[str, Any]) -> None: ...
    def revoke(self, session: int) -> None: ...
    def finder_gone(self) -> None: ...


class Node:
    """A connection with a node.

    `run_dir` is the node's run directory. Without `secret` the Finder asks the kernel who this is: root
    and the user who runs the node may call everything. Nothing is connected before it is needed, and the
    connection is made again whenever it ends.
    """

    def __init__(
        self,
        run_dir: str | os.PathLike[str],
        *,
        secret: bytes | None = None,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> None:
        if secret is not None and len(secret) != wire.SECRET_LEN:
            raise ValueError(f"a secret has {wire.SECRET_LEN} bytes")
        self.run_dir = os.fspath(run_dir)
        #: Seconds that a call may take unless it says otherwise.
        self.timeout = timeout
        self._secret = secret
        self._finder_interface = own_interface("finder")
        self._client_interface = own_interface("finder_client")
        self._finder: Outgoing | None = None
        self._patience = 0.0
        self._retry_at: float | None = None
        #: Why the Finder has ended the connection; it says so before it does.
        self._goodbye: XrlError | None = None
        self._names: dict[int, str] = {}
        self._targets: dict[str, _Target] = {}
        self._interfaces: dict[str, list[Interface]] = {}
        self._served: dict[str, Served] = {}
        self._register_at: float | None = None
        self._watches: list[tuple[str | None, Callable[..., None] | None, Callable[..., None] | None]] = []
        #: With the numbers of their processes.
        self._alive: dict[tuple[str, str], int | None] = {}
        self._unconfirmed: dict[tuple[str, str], int | None] = {}
        self._confirm_by: float | None = None
        #: What the program is to be told, in order.
        self._queue: deque[Callable[[], None]] = deque()
        self._delivering = False
        self._selector = selectors.DefaultSelector()
        self._channels: dict[wire.Channel, tuple[Callable[[wire.Frame], None], Callable[[], None]]] = {}
        self._closed: list[wire.Channel] = []
        self._stopped = False
        wake_read, self._wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._wake_read = wake_read
        self._selector.register(wake_read, selectors.EVENT_READ, self._woken)

    # Calls.

    def call(
        self,
        target: str,
        path: str | None = None,
        args: dict[str, Any] | None = None,
        /,
        *,
        timeout: float | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """Calls a method and returns what it returns, by name.

        Either all in one text, `call("finder://fea/fea/1.0/open?name:txt=x")`, or with values of Python,
        `call("fea", "fea/1.0/open", name="x")`; `args` is for arguments whose names Python cannot take.
        `timeout` is in seconds. Raises XrlError, or ValueError if the text is no XRL.
        """
        seconds = self.timeout if timeout is None else timeout
        deadline = time.monotonic() + seconds
        return self._result(self._begin(target, path, {**(args or {}), **more}, deadline), deadline)

    def begin(
        self,
        target: str,
        path: str | None = None,
        args: dict[str, Any] | None = None,
        /,
        *,
        timeout: float | None = None,
        **more: Any,
    ) -> Pending:
        """As `call`, without waiting for the answer; `wait` does. Many calls can be on their way."""
        seconds = self.timeout if timeout is None else timeout
        deadline = time.monotonic() + seconds
        return self._begin(target, path, {**(args or {}), **more}, deadline)

    def wait(self, pending: Pending, *, timeout: float | None = None) -> dict[str, Any]:
        """What a call returns that `begin` has made."""
        return self._result(pending, time.monotonic() + (self.timeout if timeout is None else timeout))

    def interfaces(self, target: str, *, timeout: float | None = None) -> list[Interface]:
        """The interfaces of a target."""
        return self._interfaces_of(target, time.monotonic() + (timeout or self.timeout))

    def _begin(
        self, target: str, path: str | None, values: dict[str, Any], deadline: float
    ) -> Pending:
        # What came meanwhile may say that something is not there any more.
        self._step(0)
        if path is None:
            if values:
                raise TypeError("an XRL in one text brings its arguments along")
            xrl = Xrl.parse(target)
            target, path, text = xrl.target, xrl.path, xrl.arguments
            method = self._method(target, path, deadline)
        else:
            method = self._method(target, path, deadline)
            text = write_arguments(values, method[1].args, method[0])
        if target == "finder":
            pending = self._ask_once(path, text, deadline)
        else:
            one, slot = self._route(target, path, deadline)
            pending = Pending(f"{target}, {path}")
            one.outgoing.call(slot, text, deadline - time.monotonic(), pending)
        pending.method = method
        return pending

    def _result(self, pending: Pending, deadline: float) -> dict[str, Any]:
        assert pending.method is not None
        if not self._until(lambda: pending.done, deadline):
            self._give_up(pending)
            raise ReplyTimedOut(f"no reply came in time: {pending.what}")
        if pending.error:
            raise pending.error
        interface, method = pending.method
        try:
            return read_arguments(pending.text, method.returns, interface, newer=True)
        except XrlError as error:
            raise InternalError(f"the reply of {pending.what}: {error.note}") from None

    def _give_up(self, pending: Pending) -> None:
        for target in self._targets.values():
            target.outgoing.give_up(pending)
        if self._finder:
            self._finder.give_up(pending)

    def _method(self, target: str, path: str, deadline: float) -> tuple[Interface, Method]:
        known = target in self._interfaces
        found = find_method(self._interfaces_of(target, deadline), path)
        if found is None and known:
            # It may have become another one since.
            del self._interfaces[target]
            found = find_method(self._interfaces_of(target, deadline), path)
        if found is None:
            names = ", ".join(map(str, self._interfaces.get(target, [self._finder_interface])))
            raise NoSuchMethod(f"{target} has no method {path}; its interfaces are: {names}")
        return found

    def _interfaces_of(self, target: str, deadline: float) -> list[Interface]:
        if target == "finder":
            return [self._finder_interface]
        if target not in self._interfaces:
            answer = self._ask("interfaces", {"target": target}, deadline)
            texts = [one["text"] for one in answer["interfaces"]]
            try:
                self._interfaces[target] = [Interface.parse(text) for text in texts]
            except ValueError as error:
                raise InternalError(f"an interface of {target}: {error}") from None
        return self._interfaces[target]

    def _route(self, name: str, path: str, deadline: float) -> tuple[_Target, int]:
        """The connection with a target, and the number of a method on it."""
        target = self._targets.get(name)
        if target and path in target.slots:
            return target, target.slots[path]
        answer = self._ask("resolve", {"target": name, "method": path}, deadline)
        target = self._targets.get(name)
        if target and (len(target.slots) >= _MOST_SLOTS or target.instance != answer["instance"]):
            self._lose(name)
            target = None
        if target is None:
            sock = wire.connect(answer["address"], name, deadline)
            target = self._targets[name] = _Target(answer["instance"], wire.Channel(sock))
            outgoing = target.outgoing
            self.add_channel(target.channel, outgoing.take, lambda: self._lost(name, outgoing))
            hello = wire.Hello(wire.PROTOCOL, WINDOW, wire.TICKET, answer["ticket"])
            target.channel.send(hello.emit())
        slot = target.slots[path] = len(target.slots)
        target.channel.send(wire.Bind(slot, answer["key"]).emit())
        return target, slot

    def _lost(self, name: str, outgoing: Outgoing) -> None:
        if name in self._targets and self._targets[name].outgoing is outgoing:
            self._lose(name)

    def _lose(self, name: str) -> None:
        target = self._targets.pop(name, None)
        if target:
            self._interfaces.pop(name, None)
            target.channel.close()
            target.outgoing.abandon(
                SendFailed(f"{name} is gone; whether it carried the call out is not known"),
                SendFailedTransient(f"{name} is gone before it took the call"),
            )

    # Births and deaths.

    def watch(
        self,
        class_: str | None = None,
        *,
        born: Callable[[str, str], None] | None = None,
        died: Callable[[str, str], None] | None = None,
        timeout: float | None = None,
    ) -> None:
        """Asks for births and deaths of components of a class, or of all; those that are there are told
        as births. `born` and `died` get class and instance; `poll` and `serve` call them."""
        deadline = time.monotonic() + (self.timeout if timeout is None else timeout)
        self._connect_finder(deadline)
        self._watches.append((class_, born, died))
        for one, instance in sorted(self._alive):
            if born and class_ in (None, one):
                self._queue.append(lambda one=one, instance=instance: born(one, instance))
        self._ask("watch", {} if class_ is None else {"class": class_}, deadline)

    def _birth(self, one: tuple[str, str], process: int | None) -> None:
        known = one in self._alive
        if one in self._unconfirmed:
            known = self._unconfirmed.pop(one) == process
            # A process that came while there was no Finder does not know what its predecessor knew.
            if not known:
                self._tell(one, 2)
        self._alive[one] = process
        if not known:
            self._tell(one, 1)

    def _death(self, one: tuple[str, str]) -> None:
        if one in self._alive:
            del self._alive[one]
            self._tell(one, 2)

    def _tell(self, one: tuple[str, str], which: int) -> None:
        for watch in self._watches:
            callback = watch[which]
            if callback and watch[0] in (None, one[0]):
                self._queue.append(lambda callback=callback: callback(*one))

    # What the program waits for.

    def poll(self, timeout: float = 0.0) -> int:
        """Takes in what has come, or comes within `timeout` seconds, and runs handlers and callbacks for
        it. Returns how many were run."""
        if not self._queue:
            self._until(lambda: bool(self._queue) or self._stopped, time.monotonic() + timeout)
        return self._deliver()

    def serve(self) -> None:
        """Runs handlers and callbacks until `stop` is called."""
        while not self._stopped:
            self.poll(3600.0)
        self._stopped = False

    def stop(self) -> None:
        """Ends `serve`. May be called from a handler, a signal handler, and another thread."""
        self._stopped = True
        try:
            os.write(self._wake, b"x")
        except (BlockingIOError, OSError):
            pass

    def enqueue(self, work: Callable[[], None]) -> None:
        """Has `poll` or `serve` do something; for the package's own parts."""
        self._queue.append(work)

    def _deliver(self) -> int:
        if self._delivering:
            raise RuntimeError("handlers and callbacks cannot wait for others; they can call")
        self._delivering = True
        count = 0
        try:
            while self._queue and not self._stopped:
                self._queue.popleft()()
                count += 1
                self._step(0)
        finally:
            self._delivering = False
        return count

    def close(self) -> None:
        """Ends all connections. A component of this process is gone then."""
        self._served.clear()
        for channel in list(self._channels):
            channel.close()
        self._selector.close()
        os.close(self._wake_read)
        os.close(self._wake)

    def __enter__(self) -> Node:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # The Finder.

    def add_served(self, served: Served, timeout: float) -> None:
        """Registers a component of this process; for `weft.xrl.Component`."""
        self._connect_finder(time.monotonic() + timeout)
        self._served[served.instance] = served
        self._register(served)

    def remove_served(self, served: Served) -> None:
        """Takes a registration back, if the Finder is there to hear of it."""
        if self._served.pop(served.instance, None):
            pending = Pending(f"the end of {served.instance}")
            self._send_finder("unregister", {"instance": served.instance}, pending, self.timeout)

    def _register(self, served: Served) -> None:
        pending = Pending(f"the registration of {served.instance}")

        def then(pending: Pending) -> None:
            if pending.error:
                self._register_at = time.monotonic() + _REGISTER_AGAIN
            served.registered(pending.error)

        pending.then = then
        self._send_finder("register", served.registration(), pending, self.timeout)

    def _send_finder(
        self, method: str, values: dict[str, Any], pending: Pending, timeout: float
    ) -> None:
        interface = self._finder_interface
        text = write_arguments(values, interface.methods[method].args, interface)
        slot = list(interface.methods).index(method)
        if self._finder:
            self._finder.call(slot, text, timeout, pending)

    def _ask(self, method: str, values: dict[str, Any], deadline: float) -> dict[str, Any]:
        """Asks the Finder something that can be asked again, should it go away."""
        interface = self._finder_interface
        while True:
            self._connect_finder(deadline)
            pending = Pending(f"the Finder, {method}")
            pending.method = interface, interface.methods[method]
            self._send_finder(method, values, pending, deadline - time.monotonic())
            try:
                return self._result(pending, deadline)
            except NoFinder:
                if time.monotonic() >= deadline:
                    raise
            except ReplyTimedOut:
                raise NoFinder(f"the Finder did not answer in time ({method})") from None

    def _ask_once(self, path: str, text: str, deadline: float) -> Pending:
        self._connect_finder(deadline)
        assert self._finder is not None
        pending = Pending(f"the Finder, {path}")
        slot = list(self._finder_interface.methods).index(path.rpartition("/")[2])
        self._finder.call(slot, text, deadline - time.monotonic(), pending)
        return pending

    def _connect_finder(self, deadline: float) -> None:
        """Waits for the connection with the Finder."""
        if not self._finder and self._retry_at is None:
            self._try_finder()
        if not self._until(lambda: self._finder is not None or self._refused(), deadline):
            raise NoFinder(f"the Finder of {self.run_dir} cannot be reached")
        refused = self._refused()
        if refused and not self._finder:
            self._goodbye = None
            raise refused

    def _refused(self) -> XrlError | None:
        """Why the Finder does not want this process, unless it may want it later."""
        later = isinstance(self._goodbye, SendFailedTransient)
        return None if later else self._goodbye

    def _try_finder(self) -> None:
        self._retry_at = None
        path = os.path.join(self.run_dir, FINDER_SOCKET)
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            sock.settimeout(1.0)
            sock.connect(path)
        except OSError as error:
            sock.close()
            log.debug("the Finder cannot be reached: %s", error)
            return self._finder_later()
        channel = wire.Channel(sock)
        outgoing = self._finder = Outgoing(channel)
        self._names.clear()
        self.add_channel(channel, self._finder_frame, lambda: self._finder_closed(outgoing))
        credential = wire.NOTHING if self._secret is None else wire.SECRET
        hello = wire.Hello(wire.PROTOCOL, WINDOW, credential, self._secret or b"")
        channel.send(hello.emit())
        for slot, method in enumerate(self._finder_interface.methods):
            channel.send(wire.Name(slot, f"{self._finder_interface}/{method}").emit())
        if self._alive:
            self._unconfirmed |= self._alive
            self._alive = {}
        for class_ in dict.fromkeys(watch[0] for watch in self._watches):
            values = {} if class_ is None else {"class": class_}
            self._send_finder("watch", values, Pending("watch"), self.timeout)
        for served in self._served.values():
            self._register(served)

    def _finder_later(self) -> None:
        self._patience = min(max(self._patience * 2, _RETRY[0]), _RETRY[1])
        self._retry_at = time.monotonic() + self._patience

    def _finder_closed(self, outgoing: Outgoing) -> None:
        if self._finder is not outgoing:
            return
        self._finder = None
        self._confirm_by = None
        for served in self._served.values():
            served.finder_gone()
        self._finder_later()
        note = "the Finder is gone; whether it carried the call out is not known"
        error = self._refused() or NoFinder(note)
        outgoing.abandon(error, error)

    def _finder_frame(self, frame: wire.Frame) -> None:
        finder = self._finder
        if finder is None:
            return
        if isinstance(frame, wire.Welcome):
            self._patience = 0.0
            self._goodbye = None
            # A Finder that is being started accepts connections before it answers.
            if self._unconfirmed:
                self._confirm_by = time.monotonic() + _GRACE
        if isinstance(frame, wire.Goodbye):
            self._goodbye = frame.error
            log.info("the Finder ends the connection: %s", frame.error)
        elif isinstance(frame, wire.Name):
            self._names[frame.slot] = frame.path
        elif isinstance(frame, wire.Call):
            answer: wire.Frame = wire.Reply(frame.id, b"", text=False)
            try:
                self._finder_calls(frame)
            except XrlError as error:
                answer = wire.Failed(frame.id, error)
            except wire.ProtocolError as error:
                answer = wire.Failed(frame.id, InternalError(str(error)))
            finder.channel.send(answer.emit())
        else:
            finder.take(frame)

    def _finder_calls(self, call: wire.Call) -> None:
        """What the Finder asks of this process."""
        path = self._names.get(call.slot, "")
        found = find_method([self._client_interface], path)
        if found is None or call.text:
            raise NoSuchMethod(f"there is no method `{path}` here")
        values = wire.read_binary(call.args, found[1].args)
        match found[1].name:
            case "grant":
                served = self._served.get(values["instance"])
                if served is None:
                    raise XrlError.of(201, f"there is no component {values['instance']} here")
                served.grant(values)
            case "revoke":
                for served in self._served.values():
                    served.revoke(values["session"])
            case "forget":
                gone = values["instance"]
                names = [name for name, one in self._targets.items() if one.instance == gone]
                for name in names:
                    self._lose(name)
                # An interface may have been asked for without a call.
                self._interfaces.clear()
            case "birth":
                self._birth((values["class"], values["instance"]), values.get("process"))
            case "death":
                self._death((values["class"], values["instance"]))

    # The loop.

    def add_channel(
        self,
        channel: wire.Channel,
        frame: Callable[[wire.Frame], None],
        closed: Callable[[], None],
    ) -> None:
        """Listens to a channel; for the package's own parts."""
        self._channels[channel] = frame, closed
        self._selector.register(channel, selectors.EVENT_READ, channel)
        channel.closing = self._closing

    def add_listener(self, sock: socket.socket, accept: Callable[[], None]) -> None:
        """Accepts connections; for the package's own parts."""
        sock.setblocking(False)
        self._selector.register(sock, selectors.EVENT_READ, accept)

    def remove_listener(self, sock: socket.socket) -> None:
        """Accepts no more."""
        self._selector.unregister(sock)

    def _closing(self, channel: wire.Channel) -> None:
        self._selector.unregister(channel)
        self._closed.append(channel)

    def _woken(self) -> None:
        try:
            os.read(self._wake_read, 4096)
        except BlockingIOError:
            pass

    def _until(self, done: Callable[[], Any], deadline: float) -> bool:
        """Takes in what comes until something is so."""
        while not done():
            left = deadline - time.monotonic()
            if left <= 0:
                self._step(0)
                return bool(done())
            self._step(left)
        return True

    def _step(self, timeout: float) -> None:
        times = [at for at in (self._retry_at, self._confirm_by, self._register_at) if at is not None]
        if times:
            timeout = max(min(timeout, min(times) - time.monotonic()), 0)
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
        self._tick(time.monotonic())

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

    def _tick(self, now: float) -> None:
        if self._retry_at is not None and self._retry_at <= now:
            self._try_finder()
        if self._confirm_by is not None and self._confirm_by <= now:
            self._confirm_by = None
            gone, self._unconfirmed = sorted(self._unconfirmed), {}
            for one in gone:
                self._tell(one, 2)
        if self._register_at is not None and self._register_at <= now:
            self._register_at = None
            for served in self._served.values():
                if self._finder:
                    self._register(served)
