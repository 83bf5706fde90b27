"""A sample that has no gradient goes on the way to a loss."""

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


@rule(CutPath, family="cut", severity=Severity.WARNING)
def check(event: CutPath) -> Iterator[Finding]:
    """Report a `.sample()` where a gradient should come through."""
    if event.kind != "sample":
        return
    yield cut_off(
        event,
        f"{code(event.node)} has no gradient: {without_gradient(event)} through what is drawn",
        _fixes(event),
    )


def _fixes(event: CutPath) -> Iterator[Fix]:
    match event.node:
        case ast.Call(func=ast.Attribute(value=drawn, attr="sample") as func) if event.form == "rsample":
            yield Fix(
                "Use .rsample()",
                "the same distribution; a gradient flows through what is drawn",
                Applicability.UNSAFE,
                lambda module: edits.replace(module, func, f"{module.text(drawn)}.rsample"),
            )
