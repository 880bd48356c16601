"""Components in Python: what of this process can be called.

Arguments are checked against the interface, and against the ranges that the Finder has set for this caller,
before a handler sees them. Whatever a caller sends ends at worst its own connection.

Reference: Handley et al. (XORP), section 7.
"""

from __future__ import annotations

import logging
import os
import socket
import struct
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Iterable, Mapping

from . import wire
from .callers import Callers, Right
from .errors import (
    BadArgs,
    CommandFailed,
    InternalError,
    ResolveFailed,
    SendFailed,
    SendFailedTransient,
    XrlError,
)
from .finder import WINDOW, own_interface
from .node import Node
from .text import read_arguments, write_arguments
from .xif import Interface

log = logging.getLogger("weft.xrl")

#: What the names of the sockets begin with at which components take calls.
CALLS = "xrl-"

#: Methods that one connection may bind.
_MOST_SLOTS = 4096
#: Connections, and those of them that have not said who they are.
_MOST_CONNECTIONS = 512
_MOST_STRANGERS = 64
#: Bytes of arguments of calls that wait for a handler, and of replies that a caller does not read.
_MOST_QUEUED = 16 << 20
_MOST_UNSENT = 8 << 20

#: Gets the arguments by name and who calls; returns the return arguments by name, or None for none.
Handler = Callable[[dict[str, Any], str], Mapping[str, Any] | None]


@dataclass(eq=False)
class _Connection:
    channel: wire.Channel
    pid: int
    uid: int
    #: Who it is, once it has shown its ticket.
    session: int | None = None
    caller: str = "?"
    slots: dict[int, Right] = field(default_factory=dict)
    #: How many of its calls are not answered.
    open: int = 0


