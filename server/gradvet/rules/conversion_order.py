"""A tensor is moved, cast or copied with its graph, and detached afterwards."""

import ast
from collections.abc import Iterator, Sequence

from gradvet.autograd.events_exit import DetachLate
from gradvet.finding import Applicability, Finding, Fix, Severity, called_from
from gradvet.rules import rule
from gradvet.syntax import edits
from gradvet.syntax.parse import Module
from gradvet.text import Edit


@rule(DetachLate, family="exit", severity=Severity.INFO)
def check(event: DetachLate) -> Iterator[Finding]:
    """Report `.clone().detach()` and its kin."""
    name = event.step.func.attr if isinstance(event.step.func, ast.Attribute) else "it"
    yield Finding(
        event.node,
        f"`.{name}()` is recorded and its graph dropped at once: `.detach()` first is less work and gives the same",
        called_from(event.calls),
        (
            Fix(
                f"Detach before `.{name}()`",
                "the same value, with less work",
                Applicability.SAFE,
                lambda module: _swapped(module, event),
            ),
        ),
    )


def _swapped(module: Module, event: DetachLate) -> Sequence[Edit]:
    call, step = event.node, event.step
    if not isinstance(call, ast.Call) or not isinstance(step.func, ast.Attribute):
        return []
    return [*edits.after(module, step.func.value, ".detach()"), *edits.drop_call(module, call)]
