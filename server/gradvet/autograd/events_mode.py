"""Grad modes that are on or off where they should not be, and what was made in them."""

import ast
from dataclasses import dataclass

from gradvet.autograd.events import Event


@dataclass(frozen=True, slots=True)
class ForwardUnrecorded(Event):
    """The forward of a module that is trained runs with grad mode off.

    `node` is what turned it off, `function` the forward, `owner_class` its class; `leaves` are the parameters that
    get no gradient, `loss` is the backward that misses them, and `raises` whether it has nothing else to reach.
    """

    function: ast.AST
    owner_class: str
    leaves: tuple[str, ...]
    loss: ast.AST
    raises: bool


@dataclass(frozen=True, slots=True)
class ModeLeftOff(Event):
    """`set_grad_enabled(False)` in `function` outlives it; `other` says that it is undone on another way out.

    `loss` is a backward that fails for it, or that the program runs at all.
    """

    function: ast.AST
    other: bool
    loss: ast.AST
    raises: bool


@dataclass(frozen=True, slots=True)
class ModeEscaped(Event):
    """A grad mode reaches code that it is not meant for, or does not reach the code that it is meant for.

    `kind` is yield or await (others run under it), thread, lazy or lambda (the work runs without it), or twice
    (one object entered again); `mode` is what turned it off, `work` what is run, `trains` whether the program does.
    """

    kind: str
    mode: ast.AST
    work: ast.AST | None
    trains: bool = False


@dataclass(frozen=True, slots=True)
class InferenceTensorUsed(Event):
    """A tensor made in inference mode is saved for backward, edited, or told to require grad outside of it.

    `how` is saved, edited or flag; `made` is the expression that made it, `subject` the expression that is used.
    """

    how: str
    made: ast.AST | None
    subject: ast.expr | None
    assumed: bool


@dataclass(frozen=True, slots=True)
class UnrecordedView(Event):
    """A view that was made with grad mode off is used where autograd records: it requires grad, and leads nowhere."""

    made: ast.AST | None
    subject: ast.expr | None


@dataclass(frozen=True, slots=True)
class BackwardUnrecorded(Event):
    """Forward and backward stand in one block, or one function, that turns grad mode off."""

    mode: ast.AST
    root: ast.expr | None


@dataclass(frozen=True, slots=True)
class ModeRedundant(Event):
    """A grad mode is switched to what it is already, by a `with` inside `outer` in the same function."""

    outer: ast.AST
    alone: bool
