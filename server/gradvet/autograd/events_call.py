"""Calls that were not made, calls that were made for nothing, and calls that were never undone."""

import ast
from dataclasses import dataclass

from gradvet.autograd.events import Event


@dataclass(frozen=True, slots=True)
class NotCalled(Event):
    """A method stands where its call is meant: `loss.backward`.

    `how` is statement, rebound (`h = h.detach`), operand, shown (printed) or kept (in a container);
    `holder` is tensor, module, optimizer or unknown, `site` the place that uses the method as a value.
    """

    method: str
    holder: str
    how: str
    site: ast.AST | None
    subject: ast.expr | None


@dataclass(frozen=True, slots=True)
class ResultDropped(Event):
    """A method that only gives a new tensor was called, and nobody takes what it gives: `h.detach()`.

    `in_place` is the name of the method that would change the tensor itself, if there is one.
    """

    method: str
    subject: ast.expr
    in_place: str


@dataclass(frozen=True, slots=True)
class WrapperBypassed(Event):
    """A call of what `DistributedDataParallel` has `wrapped` goes past it, and `backward` runs from what it gives."""

    wrapped: ast.AST
    backward: ast.AST | None


@dataclass(frozen=True, slots=True)
class HookStacked(Event):
    """The hook of a forward keeps something for a backward to take out, and runs where a `mode` lets none come."""

    mode: ast.AST | None


@dataclass(frozen=True, slots=True)
class HookPiled(Event):
    """Each iteration of `loop` puts a hook on a module that was `made` before it, runs it, and leaves the hook there."""

    made: ast.AST
    loop: ast.AST | None
