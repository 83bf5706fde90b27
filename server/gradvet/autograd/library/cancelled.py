"""Sums in which a gradient cancels out: `hard - soft + soft` is a straight-through estimator without its `detach()`."""

from gradvet.autograd.library.kept import Inputs, Operand
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import NOTHING, YES, Tensor


def cancelled(m: Machine, words: str, inputs: Inputs) -> frozenset[int]:
    """The leaves whose gradient a sum cancels out: it adds what was taken away before, and is left with something else."""
    if words != "+" or m.judge is None or len(inputs.operands) != 2 or inputs.unknown:  # noqa: PLR2004
        return NOTHING
    one, other = inputs.operands
    return _in_both(m, one, other.state) or _in_both(m, other, one.state)


def _in_both(m: Machine, difference: Operand, taken: Tensor) -> frozenset[int]:
    """The leaves of what is taken away in an operand `something - taken`, if that something has nothing to do with them."""
    nodes = difference.state.nodes
    if taken.requires_grad != YES or len(nodes) != 1 or m.judge is None:
        return NOTHING
    made = m.judge.flow.made(next(iter(nodes)))
    if made is None or made.name != "-" or len(made.parts) != 2 or made.others:  # noqa: PLR2004
        return NOTHING
    left, right = made.parts
    same = (
        right.nodes == taken.nodes and right.leaves == taken.leaves and len(taken.nodes or taken.leaves) == 1
    )
    apart = not left.asks or _is_flat(m, left.nodes) or (left.sure and bool(left.leaves))
    # What was chosen or rounded from the very thing stands in for it; a return that a value is taken from does not.
    stands_in = any(
        m.cuts[cut].kind in ("nondiff", "zero") and not taken.leaves.isdisjoint(m.cuts[cut].leaves)
        for cut in left.cuts
    )
    return taken.leaves if same and apart and stands_in and taken.leaves.isdisjoint(left.leaves) else NOTHING


def _is_flat(m: Machine, nodes: frozenset[int]) -> bool:
    """Whether a tensor requires grad, and its gradient is zero: it was rounded."""
    state = m.cells.get(next(iter(nodes))) if len(nodes) == 1 else None
    return (
        type(state) is Tensor and not state.leaves and any(m.cuts[cut].kind == "zero" for cut in state.cuts)
    )
