"""Python makes a number of a tensor that requires grad, or that stands for a whole batch."""

import ast
from collections.abc import Iterator

from gradvet.autograd.events_exit import BatchRead, ScalarConverted
from gradvet.finding import Applicability, Finding, Fix, Note, Severity, called_from, code
from gradvet.rules import rule
from gradvet.syntax import edits

_ASKS = {
    "number": "{what} makes a number of a tensor that stands for a whole batch inside `vmap`, and torch refuses",
    "slice": "a bound of the slice {what} stands for a whole batch inside `vmap`: torch refuses to make a number of it",
    "choice": "what is done depends on {what}, which stands for a whole batch inside `vmap`: torch refuses to choose",
}
_INSTEAD = {
    "number": "compute with the tensor itself",
    "slice": "index with `start + torch.arange(length)`, or use `gather`",
    "choice": "compute both and take `torch.where(...)`",
}


@rule(ScalarConverted, BatchRead, family="exit", severity=Severity.INFO)
def check(event: ScalarConverted | BatchRead) -> Iterator[Finding]:
    """Report `float(loss)` and `math.exp(loss)`, and what asks for a value inside `vmap`."""
    if isinstance(event, BatchRead):
        message = _ASKS[event.how].format(what=code(event.node))
        notes = (Note("instead", _INSTEAD[event.how]), *called_from(event.calls))
        yield Finding(event.node, message, notes, (), Severity.ERROR)
        return
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
