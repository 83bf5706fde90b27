"""Ways out of torch: to numbers, copies, other processes, and to what torch has left behind."""

import ast
from dataclasses import dataclass

from gradvet.autograd.events import Event
from gradvet.autograd.memory.domain import Tensor


@dataclass(frozen=True, slots=True)
class ScalarConverted(Event):
    """A tensor that requires grad is handed to `float`, `complex` or a function of `math`, by its expression `source`."""

    tensor: Tensor
    how: str
    source: ast.expr


@dataclass(frozen=True, slots=True)
class BatchRead(Event):
    """Inside `vmap` Python asks a tensor that stands for a batch for its value; `how` is number, slice or choice."""

    tensor: Tensor
    how: str


@dataclass(frozen=True, slots=True)
class GradTensorSerialised(Event):
    """A computed tensor that requires grad is copied deeply, or crosses to another process.

    `how` is deepcopy, queue or workers; `path` is the attribute under which it is held, `made` what made it;
    `direct` says that it is itself what is handed over.
    """

    tensor: Tensor
    how: str
    path: str
    source: ast.expr | None
    made: ast.AST | None
    direct: bool


@dataclass(frozen=True, slots=True)
class LegacyVariable(Event):
    """`Variable(x)`, with what it wraps; `volatile` says that the flag is given, `cuts` that a graph is dropped."""

    source: ast.expr | None
    volatile: bool
    cuts: bool
    plain: bool


@dataclass(frozen=True, slots=True)
class DetachLate(Event):
    """`.cpu().detach()`, `.clone().detach()`: the graph is built for the step before and dropped; `step` is that call."""

    step: ast.Call


@dataclass(frozen=True, slots=True)
class HalfToNumpy(Event):
    """A tensor of bfloat16 is handed to numpy, which has no such type; `made` is where it became so."""

    tensor: Tensor
    made: ast.AST
    source: ast.expr | None
