"""Tensors that were made outside of grad mode, where autograd meets them: inference tensors, and views."""

import ast

from gradvet.autograd.events_mode import InferenceTensorUsed, UnrecordedView
from gradvet.autograd.knowledge.ops import Op
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import GRAD, INFERENCE, YES, Tensor


def view_made(m: Machine, site: ast.AST) -> None:
    """A view is made here, in these grad modes."""
    m.view_modes[site] = m.view_modes.get(site, 0) | m.mode


def _is_unrecorded(m: Machine, state: Tensor) -> bool:
    """Whether a view was made with grad mode off, whenever that was."""
    site = state.origin.node if state.origin is not None else None
    return state.view == YES and site is not None and not m.view_modes.get(site, GRAD) & GRAD


def used(m: Machine, site: ast.AST, op: Op | None, operands: tuple[tuple[str, Tensor], ...]) -> None:
    """An op that autograd records has these operands, by parameter."""
    if m.mode != GRAD or m.transformed:
        return  # a transform keeps wrapped tensors, which are no inference tensors
    asking = {parameter for parameter, state in operands if state.requires_grad == YES}
    own = [state.requires_grad for parameter, state in operands if parameter == "parameters"]
    for entry in op.saves_in if op is not None else ():
        # A layer whose own parameters all train keeps what it is given, whichever of them needs it.
        sure = entry.answer == "always" or (entry.needs == {"parameters"} and set(own) == {YES})
        if not sure or not entry.needs & asking:
            continue
        for parameter, state in operands:
            if parameter == entry.operand and state.inference == YES:
                assumed = any(t.assumes for _, t in operands)
                m.emit(
                    InferenceTensorUsed(
                        site, m.where(), "saved", _made(state), _subject(site, m, state), assumed
                    )
                )
                return
    for _, state in operands:
        alone = (
            state.requires_grad == YES and not state.nodes and not state.leaves and not state.parameter & YES
        )
        if alone and _is_unrecorded(m, state):
            m.emit(UnrecordedView(site, m.where(), _made(state), _subject(site, m, state)))


def edited(m: Machine, site: ast.AST, before: Tensor, target: ast.expr | None) -> None:
    """A tensor is changed in place."""
    if before.inference == YES and not before.counted and not m.mode & INFERENCE:
        m.emit(InferenceTensorUsed(site, m.where(), "edited", _made(before), target, assumed=False))


def asked(m: Machine, state: Tensor, node: ast.AST, subject: ast.expr | None) -> bool:
    """`requires_grad_()` on an inference tensor; whether torch raises for it."""
    if state.inference != YES or m.mode & INFERENCE:
        return False
    m.emit(InferenceTensorUsed(node, m.where(), "flag", _made(state), subject, assumed=False))
    return True


def _made(state: Tensor) -> ast.AST | None:
    return state.origin.node if state.origin is not None else None


def _subject(site: ast.AST, m: Machine, state: Tensor) -> ast.expr | None:
    """The operand of an expression that holds this tensor, when it can be told."""
    found: list[ast.expr] = []
    match site:
        case ast.BinOp(left, _, right):
            found = [left, right]
        case ast.Call(func, args):
            found = [*args, *([func.value] if isinstance(func, ast.Attribute) else [])]
    fitting = [
        node for node in found if (known := m.states.get(node)) is not None and known.origin == state.origin
    ]
    return fitting[0] if fitting else None
