"""What a run found out: the state of every expression and the events in order. Read-only."""

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gradvet.autograd.events import Cut, Event
from gradvet.syntax.parse import Module


@dataclass(frozen=True, slots=True)
class ExpressionState:
    """What an expression held, joined over every visit.

    `text` is one line in torch's words: `requires_grad=YES is_leaf=NO grad_fn=MulBackward0`.
    `reasons` tell the chain from the expression back to its causes, nearest first, each with the
    node it speaks of. `requires_grad`, `is_leaf`, `is_view` and `is_inference` are yes, no or maybe.

    `storage` holds numbers: expressions that may share storage have one in common. `cuts` are the places
    where a gradient was stopped on the way here, `saved_by` the ops that saved this storage for a
    backward still to come when the run ended, `reaches` names of the leaves that a gradient from here
    would reach.
    """

    text: str
    reasons: tuple[tuple[str, ast.AST | None], ...]
    requires_grad: str = "maybe"
    is_leaf: str = "maybe"
    is_view: str = "maybe"
    is_inference: str = "maybe"
    storage: frozenset[int] = frozenset()
    cuts: tuple[Cut, ...] = ()
    saved_by: tuple[ast.AST, ...] = ()
    reaches: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AutogradState:
    """What torch would tell of a tensor: `yes`, `no` or `maybe`, and the names that its grad_fn may have.

    None is among the names where there may be no grad_fn, `*` stands for any name. `assumes` is what
    has to be true of the unknown parts of the program.
    """

    requires_grad: str
    is_leaf: str
    is_view: str
    is_inference: str
    grad_fn: tuple[str | None, ...]
    assumes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Expression:
    """Any expression that was run, joined over every visit.

    `kind` is one of the words in `kinds`, `unknown` too when the visits were of several kinds; `reason`
    then tells why. `grad_mode` are the modes it was run in. Tensors and arrays that may share storage
    have a number of `storage` in common; `*` is any number.
    """

    node: ast.expr
    kind: str
    grad_mode: tuple[str, ...]
    storage: tuple[int | str, ...] = ()
    state: AutogradState | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Way:
    """The way of a gradient from an expression: the leaves at its end, by name, and the ops between, these first.

    An op is the name of its grad_fn and where it was run. `whole` is False when there are more.
    """

    leaves: tuple[tuple[str, ast.AST | None], ...]
    ops: tuple[tuple[str, ast.AST], ...]
    whole: bool = True


def _no_way(_node: ast.AST) -> Way | None:
    return None


@dataclass(frozen=True, slots=True)
class Facts:
    """The outcome of a run; `expressions` are there only when it was watched.

    Events may have happened in modules that are only `imported`; states are those of the analysed one.
    `mixed` are expressions that held a tensor on one visit and a number on another. `way` finds the way of
    a gradient from an expression, None where that held no tensor.
    """

    events: Sequence[Event]
    states: Mapping[ast.AST, ExpressionState]
    limits: Sequence[str] = ()
    expressions: Sequence[Expression] = ()
    imported: Sequence[Module] = ()
    mixed: frozenset[ast.AST] = frozenset()
    way: Callable[[ast.AST], Way | None] = _no_way
