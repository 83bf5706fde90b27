"""What runs once more when a backward comes to what it gave, to see what it comes by then."""

import ast
from collections.abc import Callable, Iterable
from typing import NamedTuple

from gradvet.autograd.backward_pass import AFTER_BACKWARD
from gradvet.autograd.held import held_tensors
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import Tensor
from gradvet.autograd.memory.values import Value

_MOST = 16
"""Of so many things, those that were last, it is looked whether a backward comes by them."""


class Again(NamedTuple):
    """What runs when a backward visits one of these nodes."""

    nodes: frozenset[int]
    run: Callable[[], None]


def runs_again(m: Machine, value: Value, run: Callable[[], None]) -> None:
    """Run something whenever a backward comes to this value."""
    nodes = frozenset(at & ~1 for _, state in held_tensors(m, value) for at in state.nodes)
    if nodes:
        m.again.append(Again(nodes, run))


def now_held(m: Machine, values: Iterable[Value]) -> tuple[object, ...]:
    """What autograd holds by now for the tensors in some values, to tell whether it has changed."""
    states = (state for value in values for _, state in held_tensors(m, value))
    return tuple((t.requires_grad, t.is_leaf, t.grad_fn, t.view, t.inference) for t in states)


def _passed(
    m: Machine, site: ast.AST, visited: Iterable[int], creates: int, root: Tensor | None, *, accumulated: bool
) -> None:
    if accumulated or not m.again:
        return
    nodes = {at & ~1 for at in visited}
    for one in m.again[-_MOST:]:
        if one.nodes & nodes:
            one.run()


AFTER_BACKWARD.append(_passed)
