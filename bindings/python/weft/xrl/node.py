"""The way to the components of a node: calls of the targets that its Finder resolves.

Reference: Handley et al. (XORP), section 6.2.
"""

from __future__ import annotations

import os
import time
from typing import Any, Callable

from . import wire
from .calls import Outgoing, Pending
from .errors import InternalError, NoSuchMethod, SendFailed, SendFailedTransient, XrlError
from .finder import WINDOW, FinderLink
from .loop import Loop
from .text import Xrl, find_method, read_arguments, write_arguments
from .xif import Interface, Method

#: How long a call may take unless it says otherwise, in seconds.
DEFAULT_TIMEOUT = 5.0

#: Methods that are bound on one connection.
_MOST_SLOTS = 4000


class _Target:
    """A component that is called."""

    def __init__(self, instance: str, channel: wire.Channel) -> None:
        self.instance = instance
        self.channel = channel
        self.outgoing = Outgoing(channel)
        self.slots: dict[str, int] = {}


class Node:
    """A connection with a node.

    `run_dir` is the node's run directory. Without `secret` the Finder asks the kernel who this is: root
    and the user who runs the node may call everything. Nothing is connected before it is needed, and the
    connection is made again whenever it ends.

    A Node is for one thread at a time. Calls wait for their answers; meanwhile everything else that comes is
    taken in, but handlers and callbacks of the program run in `poll` and `serve` only, one after the other.
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
        #: For the package's own parts.
        self.loop = Loop()
        self.finder = FinderLink(self.loop, self.run_dir, secret, timeout, self._forget)
        self._targets: dict[str, _Target] = {}
        self._interfaces: dict[str, list[Interface]] = {}

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
        deadline = self._deadline(timeout)
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
        return self._begin(target, path, {**(args or {}), **more}, self._deadline(timeout))

    def wait(self, pending: Pending, *, timeout: float | None = None) -> dict[str, Any]:
        """What a call returns that `begin` has made."""
        return self._result(pending, self._deadline(timeout))

    def interfaces(self, target: str, *, timeout: float | None = None) -> list[Interface]:
        """The interfaces of a target."""
        return self._interfaces_of(target, self._deadline(timeout))

    def _deadline(self, timeout: float | None) -> float:
        return time.monotonic() + (self.timeout if timeout is None else timeout)

    def _begin(
        self, target: str, path: str | None, values: dict[str, Any], deadline: float
    ) -> Pending:
        # What came meanwhile may say that something is not there any more.
        self.loop.step(0)
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
            pending = self.finder.ask_once(path, text, deadline)
        else:
            one, slot = self._route(target, path, deadline)
            pending = Pending(f"{target}, {path}")
            one.outgoing.call(slot, text, deadline - time.monotonic(), pending)
        pending.method = method
        return pending

    def _result(self, pending: Pending, deadline: float) -> dict[str, Any]:
        assert pending.method is not None
        text = pending.wait(self.loop, deadline)
        interface, method = pending.method
        try:
            return read_arguments(text, method.returns, interface, newer=True)
        except XrlError as error:
            raise InternalError(f"the reply of {pending.what}: {error.note}") from None

    # Targets.

    def _method(self, target: str, path: str, deadline: float) -> tuple[Interface, Method]:
        known = target in self._interfaces
        found = find_method(self._interfaces_of(target, deadline), path)
        if found is None and known:
            # It may have become another one since.
            del self._interfaces[target]
            found = find_method(self._interfaces_of(target, deadline), path)
        if found is None:
            names = ", ".join(map(str, self._interfaces.get(target, [self.finder.interface])))
            raise NoSuchMethod(f"{target} has no method {path}; its interfaces are: {names}")
        return found

    def _interfaces_of(self, target: str, deadline: float) -> list[Interface]:
        if target == "finder":
            return [self.finder.interface]
        if target not in self._interfaces:
            answer = self.finder.ask("interfaces", {"target": target}, deadline)
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
        answer = self.finder.ask("resolve", {"target": name, "method": path}, deadline)
        target = self._targets.get(name)
        if target and (len(target.slots) >= _MOST_SLOTS or target.instance != answer["instance"]):
            self._lose(name)
            target = None
        if target is None:
            sock = wire.connect(answer["address"], name, deadline)
            target = self._targets[name] = _Target(answer["instance"], wire.Channel(sock))
            outgoing = target.outgoing
            self.loop.add_channel(target.channel, outgoing.take, lambda: self._lost(name, outgoing))
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

    def _forget(self, instance: str) -> None:
        """What was resolved for an instance is void."""
        for name in [name for name, one in self._targets.items() if one.instance == instance]:
            self._lose(name)
        # An interface may have been asked for without a call.
        self._interfaces.clear()

    # What the program waits for.

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
        self.finder.watch(class_, born, died, self._deadline(timeout))

    def poll(self, timeout: float = 0.0) -> int:
        """Takes in what has come, or comes within `timeout` seconds, and runs handlers and callbacks for
        it. Returns how many were run."""
        return self.loop.poll(timeout)

    def enqueue(self, work: Callable[[], None]) -> None:
        """Has `poll` or `serve` do something, after what came before."""
        self.loop.enqueue(work)

    def serve(self) -> None:
        """Runs handlers and callbacks until `stop` is called."""
        self.loop.serve()

    def stop(self) -> None:
        """Ends `serve`. May be called from a handler, a signal handler, and another thread."""
        self.loop.stop()

    def close(self) -> None:
        """Ends all connections. A component of this process is gone then."""
        self.finder.forget_served()
        self.loop.close()

    def __enter__(self) -> Node:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
