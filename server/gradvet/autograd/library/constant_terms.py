"""The terms of a sum that are constants, since a cut stands before them: they change a loss and no gradient."""

from gradvet.autograd.library.inputs import argument_cuts
from gradvet.autograd.library.kept import Inputs
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import MAYBE, NO, NOTHING, YES, Tensor
from gradvet.autograd.unknowns import is_made_of_data, is_of_data, is_weight, weights_in

_LINEAR = frozenset({"+", "-", "+=", "-=", "*", "/", "*=", "/=", "neg", "mean()", "sum()", "add()", "sub()"})
_ADDING = frozenset({"+", "-", "+=", "-=", "add()", "sub()"})
_RESIDUAL = frozenset({
    "**", "pow", "square", "abs", "norm", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "view", "reshape",
    "flatten", "squeeze", "[...]", "cat", "stack", "concat",
})  # fmt: skip
"""What the residual of an equation goes through on its way to a loss, and what goes through a network seldom does."""
_TOGETHER = frozenset({"cat", "stack", "concat", "concatenate", "hstack", "vstack", "column_stack"})
_OF_LOGITS = frozenset({
    "cross_entropy", "CrossEntropyLoss", "log_softmax", "LogSoftmax", "nll_loss", "NLLLoss", "logsumexp",
    "binary_cross_entropy_with_logits", "BCEWithLogitsLoss",
})  # fmt: skip
"""What is given scores side by side, each of which is to be pushed up or down."""

DERIVATIVE = "derivative"
"""The form of a cut that made a plain number of the derivative by what a network was given."""
STEP = "step"
"""The same, where what it was taken by is moved along it: the network is then run there."""
IN_RESIDUAL = "residual"
"""The same, where it was added to what has a graph and not only weighted after that."""


def dead_terms(m: Machine, words: str, inputs: Inputs) -> frozenset[int]:
    """The cuts of terms that are only added: whatever their weight, they change a loss and no gradient."""
    asking = [o for o in inputs.operands if o.state.requires_grad & YES]
    if (
        (inputs.unknown or asking)
        and all(o.state.requires_grad == MAYBE and o.state.dead for o in asking)
        and all(is_made_of_data(m, value) for value in inputs.unknown)
        and all(is_of_data(m, o.value) for o in asking)
    ):
        # Whatever is computed of constants and of data is a constant; that it may require grad is for the data's sake.
        behind = frozenset[int]().union(*(o.state.cuts for o in inputs.operands))
        return _weighted(m, inputs, m.nearest_cut(behind | argument_cuts(m, inputs)))
    if not inputs.operands:
        return NOTHING
    if words not in _LINEAR:
        short = words.removesuffix("()")
        if short in _OF_LOGITS:
            return inputs.operands[0].state.dead if asking == [inputs.operands[0]] else NOTHING
        found = _derivatives(m, inputs) if short in _RESIDUAL else NOTHING
        return found | _beside(m, inputs) if short in _TOGETHER else found
    dead = NOTHING
    if words in _ADDING:
        _note_steps(m, inputs)
        for operand in inputs.operands:
            state = operand.state
            if state.requires_grad == YES:
                dead |= state.dead
                if not state.leaves and not state.assumes:
                    dead |= m.nearest_cut(frozenset(c for c in state.cuts if m.cuts[c].kind == "zero"))
            elif state.requires_grad == NO:
                dead |= m.nearest_cut(state.cuts) - _of_its_own(m, state, inputs)
            else:
                dead |= state.dead
        dead |= m.nearest_cut(argument_cuts(m, inputs))
    elif len(inputs.operands) == 1 and all(is_weight(m, value) for value in inputs.unknown):
        state = inputs.operands[0].state
        # A weight of which nothing is known makes of a constant no more than a constant that is weighted.
        dead = _weighted(m, inputs, state.dead if state.requires_grad != NO else m.nearest_cut(state.cuts))
    elif len(asking) == 1:
        dead = frozenset(c for c in asking[0].state.dead if m.cuts[c].form in (DERIVATIVE, IN_RESIDUAL))
    return dead


def _of_its_own(m: Machine, state: Tensor, inputs: Inputs) -> frozenset[int]:
    """The cuts of a constant beside the very thing that it was detached from: `x.detach() - x` keeps the gradient."""
    beside = frozenset[int]().union(*(o.state.nodes for o in inputs.operands if o.state.requires_grad & YES))
    return frozenset(c for c in state.cuts if m.cuts[c].nodes and m.cuts[c].nodes <= beside)


def _beside(m: Machine, inputs: Inputs) -> frozenset[int]:
    """The cuts of constants that are put beside what has a graph and was computed from the same parameters."""
    live = frozenset[int]().union(*(o.state.leaves for o in inputs.operands if o.state.requires_grad == YES))
    dead = frozenset[int]().union(*(o.state.dead for o in inputs.operands if o.state.requires_grad == YES))
    for operand in inputs.operands:
        if operand.state.requires_grad == NO:
            dead |= {c for c in m.nearest_cut(operand.state.cuts) if m.cuts[c].leaves & live}
    return dead


def _weighted(m: Machine, inputs: Inputs, dead: frozenset[int]) -> frozenset[int]:
    """The cuts of what is multiplied by something unknown, which is noted for them."""
    if inputs.unknown and dead and m.judge is not None:
        weights = frozenset[int]().union(*(weights_in(m, value) for value in inputs.unknown))
        for cut in dead:
            m.judge.cut_notes.weighted.setdefault(cut, set()).update(weights)
    return dead


def _note_steps(m: Machine, inputs: Inputs) -> None:
    """Which derivatives are added to the very thing that they were taken by: `z - rate * slope`."""
    for operand in inputs.operands:
        for cut in operand.state.cuts if operand.state.requires_grad == NO else ():
            info = m.cuts[cut]
            if info.form == DERIVATIVE and any(
                not info.by.isdisjoint(other.state.nodes | other.state.storage)
                for other in inputs.operands
                if other is not operand
            ):
                info.form = STEP


def _derivatives(m: Machine, inputs: Inputs) -> frozenset[int]:
    """The cuts of derivatives that were added to what has a graph: squared or not, they are what is to be learnt.

    Any other constant may well be meant there: it is no more than a coefficient of the gradient.
    """
    found = NOTHING
    for operand in inputs.operands:
        state = operand.state
        behind = state.dead if state.requires_grad & YES else m.nearest_cut(state.cuts)
        found |= {c for c in behind if m.cuts[c].form in (DERIVATIVE, IN_RESIDUAL)}
    if not any(operand.state.requires_grad & YES for operand in inputs.operands):
        return NOTHING
    for cut in found:
        m.cuts[cut].form = IN_RESIDUAL
    return found
