"""Storage that two names share, and what that does to the one when the other changes."""

import ast
from dataclasses import dataclass

from gradvet.autograd.events import Event
from gradvet.autograd.memory.domain import Tensor


@dataclass(frozen=True, slots=True)
class SharedEdit(Event):
    """A numpy array and a tensor share memory; the one is changed in place, and the other is used afterwards.

    `edited` is array or tensor, `made` the call that made the one from the other, `target` what is written to;
    `read` is where the other is used, and `saved` are the nodes of a later backward that had saved it.
    """

    edited: str
    made: ast.AST
    target: ast.expr | None
    read: ast.AST | None
    saved: tuple[ast.AST, ...]


@dataclass(frozen=True, slots=True)
class OutRecorded(Event):
    """An op is given `out=` where grad mode is on, and this tensor, which takes part, requires grad."""

    tensor: Tensor


@dataclass(frozen=True, slots=True)
class SnapshotAliased(Event):
    """What was kept of a model's parameters is no copy: the optimizer changes it with the model.

    `kind` is state_dict; element (a parameter's value that was added to a container); compared (one that is held
    against the parameter that it was taken of); restored (one that is written back to it), gradient (one that was
    kept as it is and meets itself); or, with no snapshot, same (parameters held against themselves), written or
    averaged (into themselves), shared (loaded into themselves: the model is a shallow copy of the other, or has
    another name).
    `step` is where the parameters change, `read` where the snapshot is used, `loaded` whether it is loaded into
    its own model.
    """

    kind: str
    value: ast.AST
    step: ast.AST | None
    read: ast.AST | None
    loaded: bool
