"""How a custom autograd Function is written and called."""

import ast

from gradvet.autograd.events import Event


class NotStatic(Event):
    """A method of a Function that torch calls without an instance is no static method."""

    method: ast.FunctionDef
    owner: str


class NotApplied(Event):
    """A Function is called past `apply`: its `forward` directly, or an instance of it."""

    owner: str
    by_instance: bool


class GradientCount(Event):
    """`backward` returns `given` gradients for the `wanted` inputs of `forward`; `value` is what it returns, if anything."""

    owner: str
    given: int
    wanted: int
    forward: ast.AST
    value: ast.expr | None


class SavedWrong(Event):
    """`save_for_backward` gets what it cannot save (list, number), or is called again (twice), or loses a graph (detached).

    `what` is the argument, or the first of two calls.
    """

    how: str
    what: ast.AST
