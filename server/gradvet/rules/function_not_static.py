"""A method of a custom Function is not static."""

import ast
from collections.abc import Iterator

from gradvet.autograd.events_function import NotStatic
from gradvet.finding import Applicability, Finding, Fix, Severity
from gradvet.rules import rule
from gradvet.syntax import rewrite


@rule(NotStatic, family="function", severity=Severity.INFO)
def check(event: NotStatic) -> Iterator[Finding]:
    """Report `forward` and its kin without `@staticmethod`."""
    method: ast.FunctionDef = event.method
    yield Finding(
        method,
        f"torch calls `{method.name}` of `{event.owner}` without an instance: it should be a static method",
        (),
        (
            Fix(
                "Make it static",
                "`apply` calls it as before",
                Applicability.SAFE,
                lambda module: rewrite.add_decorator(module, method, "@staticmethod"),
            ),
        ),
    )
