"""The connection with the Finder of a node: what it is asked, and what it asks.

It is made when it is needed, and again whenever it ends; the components of this process are registered on each,
and births and deaths asked for.

Reference: Handley et al. (XORP), section 6.2.
"""

from __future__ import annotations

import importlib.resources
import logging
import os
import socket
import time
from typing import Any, Callable, Protocol

from . import wire
from .births import Births
from .calls import Outgoing, Pending
from .errors import (
    InternalError,
    NoFinder,
    NoSuchMethod,
    ReplyTimedOut,
    SendFailedTransient,
    XrlError,
)
from .loop import Loop
from .text import find_method, read_arguments, write_arguments
from .xif import Interface

log = logging.getLogger("weft.xrl")

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


def own_interface(name: str) -> Interface:
    """One of the interfaces that come with the package: component, finder or finder_client."""
    text = importlib.resources.files(__package__).joinpath(f"{name}.xif").read_text("utf-8")
    return Interface.parse(text)


class Served(Protocol):
    """What of this process can be called; see `weft.xrl.Component`."""

    instance: str

    def registration(self) -> dict[str, Any]: ...
    def registered(self, error: XrlError | None) -> None: ...
    def grant(self, grant: dict[str, Any]) -> None: ...
    def revoke(self, session: int, removed: bool) -> None: ...
    def finder_gone(self) -> None: ...


