"""Births and deaths of components, as the Finder tells them, and who wants to be told.

While there is no Finder nobody is born and nobody dies. When it is back, those who are told again, of the same
process, were there all the time; the others have died.
"""

from __future__ import annotations

from typing import Callable

#: Gets class and instance.
Told = Callable[[str, str], None]


class Births:
    """Which components there are."""

    def __init__(self, enqueue: Callable[[Callable[[], None]], None]) -> None:
        self._enqueue = enqueue
        self._watches: list[tuple[str | None, Told | None, Told | None]] = []
        #: Those that are there, with the numbers of their processes.
        self.alive: dict[tuple[str, str], int | None] = {}
        #: Those that were there before the Finder went.
        self.doubted: dict[tuple[str, str], int | None] = {}

    def watch(self, class_: str | None, born: Told | None, died: Told | None) -> None:
        """Tells somebody from now on, and of those that are there already, of a class or of all."""
        self._watches.append((class_, born, died))
        for one in sorted(self.alive):
            if born and class_ in (None, one[0]):
                self._enqueue(lambda one=one: born(*one))

    def classes(self) -> list[str | None]:
        """What the Finder has to be asked for."""
        return list(dict.fromkeys(class_ for class_, _, _ in self._watches))

    def born(self, one: tuple[str, str], process: int | None) -> None:
        """The Finder tells of one that is there."""
        known = one in self.alive
        if one in self.doubted:
            known = self.doubted.pop(one) == process
            # A process that came while there was no Finder does not know what its predecessor knew.
            if not known:
                self._tell(one, died=True)
        self.alive[one] = process
        if not known:
            self._tell(one, died=False)

    def died(self, one: tuple[str, str]) -> None:
        """The Finder tells of one that is gone."""
        if one in self.alive:
            del self.alive[one]
            self._tell(one, died=True)

    def doubt(self) -> None:
        """There is another Finder: it has to tell of everybody again."""
        self.doubted |= self.alive
        self.alive = {}

    def confirm(self) -> None:
        """The Finder has had the time for it: who was not told again is dead."""
        gone, self.doubted = sorted(self.doubted), {}
        for one in gone:
            self._tell(one, died=True)

    def _tell(self, one: tuple[str, str], *, died: bool) -> None:
        for class_, of_birth, of_death in self._watches:
            told = of_death if died else of_birth
            if told and class_ in (None, one[0]):
                self._enqueue(lambda told=told: told(*one))
