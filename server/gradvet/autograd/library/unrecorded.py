"""Tensors that were made outside of grad mode, where autograd meets them: inference tensors, and views."""

import ast

from gradvet.autograd.events_mode import InferenceTensorUsed, UnrecordedView
from gradvet.autograd.knowledge.ops import Op
from gradvet.autograd.library.kept import Operand
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import GRAD, INFERRING, YES, Tensor


def view_made(m: Machine, site: ast.AST) -> None:
    """A view is made here, in these grad modes."""
    m.view_modes[site] = m.view_modes.get(site, 0) | m.mode


def _is_unrecorded(m: Machine, state: Tensor) -> bool:
    """Whether a view was made with grad mode off, whenever that was."""
    site = state.origin.node if state.origin is not None else None
    return state.view == YES and site is not None and not m.view_modes.get(site, GRAD) & GRAD


def used(m: Machine, site: ast.AST, op: Op | None, operands: tuple[Operand, ...]) -> None:
    """An op that autograd records has these operands."""
    if m.mode != GRAD or m.transformed:
        return  # a transform keeps wrapped tensors, which are no inference tensors
    inference = [operand.state.inference == YES for operand in operands]
    if operands and all(inference):
        return  # autograd does not see what has to do with nothing else (measured)
    asking = [operand.state.inference == YES for operand in operands if operand.state.requires_grad & YES]
    if all(asking) and any(operand.parameter == "parameters" for operand in operands):
        return  # a layer may begin with an op on its parameters alone, which leaves their graph behind (measured)
    if op is not None and any(inference) and not (m.autocasts and op.name.rpartition(".")[2] in _CAST_FIRST):
        kept = _inference_kept(op, operands)
        if kept is not None:
            assumed = any(operand.state.assumes for operand in operands)
            m.emit(
                InferenceTensorUsed(site, m.where(), "saved", _made(kept), _subject(site, m, kept), assumed)
            )
            return
    for operand in operands:
        state = operand.state
        if state.nodes or state.leaves or state.requires_grad != YES or state.parameter & YES:
            continue
        if _is_unrecorded(m, state):
            m.bare_views.setdefault(site, False)
            m.emit(UnrecordedView(site, m.where(), _made(state), _subject(site, m, state)))


_CAST_FIRST = frozenset({
    "Linear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "RNN", "GRU", "LSTM",
    "RNNCell", "GRUCell", "LSTMCell", "MultiheadAttention", "Transformer", "TransformerEncoder", "TransformerDecoder",
    "TransformerEncoderLayer", "TransformerDecoderLayer", "PReLU", "linear", "conv1d", "conv2d", "conv3d",
    "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "prelu", "matmul", "__matmul__", "__rmatmul__", "mm", "mv",
    "bmm", "addmm", "addmv", "addr", "addbmm", "baddbmm", "einsum", "chain_matmul", "multi_dot", "vecdot",
    "scaled_dot_product_attention",
})  # fmt: skip
"""What autocast may hand copies in the lower type, which are made outside of inference mode and may be kept."""


def _inference_kept(op: Op, operands: tuple[Operand, ...]) -> Tensor | None:
    """An inference tensor that an op keeps for backward, which torch refuses."""
    asking = {operand.parameter for operand in operands if operand.state.requires_grad == YES}
    own = {operand.state.requires_grad for operand in operands if operand.parameter == "parameters"}
    for entry in op.saves_in:
        # A layer whose own parameters all train keeps what it is given, whichever of them needs it.
        sure = entry.answer == "always" or (entry.needs == {"parameters"} and own == {YES})
        if (sure or _MATMUL in op.name) and entry.needs & asking:
            for operand in operands:
                kept = operand.parameter == entry.operand and (sure or _is_matrix(operand.state))
                if kept and operand.state.inference == YES:
                    return operand.state
    return None


_MATMUL = "matmul"
"""A product that keeps a copy of what it spreads over the batches of the other operand, and of a matrix never."""


def _is_matrix(state: Tensor) -> bool:
    """Whether a tensor has two dimensions at most: what `t()` gives."""
    return state.origin is not None and state.origin.text == "t()"


def edited(m: Machine, site: ast.AST, before: Tensor, target: ast.expr | None) -> None:
    """A tensor is changed in place."""
    if before.inference == YES and not before.counted and not m.mode & INFERRING:
        m.emit(InferenceTensorUsed(site, m.where(), "edited", _made(before), target, assumed=False))


def asked(m: Machine, state: Tensor, node: ast.AST, subject: ast.expr | None) -> bool:
    """`requires_grad_()` on an inference tensor; whether torch raises for it."""
    if state.inference != YES or m.mode & INFERRING:
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
