"""A gradient is part of a loss and was computed without a graph of its own."""

import ast
from collections.abc import Iterator

from gradvet.autograd.events import CutPath
from gradvet.finding import (
    Applicability,
    Finding,
    Fix,
    Severity,
    code,
    cut_off,
    without_gradient,
)
from gradvet.rules import rule
from gradvet.syntax import edits

_POSITION = 4
"""Where `create_graph` stands among the arguments of `torch.autograd.grad`."""


@rule(CutPath, family="cut", severity=Severity.WARNING)
def check(event: CutPath) -> Iterator[Finding]:
    """Report an `autograd.grad` whose result stands in a loss and is a plain number there."""
    if event.kind != "grad":
        return
    yield cut_off(
        event,
        f"{code(event.node)} without `create_graph=True` gives gradients that have no graph: {without_gradient(event)}",
        _fixes(event),
    )


def _fixes(event: CutPath) -> Iterator[Fix]:
    call = event.node
    if not isinstance(call, ast.Call) or len(call.args) > _POSITION:
        return
    given = next((keyword for keyword in call.keywords if keyword.arg == "create_graph"), None)
    if given is None and not any(keyword.arg is None for keyword in call.keywords):
        yield Fix(
            "Add create_graph=True",
            "the gradient has a graph of its own: backward goes through it as well, and needs more memory",
            Applicability.UNSAFE,
            lambda module: edits.add_call_keyword(module, call, "create_graph=True"),
        )