class Component:
    """A component of this process.

    `class_` and `instance` are its names, `interfaces` the texts of its interface files, and `handlers`
    has a function for each of their methods, by `interface/method`. A handler raises CommandFailed or another
    XrlError to refuse; any other exception is logged and told as COMMAND_FAILED. Handlers run in
    `Node.poll` and `Node.serve`, one after the other, and may call other components.

    `listen` is a listening socket, such as an inherited one, or the path of one to make; without it the
    socket is made where the node's own components have theirs.

    The interface component/1.0, with which the manager configures components, is added: `check` and
    `configure` get the file's name, the number of the first line, and the text of the component's
    statement, and raise CommandFailed if they do not take it; `status` returns whether the component
    works, and more for people.

    `left` is told of callers that are gone, by the names that handlers know them by, and whether the node does not
    want their process any more. If it does, the process may be started again and call again, so that what it has
    left may be kept for a while. That it will not come back may be said later.
    """

    def __init__(
        self,
        node: Node,
        class_: str,
        instance: str,
        interfaces: str | Iterable[str],
        handlers: Mapping[str, Handler],
        *,
        listen: socket.socket | str | os.PathLike[str] | None = None,
        sole: bool = False,
        check: Callable[[str, int, str], None] | None = None,
        configure: Callable[[str, int, str], None] | None = None,
        schema: str = "",
        status: Callable[[], tuple[bool, str]] | None = None,
        left: Callable[[str, bool], None] | None = None,
        timeout: float = 5.0,
    ) -> None:
        texts = [interfaces] if isinstance(interfaces, str) else list(interfaces)
        self.node = node
        self.class_ = class_
        self.instance = instance
        #: Whether the Finder knows it, and if not, why.
        self.is_registered = False
        self.trouble: XrlError | None = None
        self._sole = sole
        self._interfaces = [Interface.parse(text) for text in texts] + [own_interface("component")]
        self._handlers: dict[str, Handler] = {**_own(check, configure, schema, status), **handlers}
        self._check_handlers()
        self._connections: dict[wire.Channel, _Connection] = {}
        self._left = left
        self._callers = Callers(self._interfaces, self._tell_left)
        self._queued = 0
        self._made = ""
        self._listener = self._listen(listen)
        self._path = _path_of(self._listener)
        node.loop.add_listener(self._listener, self._accept)
        node.finder.add_served(self, time.monotonic() + timeout)

    def _check_handlers(self) -> None:
        offered = {f"{one.name}/{method}" for one in self._interfaces for method in one.methods}
        missing, unknown = offered - set(self._handlers), set(self._handlers) - offered
        if missing or unknown:
            raise ValueError(
                f"methods without handler: {sorted(missing)}; handlers without method: {sorted(unknown)}"
            )

    def _listen(self, listen: socket.socket | str | os.PathLike[str] | None) -> socket.socket:
        if isinstance(listen, socket.socket):
            return listen
        path = os.path.abspath(listen or os.path.join(self.node.run_dir, CALLS + self.instance))
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            sock.bind(path)
            # Callers have users of their own; who they are is checked by their tickets.
            os.chmod(path, 0o666)
            sock.listen(64)
        except OSError as error:
            sock.close()
            raise OSError(error.errno, f"{error.strerror}: {path}") from None
        self._made = path
        return sock

    def close(self) -> None:
        """Takes the component back. Callers that wait for an answer are told that it is gone."""
        self.node.finder.remove_served(self)
        self.node.loop.remove_listener(self._listener)
        self._listener.close()
        if self._made:
            os.unlink(self._made)
        for channel in list(self._connections):
            channel.close()

    def __enter__(self) -> Component:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # What the node asks.

    def registration(self) -> dict[str, Any]:
        """What the Finder is told."""
        return {
            "class": self.class_,
            "instance": self.instance,
            "sole": self._sole,
            "address": f"text+unix:{self._path}",
            "interfaces": [one.text for one in self._interfaces],
        }

    def registered(self, error: XrlError | None) -> None:
        """The Finder has answered the registration."""
        if error and str(error) != str(self.trouble):
            log.warning("the Finder does not register %s: %s", self.instance, error)
        self.is_registered, self.trouble = error is None, error

    def grant(self, grant: dict[str, Any]) -> None:
        """The Finder lets somebody call a method."""
        self._callers.grant(grant)

    def revoke(self, session: int, removed: bool) -> None:
        """The Finder says that a caller is gone."""
        self._callers.revoke(session, removed)
        for connection in list(self._connections.values()):
            if connection.session == session:
                connection.channel.close()

    def finder_gone(self) -> None:
        """Nobody will say any more which callers go."""
        self._callers.finder_gone({one.session for one in self._connections.values()})

    def _tell_left(self, caller: str, removed: bool) -> None:
        left = self._left
        if left is None:
            return

        def work() -> None:
            try:
                left(caller, removed)
            except Exception:
                log.exception("%s, told that %s has left", self.instance, caller)

        self.node.enqueue(work)

    # Connections.

    def _accept(self) -> None:
        try:
            sock, _ = self._listener.accept()
        except OSError:
            return
        try:
            data = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("iII"))
            pid, uid, _ = struct.unpack("iII", data)
        except OSError:
            return sock.close()
        self._make_room()
        channel = wire.Channel(sock, _MOST_UNSENT, wire.FIRST_FRAME)
        connection = self._connections[channel] = _Connection(channel, pid, uid)
        self.node.loop.add_channel(
            channel, lambda frame: self._frame(connection, frame), lambda: self._closed(connection)
        )

    def _closed(self, connection: _Connection) -> None:
        self._connections.pop(connection.channel, None)
        session = connection.session
        if session is not None and all(one.session != session for one in self._connections.values()):
            self._callers.disconnected(session)

    def _make_room(self) -> None:
        """Ends the oldest connections if there are too many; first those of nobody knows whom."""
        open_ones = [one for one in self._connections.values() if not one.channel.closed]
        strangers = [one for one in open_ones if one.session is None]
        if len(strangers) >= _MOST_STRANGERS:
            strangers[0].channel.close()
        elif len(open_ones) >= _MOST_CONNECTIONS:
            open_ones[0].channel.close()

    def _frame(self, connection: _Connection, frame: wire.Frame) -> None:
        if connection.channel.closed:
            return
        try:
            if isinstance(frame, wire.Call):
                self._call(connection, frame)
            elif isinstance(frame, wire.Bind):
                self._bind(connection, frame)
            elif isinstance(frame, wire.Hello):
                self._hello(connection, frame)
            else:
                raise InternalError("only callers connect here")
        except XrlError as error:
            log.warning("a connection to %s is refused: %s", self.instance, error)
            connection.channel.send(wire.Goodbye(error).emit())
            connection.channel.close()

    def _hello(self, connection: _Connection, hello: wire.Hello) -> None:
        if hello.version != wire.PROTOCOL:
            raise SendFailed(f"this process speaks version {wire.PROTOCOL}, not {hello.version}")
        if connection.session is not None:
            raise ResolveFailed("there was a hello already")
        if hello.credential not in (wire.TICKET, wire.TICKET_FOR):
            raise ResolveFailed("a ticket is needed; have the method resolved by the Finder")
        ticket, key_hash = hello.data[: wire.KEY_LEN], hello.data[wire.KEY_LEN :]
        connection.session, connection.caller = self._callers.admit(
            ticket, connection.pid, connection.uid, key_hash or None
        )
        connection.channel.longest = wire.LONGEST_FRAME
        welcome = wire.Welcome(wire.PROTOCOL, WINDOW, connection.caller)
        connection.channel.send(welcome.emit())

    def _bind(self, connection: _Connection, bind: wire.Bind) -> None:
        if bind.slot >= _MOST_SLOTS or connection.session is None:
            return
        connection.slots.pop(bind.slot, None)
        right = self._callers.right(
            bind.key, connection.session, connection.caller, connection.pid, connection.uid
        )
        if right:
            connection.slots[bind.slot] = right

    def _call(self, connection: _Connection, call: wire.Call) -> None:
        """Checks a call and has it carried out when its turn comes."""
        try:
            right = connection.slots.get(call.slot)
            if right is None:
                raise ResolveFailed("this key is not one that the Finder gave to this caller")
            if connection.open >= WINDOW or self._queued + len(call.args) > _MOST_QUEUED:
                raise SendFailedTransient("too many calls are not answered yet")
            if not call.text:
                raise BadArgs("this component takes arguments as text only")
            try:
                text = call.args.decode()
            except UnicodeDecodeError:
                raise BadArgs("the text is not UTF-8") from None
            values = read_arguments(text, right.method.args, right.interface)
            right.limits.check(values)
        except XrlError as error:
            connection.channel.send(wire.Failed(call.id, error).emit())
            return
        size = len(call.args)
        connection.open += 1
        self._queued += size

        def work() -> None:
            connection.open -= 1
            self._queued -= size
            if not connection.channel.closed:
                answer = self._answer(call.id, right, values, connection.caller)
                connection.channel.send(answer.emit())

        self.node.enqueue(work)

    def _answer(
        self, number: int, right: Right, values: dict[str, Any], caller: str
    ) -> wire.Reply | wire.Failed:
        name = f"{right.interface.name}/{right.method.name}"
        try:
            returned = self._handlers[name](values, caller)
            text = write_arguments(dict(returned or {}), right.method.returns, right.interface)
            data = text.encode()
            if len(data) + 16 > wire.LONGEST_FRAME:
                raise CommandFailed("the answer is longer than a message")
            return wire.Reply(number, data)
        except XrlError as error:
            return wire.Failed(number, error)
        except Exception as error:
            log.exception("%s, called by %s", name, caller)
            note = f"{self.instance} is broken: {type(error).__name__}; its log says more"
            return wire.Failed(number, CommandFailed(note))


