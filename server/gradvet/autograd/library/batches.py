"""Inside `vmap` a tensor stands for a whole batch of them: no number can be made of it, and no choice (measured)."""

import ast

from gradvet.autograd.events_exit import BatchRead
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import Tensor
from gradvet.autograd.memory.values import Value

ROW = "row"
"""The kind of cut that tells what is computed of one element of a batch: cuts come along whatever is done."""


def rows(m: Machine, state: Tensor) -> frozenset[int]:
    """The batches of which a tensor is, or was computed from, one element."""
    return frozenset(cut for cut in state.cuts if m.cuts[cut].kind == ROW)


def read(m: Machine, node: ast.AST, state: Tensor, how: str) -> None:
    """Python asks a tensor for its value: as a number, or as what a choice depends on."""
    if m.batched and rows(m, state):
        m.emit(BatchRead(node, m.where(), state, how))


def decides(m: Machine, test: ast.expr, value: Value) -> None:
    """A value is what an `if`, a `while` or an `assert` depends on."""
    state = m.tensor(value) if m.batched else None
    if state is not None:
        read(m, test, state, "choice")