class FinderLink:
    """The connection; `timeout` is how long the Finder may take for what nobody waits for, in seconds, and
    `forget` is told of instances whose address and keys are void."""

    def __init__(
        self,
        loop: Loop,
        run_dir: str,
        secret: bytes | None,
        timeout: float,
        forget: Callable[[str], None],
    ) -> None:
        self.interface = own_interface("finder")
        self.births = Births(loop.enqueue)
        self._client_interface = own_interface("finder_client")
        self._loop = loop
        self._run_dir = run_dir
        self._secret = secret
        self._timeout = timeout
        self._forget = forget
        self._outgoing: Outgoing | None = None
        #: Why it has ended the connection; it says so before it does.
        self._goodbye: XrlError | None = None
        self._names: dict[int, str] = {}
        self._served: dict[str, Served] = {}
        self._patience = 0.0
        self._retry = loop.alarm(self._try)
        self._confirm = loop.alarm(self.births.confirm)
        self._register_again = loop.alarm(self._register_all)

    # What it is asked.

    def ask(self, method: str, values: dict[str, Any], deadline: float) -> dict[str, Any]:
        """Asks something that can be asked again, should the Finder go away."""
        returns = self.interface.methods[method].returns
        while True:
            self._connect(deadline)
            pending = Pending(f"the Finder, {method}")
            self._send(method, values, pending, deadline - time.monotonic())
            try:
                text = pending.wait(self._loop, deadline)
                return read_arguments(text, returns, self.interface, newer=True)
            except NoFinder:
                if time.monotonic() >= deadline:
                    raise
            except ReplyTimedOut:
                raise NoFinder(f"the Finder did not answer in time ({method})") from None

    def ask_once(self, path: str, text: str, deadline: float) -> Pending:
        """Begins a call of the Finder that is not made again."""
        self._connect(deadline)
        assert self._outgoing is not None
        pending = Pending(f"the Finder, {path}")
        slot = list(self.interface.methods).index(path.rpartition("/")[2])
        self._outgoing.call(slot, text, deadline - time.monotonic(), pending)
        return pending

    def watch(
        self,
        class_: str | None,
        born: Callable[[str, str], None] | None,
        died: Callable[[str, str], None] | None,
        deadline: float,
    ) -> None:
        """See `Node.watch`."""
        self._connect(deadline)
        self.births.watch(class_, born, died)
        self.ask("watch", {} if class_ is None else {"class": class_}, deadline)

    def add_served(self, served: Served, deadline: float) -> None:
        """Registers a component of this process."""
        self._connect(deadline)
        self._served[served.instance] = served
        self._register(served)

    def remove_served(self, served: Served) -> None:
        """Takes a registration back, if the Finder is there to hear of it."""
        if self._served.pop(served.instance, None):
            pending = Pending(f"the end of {served.instance}")
            self._send("unregister", {"instance": served.instance}, pending, self._timeout)

    def forget_served(self) -> None:
        """There are no components of this process any more, which the end of the connection says."""
        self._served.clear()

    def _register_all(self) -> None:
        if self._outgoing:
            for served in self._served.values():
                self._register(served)

    def _register(self, served: Served) -> None:
        pending = Pending(f"the registration of {served.instance}")

        def then(pending: Pending) -> None:
            if pending.error:
                self._register_again.set(_REGISTER_AGAIN)
            served.registered(pending.error)

        pending.then = then
        self._send("register", served.registration(), pending, self._timeout)

    def _send(self, method: str, values: dict[str, Any], pending: Pending, timeout: float) -> None:
        text = write_arguments(values, self.interface.methods[method].args, self.interface)
        slot = list(self.interface.methods).index(method)
        if self._outgoing:
            self._outgoing.call(slot, text, timeout, pending)

    # The connection.

    def _connect(self, deadline: float) -> None:
        """Waits for the connection."""
        if not self._outgoing and self._retry.at is None:
            self._try()
        if not self._loop.until(lambda: self._outgoing is not None or self._refused(), deadline):
            raise NoFinder(f"the Finder of {self._run_dir} cannot be reached")
        refused = self._refused()
        if refused and not self._outgoing:
            self._goodbye = None
            raise refused

    def _refused(self) -> XrlError | None:
        """Why the Finder does not want this process, unless it may want it later."""
        later = isinstance(self._goodbye, SendFailedTransient)
        return None if later else self._goodbye

    def _try(self) -> None:
        self._retry.clear()
        path = os.path.join(self._run_dir, FINDER_SOCKET)
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            sock.settimeout(1.0)
            sock.connect(path)
        except OSError as error:
            sock.close()
            log.debug("the Finder cannot be reached: %s", error)
            return self._later()
        channel = wire.Channel(sock)
        outgoing = self._outgoing = Outgoing(channel)
        self._names.clear()
        self._loop.add_channel(channel, self._frame, lambda: self._closed(outgoing))
        credential = wire.NOTHING if self._secret is None else wire.SECRET
        hello = wire.Hello(wire.PROTOCOL, WINDOW, credential, self._secret or b"")
        channel.send(hello.emit())
        for slot, method in enumerate(self.interface.methods):
            channel.send(wire.Name(slot, f"{self.interface}/{method}").emit())
        self.births.doubt()
        for class_ in self.births.classes():
            values = {} if class_ is None else {"class": class_}
            self._send("watch", values, Pending("watch"), self._timeout)
        self._register_all()

    def _later(self) -> None:
        self._patience = min(max(self._patience * 2, _RETRY[0]), _RETRY[1])
        self._retry.set(self._patience)

    def _closed(self, outgoing: Outgoing) -> None:
        if self._outgoing is not outgoing:
            return
        self._outgoing = None
        self._confirm.clear()
        for served in self._served.values():
            served.finder_gone()
        self._later()
        note = "the Finder is gone; whether it carried the call out is not known"
        error = self._refused() or NoFinder(note)
        outgoing.abandon(error, error)

    # What it says and asks.

    def _frame(self, frame: wire.Frame) -> None:
        outgoing = self._outgoing
        if outgoing is None:
            return
        if isinstance(frame, wire.Welcome):
            self._patience = 0.0
            self._goodbye = None
            # A Finder that is being started accepts connections before it answers.
            if self.births.doubted:
                self._confirm.set(_GRACE)
        if isinstance(frame, wire.Goodbye):
            self._goodbye = frame.error
            log.info("the Finder ends the connection: %s", frame.error)
        elif isinstance(frame, wire.Name):
            self._names[frame.slot] = frame.path
        elif isinstance(frame, wire.Call):
            answer: wire.Frame = wire.Reply(frame.id, b"", text=False)
            try:
                self._called(frame)
            except XrlError as error:
                answer = wire.Failed(frame.id, error)
            except wire.ProtocolError as error:
                answer = wire.Failed(frame.id, InternalError(str(error)))
            outgoing.channel.send(answer.emit())
        else:
            outgoing.take(frame)

    def _called(self, call: wire.Call) -> None:
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
                    served.revoke(values["session"], values.get("removed", False))
            case "forget":
                self._forget(values["instance"])
            case "birth":
                self.births.born((values["class"], values["instance"]), values.get("process"))
            case "death":
                self.births.died((values["class"], values["instance"]))
