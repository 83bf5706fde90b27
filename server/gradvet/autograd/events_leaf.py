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
class Unregistered(Event):
    """A module holds parameters that its `parameters()` does not list; `node` is where it was given them.

    `kind` is modules or parameters (in a plain container), tensor (a leaf that is no Parameter), converted (what
    a conversion made of a Parameter) or local (a module that a forward makes for itself); `container` is list,
    tuple or dict, `attribute` the attribute that holds them. `trained` is whether a backward reached them beside
    an optimizer of that very module; `certain` is False where it depends on what a conversion has to change.
    """

    kind: str
    container: str
    attribute: str
    owner: str
    value: ast.expr | None
    use: ast.AST | None
    trained: bool
    certain: bool


@dataclass(frozen=True, slots=True)
class TensorCopied(Event):
    """A constructor is given a tensor (`source`), and nothing that was seen needs the gradient of the copy.

    `how` is tensor, or new_tensor, a method of `like`; `in_loss` whether a backward was run of something made of the copy.
    """

    tensor: Tensor
    source: ast.expr
    how: str
    like: ast.expr | None
    in_loss: bool = False


@dataclass(frozen=True, slots=True)
class OptimizerMisses(Event):
    """Parameters that a backward reaches came to a module after this optimizer had taken its parameters.

    `leaves` are their names, `place` is where they are made; `late` is whether they were there, frozen.
    `idle` is whether no backward reaches anything that the optimizer has; `twin` is another that has the very same.
    `outside` is whether they are of a module of which no optimizer ever knew. `frozen` is whether they are its own, and
    frozen whenever it makes a step.
    """

    leaves: tuple[str, ...]
    place: ast.AST | None
    late: bool
    idle: bool = False
    twin: ast.AST | None = None
    outside: bool = False
    frozen: bool = False


@dataclass(frozen=True, slots=True)
class NonLeafOptimized(Event):
    """An optimizer is given a tensor that was computed; `certain` is False where that depends on a device.

    `source` is the expression of the tensor in the call.
    """

    tensor: Tensor
    source: ast.expr
    certain: bool