def _path_of(listener: socket.socket) -> str:
    path = listener.getsockname()
    if not isinstance(path, str) or not path.startswith("/"):
        raise ValueError("a component listens at a Unix socket with an absolute path")
    return path


def _own(
    check: Callable[[str, int, str], None] | None,
    configure: Callable[[str, int, str], None] | None,
    schema: str,
    status: Callable[[], tuple[bool, str]] | None,
) -> dict[str, Handler]:
    """The handlers of component/1.0."""

    def refuse(source: str, line: int, text: str) -> None:
        if text.strip():
            raise CommandFailed(f"{source}:{line}: this component takes no configuration")

    def of_configuration(function: Callable[[str, int, str], None]) -> Handler:
        return lambda args, _: function(args["source"], args["line"], args["text"])

    def tell(_: dict[str, Any], __: str) -> dict[str, Any]:
        ready, detail = status() if status else (True, "")
        return {"ready": ready, "detail": detail}

    return {
        "component/check": of_configuration(check or configure and _no_check or refuse),
        "component/configure": of_configuration(configure or refuse),
        "component/schema": lambda _, __: {"text": schema},
        "component/status": tell,
    }


def _no_check(_source: str, _line: int, _text: str) -> None:
    """A component that does not check finds mistakes when it is configured."""
