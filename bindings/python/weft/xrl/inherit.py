"""What a process gets from the launcher that starts it.

The variable WEFT_INHERITED holds a JSON list with an entry for each descriptor that was passed on: its
number, its kind, its name, and for a listening socket its path. WEFT_SANDBOX names the instance and the
run directory of the node.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import stat
from dataclasses import dataclass, field

_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
_SECRET_LEN = 32


class InheritError(Exception):
    """The environment is not what a launcher sets."""


@dataclass
class Inherited:
    """What this process got."""

    #: Listening sockets, by path.
    listeners: dict[str, socket.socket] = field(default_factory=dict)
    #: Other descriptors, by name.
    kept: dict[str, int] = field(default_factory=dict)
    #: What this process proves itself with; None if no launcher started it.
    secret: bytes | None = None
    #: The name of the instance.
    instance: str = ""
    #: The run directory of the node.
    run_dir: str = ""


def inherited() -> Inherited:
    """Takes what the launcher passed on; nothing, if none did. The variables are gone afterwards, and
    what was taken is closed by exec."""
    given = Inherited()
    text, sandbox = os.environ.pop("WEFT_INHERITED", None), os.environ.pop("WEFT_SANDBOX", None)
    try:
        if sandbox is not None:
            values = json.loads(sandbox)
            given.instance = str(values["instance"])
            given.run_dir = str(values["run_directory"])
        entries = json.loads(text) if text is not None else []
        if not isinstance(entries, list):
            raise ValueError(text)
        numbers = [int(entry["fd"]) for entry in entries]
        if len(set(numbers)) != len(numbers) or min(numbers, default=3) < 3:
            raise InheritError("WEFT_INHERITED: descriptors are different and 3 or more")
        for entry in entries:
            _take(given, entry)
    except (KeyError, TypeError, ValueError, OSError) as error:
        raise InheritError(f"the environment is not what a launcher sets: {error!r}") from None
    return given


def _take(given: Inherited, entry: dict) -> None:
    descriptor, kind = int(entry["fd"]), entry["kind"]
    os.set_inheritable(descriptor, False)
    if kind == "listener":
        sock = socket.socket(fileno=descriptor)
        if not sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            raise InheritError(f"descriptor {descriptor} is no listening socket")
        given.listeners[str(entry["path"])] = sock
    elif kind == "secret":
        given.secret = _secret(descriptor)
    else:
        given.kept[str(entry["name"])] = descriptor


def _secret(descriptor: int) -> bytes:
    """Reads the secret, which nobody can change: a sealed file of 32 bytes."""
    try:
        seals = fcntl.fcntl(descriptor, fcntl.F_GET_SEALS)
        status = os.fstat(descriptor)
        sealed = seals & _SEALS == _SEALS and stat.S_ISREG(status.st_mode)
        secret = os.pread(descriptor, _SECRET_LEN, 0) if status.st_size == _SECRET_LEN else b""
        if not sealed or len(secret) != _SECRET_LEN:
            raise InheritError(f"descriptor {descriptor} is no sealed file of 32 bytes")
        return secret
    finally:
        os.close(descriptor)
