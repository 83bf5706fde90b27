"""A reentrant checkpoint is given nothing that requires grad, and cuts the parameters inside."""

import ast
from collections.abc import Iterator, Sequence

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
from gradvet.syntax.parse import Module
from gradvet.text import Edit


@rule(CutPath, family="cut", severity=Severity.WARNING)
def check(event: CutPath) -> Iterator[Finding]:
    """Report a checkpoint whose parameters get no gradient."""
    if event.kind != "checkpoint":
        return
    yield cut_off(
        event,
        f"nothing that {code(event.node)} is given requires grad, so its result does not either: {without_gradient(event)}",
        _fixes(event),
    )


def _fixes(event: CutPath) -> Iterator[Fix]:
    call = event.node
    if not isinstance(call, ast.Call) or any(keyword.arg is None for keyword in call.keywords):
        return
    given = next((keyword for keyword in call.keywords if keyword.arg == "use_reentrant"), None)
    if given is not None and not isinstance(given.value, ast.Constant):
        return

    def change(module: Module) -> Sequence[Edit]:
        if given is None:
            return edits.add_call_keyword(module, call, "use_reentrant=False")
        return edits.replace(module, given.value, "False")

    effect = "the block is recorded whatever its inputs are, and its parameters get gradients"
    yield Fix("Use use_reentrant=False", effect, Applicability.UNSAFE, change)
