"""A module and those that it imports: which of them a node belongs to."""

import ast
from collections.abc import Iterable, Sequence
from functools import cached_property

from gradvet.syntax.parents import Parents
from gradvet.syntax.parse import Module


def elsewhere(own: Module, others: Iterable[Module], node: ast.AST) -> Module | None:
    """The module of others that a node belongs to; None when it is one of our own."""
    if own.holds(node):
        return None
    return next((other for other in others if other.holds(node)), None)


class Together(Module):
    """A module in which the nodes of others have parents as well."""

    def __init__(self, own: Module, others: Sequence[Module]) -> None:
        """Take over what the one is."""
        super().__init__(own.source, own.tree, own.problems, own.healed, own.former, own.gone)
        self._parts = (own, *others)

    @cached_property
    def parents(self) -> Parents:
        """The node that each node stands in, in whichever module."""
        return Parents(*(part.tree for part in self._parts))
