"""Gradients that were kept without a copy: a later backward adds to them, or they are set to zeros, in the same memory."""

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field

from gradvet.autograd.events_alias import SnapshotAliased
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.values import Ref, Value
from gradvet.syntax.parents import Parents

_Place = tuple[ast.AST, tuple[ast.AST, ...]]

_HOLDS = (ast.ListComp, ast.DictComp, ast.List, ast.Tuple, ast.Dict, ast.IfExp)
_NAMES = (ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.Return)


@dataclass(slots=True)
class KeptGradients:
    """Where the gradients of leaves were read, what changed them since, and where one met itself."""

    machine: Machine
    read: dict[int, dict[_Place, ast.AST | None]] = field(default_factory=dict)
    """By gradient: where it was read, and what has changed it in place since."""
    gone: set[int] = field(default_factory=set)
    """Those of which a leaf let go once: what it has next is another tensor."""
    met: dict[ast.AST, dict[_Place, ast.AST]] = field(default_factory=dict)
    """By an operator: where the gradient was read that it takes twice, and what has changed it since."""

    def was_read(self, gradient: Value, node: ast.AST) -> None:
        """`leaf.grad` was read."""
        if type(gradient) is Ref:
            self.read.setdefault(gradient.address & ~1, {})[node, self.machine.where()] = None

    def changes(self, gradients: Iterable[int], site: ast.AST) -> None:
        """These gradients were added to, or set to zeros, in place."""
        for address in gradients:
            places = self.read.get(address & ~1, {})
            places.update(dict.fromkeys(places, site))

    def left(self, gradients: Iterable[int]) -> None:
        """Their leaves have these gradients no longer."""
        self.gone.update(address & ~1 for address in gradients)

    def combined(self, node: ast.AST, one: Value, other: Value) -> None:
        """An operator takes two values: whether they are one gradient, by the name of something that was kept."""
        address = one.address & ~1 if one == other and type(one) is Ref else None
        if address not in self.read or address in self.gone or not isinstance(node, ast.BinOp):
            return
        direct = [isinstance(side, ast.Attribute) and side.attr == "grad" for side in (node.left, node.right)]
        stale = {place: site for place, site in self.read[address].items() if site is not None}
        if stale and not all(direct) and ast.dump(node.left) != ast.dump(node.right):
            self.met.setdefault(node, stale)

    def conclude(self, parents: Parents) -> None:
        """Tell those that met themselves, where they were kept first."""
        told = set[ast.AST]()
        for node, stale in self.met.items():
            kept = next((place for place in stale if _is_kept(place[0], parents)), None)
            if kept is not None and kept[0] not in told:
                told.add(kept[0])
                event = SnapshotAliased(*kept, "gradient", kept[0], stale[kept], node, loaded=False)
                self.machine.emit(event)


def _is_kept(node: ast.AST, parents: Parents) -> bool:
    """Whether a value is given a name, or lies in what is given one, as it is."""
    while isinstance(parents.get(node), _HOLDS):
        node = parents[node]
    return isinstance(parents.get(node), _NAMES)
