"""A backward is differentiated that is marked as the last one."""

import ast
from collections.abc import Iterator

from gradvet.autograd.events_function import DifferentiatedTwice
from gradvet.finding import Applicability, Finding, Fix, Note, Severity, called_from, code
from gradvet.rules import rule
from gradvet.syntax import rewrite

_MARK = "once_differentiable"


@rule(DifferentiatedTwice, family="function", severity=Severity.ERROR)
def check(event: DifferentiatedTwice) -> Iterator[Finding]:
    """Report the backward that raises, with the gradient that it goes through."""
    yield Finding(
        event.node,
        f"{code(event.node)} will raise: it differentiates the backward of `{event.owner}` a second time, "
        f"which is marked `@{_MARK}`",
        (
            Note("gradient", f"{code(event.derivative)} goes through that backward", event.derivative),
            Note("marked", f"the backward of `{event.owner}`", event.backward),
            *called_from(event.calls),
        ),
        tuple(_fixes(event.backward)),
    )


def _fixes(backward: ast.AST) -> Iterator[Fix]:
    marks = getattr(backward, "decorator_list", ())
    mark = next((one for one in marks if ast.unparse(one).rpartition(".")[2] == _MARK), None)
    if mark is not None and isinstance(backward, ast.FunctionDef):
        yield Fix(
            f"Drop `@{_MARK}`",
            "the backward is recorded where a graph of the gradient is asked for: it must be made of differentiable ops",
            Applicability.UNSAFE,
            lambda module: rewrite.drop_decorator(module, backward, mark),
        )
