"""What a program does to the flag `requires_grad`, and to the gradient of a tensor."""

import ast
from dataclasses import dataclass

from gradvet.autograd.events import Event
from gradvet.autograd.memory.domain import Tensor


@dataclass(frozen=True, slots=True)
class FlagMisspelt(Event):
    """`requires_grad` is meant, and something else is written.

    `use` is assigned, read, keyword, compared (`==` as a statement), annotated or method (`requires_grad_ = ...`);
    `name` is what is written, `subject` the expression of its holder, `on_module` whether that is a module.
    """

    use: str
    name: str
    subject: ast.expr | None
    on_module: bool


@dataclass(frozen=True, slots=True)
class ModuleFlag(Event):
    """`module.requires_grad = flag`: an attribute that nobody looks at.

    `subject` is the module's expression, `flag` what is assigned when that is known, `evidence` the place
    where it showed to be a module, if that was not known from its making.
    """

    subject: ast.expr | None
    flag: bool | None
    evidence: ast.AST | None


@dataclass(frozen=True, slots=True)
class NonScalarBackward(Event):
    """`backward()` without a gradient, from a tensor that has more than one element.

    `source` is the root's expression, `made` the call that gives an element for each sample and more, `surely`
    whether that is so for every size of the data.
    """

    source: ast.expr | None
    made: ast.AST | None
    surely: bool
    assumed: bool


@dataclass(frozen=True, slots=True)
class IntegerFlag(Event):
    """`requires_grad` is turned on for a tensor of integers or booleans; `subject` is its expression, if it has one."""

    tensor: Tensor
    subject: ast.expr | None


@dataclass(frozen=True, slots=True)
class NonLeafFlag(Event):
    """`requires_grad` of a computed tensor is set; `off` says that it is to be turned off."""

    tensor: Tensor
    subject: ast.expr | None
    off: bool


@dataclass(frozen=True, slots=True)
class NonLeafGradient(Event):
    """`.grad` of a computed tensor is read, and nobody has asked for it to be kept."""

    tensor: Tensor
    subject: ast.expr | None


@dataclass(frozen=True, slots=True)
class LateFlag(Event):
    """`.grad` of a leaf is read that began to require grad (`flag`) after what `backward` goes through was computed."""

    subject: ast.expr
    flag: ast.AST
    backward: ast.AST
