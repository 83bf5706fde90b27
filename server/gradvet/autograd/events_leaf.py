"""What a program does with leaves: those that are lost, that a module does not know, that an optimizer does not have."""

import ast
from dataclasses import dataclass

from gradvet.autograd.events import Event
from gradvet.autograd.memory.domain import Tensor


@dataclass(frozen=True, slots=True)
class LeafRebound(Event):
    """A name that held a leaf is given to a tensor that was computed from it and its gradient, at this statement.

    `name` is the target, `recorded` whether autograd recorded the step, `used` the place where the lost leaf
    is missed; None where the name is that of a loop, which nobody looks at again.
    """

    name: ast.expr
    recorded: bool
    used: ast.AST | None


@dataclass(frozen=True, slots=True)
class NonLeafOptimized(Event):
    """An optimizer is given a tensor that was computed; `certain` is False where that depends on a device.

    `source` is the expression of the tensor in the call.
    """

    tensor: Tensor
    source: ast.expr
    certain: bool
