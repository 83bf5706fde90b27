"""The interpreter's memory, with a trail: branches are run one after the other and only what they changed is joined."""

from collections.abc import Callable, Iterable
from typing import Any

from gradvet.autograd.memory.sharing import SHARERS, Sharing

Key = Any  # an address, a name in a scope, an attribute of an address
Delta = dict[Key, Any]


class Seen:
    """What cells held at several moments since a mark, joined."""

    __slots__ = ("at", "base", "cells", "last", "whole")

    def __init__(self, base: int, *, whole: bool) -> None:
        """Begin at a mark. `whole` is whether the last of the moments is wanted by itself as well."""
        self.base = self.at = base
        self.cells: Delta = {}
        self.last: Delta = {}
        self.whole = whole


class Store:
    """Cells by key. Nothing is ever None: an absent cell is None, or for some keys stands for something.

    Every change is noted on the trail, so that going back to a mark, and telling what changed since
    a mark, cost what was changed and not what there is.
    """

    __slots__ = ("_absent", "_join", "cells", "low", "perhaps", "sharing", "trail", "work")

    def __init__(
        self, join: Callable[[Any, Any], Any], absent: Callable[[Key], Any] = lambda _: None
    ) -> None:
        """Start empty; `join` unites two values of one cell, `absent` is what a path holds in a cell it never wrote."""
        self.cells: dict[Key, Any] = {}
        self.trail: list[tuple[Key, Any]] = []
        self.work = 0
        """How many cells were gone through so far, as a measure of time that needs no clock."""
        self.low = 0
        """Up to here, the trail is as it was when this was last set."""
        self.sharing = Sharing()
        self.perhaps: set[Key] = set()
        """The cells of objects that were there on a path which had not written these."""
        self._join, self._absent = join, absent

    def set(self, key: Key, value: Any) -> None:
        """Write a cell; None removes it."""
        old = self.cells.get(key)
        if old is value:
            return
        self.trail.append((key, old))
        if value is None:
            del self.cells[key]
        else:
            self.cells[key] = value
            if type(value) in SHARERS and _moved(old, value):
                self.sharing.note(key, value)

    def mark(self) -> int:
        """A place on the trail to come back to."""
        return len(self.trail)

    def delta(self, mark: int) -> Delta:
        """What the cells changed since the mark hold now."""
        get = self.cells.get
        self.work += len(self.trail) - mark
        return {key: get(key) for key, _ in self.trail[mark:]}

    def touched(self, mark: int) -> frozenset[Any]:
        """The cells that were set since the mark."""
        return frozenset(key for key, _ in self.trail[mark:])

    def changes(self, mark: int) -> Delta:
        """The cells that do not hold what they held at the mark, with what they hold now."""
        get = self.cells.get
        self.work += len(self.trail) - mark
        before: Delta = {}
        for key, old in self.trail[mark:]:
            before.setdefault(key, old)
        return {key: now for key, old in before.items() if (now := get(key)) is not old}

    def undo(self, mark: int) -> None:
        """Go back to the mark."""
        cells, trail = self.cells, self.trail
        changes = trail[mark:]
        if not changes:
            return
        del trail[mark:]
        self.low = min(self.low, mark)
        changes.reverse()
        for key, old in changes:
            if old is None:
                cells.pop(key, None)
            else:
                cells[key] = old

    def settle(self, mark: int) -> None:
        """Note once what was changed since the mark, and not at all what is again as it was.

        No later mark may be gone back to after this.
        """
        trail, get = self.trail, self.cells.get
        self.low = min(self.low, mark)
        self.work += len(trail) - mark
        before: Delta = {}
        for key, old in trail[mark:]:
            before.setdefault(key, old)
        trail[mark:] = [change for change in before.items() if get(change[0]) is not change[1]]

    def look(self, seen: Seen) -> None:
        """Add the present moment; the cost is what changed since the last one."""
        trail, get, known = self.trail, self.cells.get, seen.cells
        changes = trail[max(seen.base, min(self.low, seen.at)) :]
        self.work += len(changes)
        for key, old in changes:
            if key not in known:
                known[key] = self._absent(key) if old is None else old
                if known[key] is None and type(key) is tuple and key[0] in self.cells:
                    self.perhaps.add(key)
        for key, _ in changes:
            known[key] = self.union((known[key], get(key)))
        self.low = seen.at = len(trail)
        if seen.whole:
            seen.last = self.delta(seen.base)

    def take(self, mark: int) -> Delta:
        """What changed since the mark; the store is back at the mark afterwards."""
        delta = self.delta(mark)
        self.undo(mark)
        return delta

    def merge(self, deltas: list[Delta]) -> None:
        """Join the ends of several paths that began at the present state."""
        if len(deltas) == 1:
            self.apply(deltas[0])
            return
        get, join = self.cells.get, self._join
        joined: Delta = {}
        for delta in deltas:
            for key in delta:
                if key in joined:
                    continue
                before = get(key)
                united = None
                for other in deltas:
                    value = other.get(key, before)
                    if value is None:
                        value = self._absent(key)
                        if (
                            value is None
                            and type(key) is tuple
                            and other.get(key[0], get(key[0])) is not None
                        ):
                            self.perhaps.add(key)
                    if value is not None and value is not united:
                        united = value if united is None else join(united, value)
                joined[key] = united
        self.apply(joined)

    def apply(self, delta: Delta) -> None:
        """Write all cells of a delta."""
        cells, trail, note = self.cells, self.trail, self.sharing.note
        self.work += len(delta)
        for key, value in delta.items():
            old = cells.get(key)
            if old is value:
                continue
            trail.append((key, old))
            if value is None:
                del cells[key]
            else:
                cells[key] = value
                if type(value) in SHARERS and _moved(old, value):
                    note(key, value)

    def union(self, values: Iterable[Any]) -> Any:
        """The join of some cell values, of which absent ones do not count."""
        joined = None
        for value in values:
            if value is None or value is joined:
                continue
            joined = value if joined is None else self._join(joined, value)
        return joined


def _moved(old: Any, new: Any) -> bool:
    """Whether what has storage lies, or is a view of something, elsewhere than what was in its cell before."""
    if type(old) is not type(new) or old.storage is not new.storage:
        return True
    return getattr(old, "base", None) is not getattr(new, "base", None)
