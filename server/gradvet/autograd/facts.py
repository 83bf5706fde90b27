"""What a run found out: the state of every expression and the events in order. Read-only."""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gradvet.autograd.events import Event


@dataclass(frozen=True, slots=True)
class ExpressionState:
    """What an expression held, joined over every visit.

    `text` is one line in torch's words: `requires_grad=YES is_leaf=NO grad_fn=MulBackward0`.
    `reasons` tell the chain from the expression back to its causes, nearest first, each with the
    node it speaks of.
    """

    text: str
    reasons: tuple[tuple[str, ast.AST | None], ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """The outcome of a run."""

    events: Sequence[Event]
    states: Mapping[ast.AST, ExpressionState]
    limits: Sequence[str] = ()
