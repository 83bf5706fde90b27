"""How a custom autograd Function is written and called."""

import ast
from dataclasses import dataclass

from gradvet.autograd.events import Event


@dataclass(frozen=True, slots=True)
class NotStatic(Event):
    """A method of a Function that torch calls without an instance is no static method."""

    method: ast.FunctionDef
    owner: str


@dataclass(frozen=True, slots=True)
class DifferentiatedTwice(Event):
    """A backward goes through the gradient that `derivative` gave, to which a `backward` for one time contributed."""

    owner: str
    derivative: ast.AST
    backward: ast.AST


@dataclass(frozen=True, slots=True)
class NotApplied(Event):
    """A Function is called past `apply`: its `forward` directly, or an instance of it."""

    owner: str
    by_instance: bool


@dataclass(frozen=True, slots=True)
class GradientCount(Event):
    """`backward` returns `given` gradients for the `wanted` inputs of `forward`; `value` is what it returns, if anything."""

    owner: str
    given: int
    wanted: int
    forward: ast.AST
    value: ast.expr | None


@dataclass(frozen=True, slots=True)
class SavedWrong(Event):
    """`save_for_backward` gets what it cannot save (list, number), or is called again (twice), or loses a graph (detached).

    `what` is the argument, or the first of two calls.
    """

    how: str
    what: ast.AST
