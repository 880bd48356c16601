"""Who may call a component, and what: as the Finder has said, and as callers prove.

A caller shows a ticket when it connects and names methods by keys, both of which it has from the Finder; the
kernel says which process it is. What is known of a caller lasts as long as it is connected to the Finder.

Reference: Handley et al. (XORP), section 7.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from typing import Any, Callable, Container, Iterable

from . import wire
from .errors import BadArgs, NoSuchMethod, ResolveFailed
from .limits import Limits
from .text import find_method
from .xif import Interface, Method

#: Tickets of one session that were not used; older ones are void.
_MOST_TICKETS = 8


def remote_operator(key_hash: bytes) -> str:
    """What the operator who has a key is called, as a caller."""
    return f"operator (key {key_hash.hex()})"


@dataclass
class Right:
    """One caller's right to call one method."""

    key: bytes
    interface: Interface
    method: Method
    limits: Limits


@dataclass
class Session:
    """A caller, as long as it is connected to the Finder."""

    caller: str
    pid: int
    uid: int
    tickets: list[bytes] = field(default_factory=list)
    rights: dict[str, Right] = field(default_factory=dict)
    #: The program knows that it has left.
    told: bool = False


class Callers:
    """The callers of one component. `left` is told by name of those who have left, and whether for good."""

    def __init__(
        self, interfaces: Iterable[Interface], left: Callable[[str, bool], None]
    ) -> None:
        self._interfaces = list(interfaces)
        self._left = left
        self._sessions: dict[int, Session] = {}

    def grant(self, grant: dict[str, Any]) -> None:
        """The Finder lets somebody call a method."""
        path, key, ticket = grant["method"], grant["key"], grant["ticket"]
        found = find_method(self._interfaces, path)
        if found is None:
            raise NoSuchMethod(f"{grant['instance']} has no method {path}")
        if len(key) != wire.KEY_LEN or len(ticket) != wire.KEY_LEN:
            raise BadArgs("a key or ticket is no key")
        interface, method = found
        right = Right(key, interface, method, Limits(grant["limits"], method, interface))
        session = self._sessions.setdefault(
            grant["session"], Session(grant["caller"], grant["pid"], grant["uid"])
        )
        session.tickets = [*session.tickets, ticket][-_MOST_TICKETS:]
        # A newer key for the same method replaces the older one, which stays bound where it is.
        session.rights[f"{interface.name}/{method.name}"] = right

    def revoke(self, number: int, removed: bool) -> None:
        """The Finder says that a caller is gone; if it was removed, it will not come back."""
        session = self._sessions.pop(number, None)
        if session:
            self._tell(session, removed)

    def disconnected(self, number: int) -> None:
        """The last connection of a caller has ended."""
        session = self._sessions.get(number)
        if session:
            self._tell(session, removed=False)

    def finder_gone(self, connected: Container[int]) -> None:
        """Nobody will say any more which callers go: only those who are connected stay known."""
        for number in [number for number in self._sessions if number not in connected]:
            self._tell(self._sessions.pop(number), removed=False)

    def admit(
        self, ticket: bytes, pid: int, uid: int, key_hash: bytes | None = None
    ) -> tuple[int, str]:
        """The session and the name of whoever shows a ticket, which is used up. `key_hash` is of the key of an
        operator on another machine, for whom a gateway shows it."""
        for number, session in self._sessions.items():
            known = next((one for one in session.tickets if hmac.compare_digest(one, ticket)), None)
            if known is None:
                continue
            other = key_hash is not None and session.caller != remote_operator(key_hash)
            if other or (session.pid, session.uid) != (pid, uid):
                raise ResolveFailed("the ticket was given to another process")
            session.tickets.remove(known)
            session.told = False
            return number, session.caller
        raise ResolveFailed("the ticket is void or was used before; have the method resolved again")

    def right(self, key: bytes, own: int, caller: str, pid: int, uid: int) -> Right | None:
        """What a key is good for that is shown on a connection of the session `own`; a process may have
        several sessions, and behind that of a gateway are several callers."""
        for number, session in self._sessions.items():
            if number != own and (session.caller, session.pid, session.uid) != (caller, pid, uid):
                continue
            for right in session.rights.values():
                if hmac.compare_digest(right.key, key):
                    return right
        return None

    def _tell(self, session: Session, removed: bool) -> None:
        others = (one for one in self._sessions.values() if one is not session)
        is_there = any(one.caller == session.caller and not one.told for one in others)
        if is_there or (session.told and not removed):
            return
        session.told = True
        self._left(session.caller, removed)
