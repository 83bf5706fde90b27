"""Python makes a number of a tensor that requires grad."""

import ast
from collections.abc import Iterator

from gradvet.autograd.events_exit import ScalarConverted
from gradvet.finding import Applicability, Finding, Fix, Severity, called_from, code
from gradvet.rules import rule
from gradvet.syntax import edits


@rule(ScalarConverted, family="exit", severity=Severity.INFO)
def check(event: ScalarConverted) -> Iterator[Finding]:
    """Report `float(loss)` and `math.exp(loss)`."""
    source: ast.expr = event.source
    yield Finding(
        event.node,
        f"{code(event.node)} makes a number of a tensor that requires grad, and torch warns; "
        "`.item()` says that it is meant",
        called_from(event.calls),
        (
            Fix(
                "Take the number with `.item()`",
                "the same number, without the warning",
                Applicability.SAFE,
                lambda module: edits.after(module, source, ".item()"),
            ),
        ),
    )
