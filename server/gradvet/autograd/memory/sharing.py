"""Which cells may hold tensors or arrays on a storage, or views of a base: found without going through them all."""

from collections.abc import Iterable

from gradvet.autograd.memory.domain import Tensor
from gradvet.autograd.memory.values import Array

SHARERS = frozenset({Tensor, Array})
"""What has storage."""


class Sharing:
    """The cells that ever held something on a storage, or a view of a base.

    What a cell no longer holds is not taken out: whoever asks looks at what it holds now.
    """

    __slots__ = ("_on", "_over")

    def __init__(self) -> None:
        """Nothing has storage yet."""
        self._on: dict[int, dict[int, None]] = {}
        self._over: dict[int, dict[int, None]] = {}

    def note(self, address: int, content: Tensor | Array) -> None:
        """A cell holds this from now on."""
        for place in content.storage:
            self._on.setdefault(place, {})[address] = None
        if type(content) is Tensor:
            for base in content.base:
                self._over.setdefault(base, {})[address] = None

    def on(self, storage: Iterable[int]) -> tuple[int, ...]:
        """The cells that hold, or held, something on one of these storages."""
        return _together(self._on, storage)

    def over(self, bases: Iterable[int]) -> tuple[int, ...]:
        """The cells that hold, or held, a view of one of these bases."""
        return _together(self._over, bases)


def _together(index: dict[int, dict[int, None]], keys: Iterable[int]) -> tuple[int, ...]:
    found: dict[int, None] = {}
    for key in keys:
        found.update(index.get(key, {}))
    return tuple(sorted(found))
