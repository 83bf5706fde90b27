"""Sums in which a gradient cancels out: `hard - soft + soft` is a straight-through estimator without its `detach()`."""

from gradvet.autograd.library.kept import Inputs, Operand
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import YES, Tensor


def cancels(m: Machine, words: str, inputs: Inputs) -> bool:
    """Whether a sum adds what was taken away before, and what is left of it carries no gradient."""
    if words != "+" or m.judge is None or len(inputs.operands) != 2 or inputs.unknown:  # noqa: PLR2004
        return False
    one, other = inputs.operands
    return _without(m, one, other.state) or _without(m, other, one.state)


def _without(m: Machine, difference: Operand, taken: Tensor) -> bool:
    """Whether an operand is `constant - taken`."""
    nodes = difference.state.nodes
    if taken.requires_grad != YES or len(nodes) != 1 or m.judge is None:
        return False
    made = m.judge.flow.made(next(iter(nodes)))
    if made is None or made.name != "-" or len(made.parts) != 2 or made.others:  # noqa: PLR2004
        return False
    left, right = made.parts
    same = right.nodes == taken.nodes and right.leaves == taken.leaves
    return same and len(taken.nodes or taken.leaves) == 1 and (not left.asks or _is_flat(m, left.nodes))


def _is_flat(m: Machine, nodes: frozenset[int]) -> bool:
    """Whether a tensor requires grad, and its gradient is zero: it was rounded."""
    state = m.cells.get(next(iter(nodes))) if len(nodes) == 1 else None
    return (
        type(state) is Tensor and not state.leaves and any(m.cuts[cut].kind == "zero" for cut in state.cuts)
    )
