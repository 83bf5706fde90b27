"""A custom Function is called past `apply`."""

import ast
from collections.abc import Iterator, Sequence

from gradvet.autograd.events_function import NotApplied
from gradvet.finding import Applicability, Finding, Fix, Severity, code
from gradvet.rules import rule
from gradvet.syntax.parse import Module
from gradvet.text import Edit, Span


@rule(NotApplied, family="function", severity=Severity.WARNING)
def check(event: NotApplied) -> Iterator[Finding]:
    """Report a direct call of `forward`, and a call of an instance."""
    if event.by_instance:
        message = f"an instance of `{event.owner}` cannot be called, and torch raises: call `{event.owner}.apply(...)`"
    else:
        message = f"{code(event.node)} only runs the forward: its `backward` is never used; call `{event.owner}.apply(...)`"
    yield Finding(
        event.node,
        message,
        (),
        (
            Fix(
                f"Call `{event.owner}.apply`",
                "the gradient is that of the Function's own `backward`",
                Applicability.UNSAFE,
                lambda module: _applied(module, event),
            ),
        ),
        Severity.ERROR if event.by_instance else None,
    )


def _applied(module: Module, event: NotApplied) -> Sequence[Edit]:
    node, source = event.node, module.source
    match node:
        case ast.Call(func=ast.Call() as made):
            return [Edit(source.span(made), f"{event.owner}.apply")]
        case ast.Call(func=ast.Attribute() as func, args=[first, *rest]):
            end = source.span(func).end
            begin = source.span(rest[0]).start if rest else source.span(first).end
            return [
                Edit(Span(end - len("forward"), end), "apply"),
                Edit(Span(source.span(first).start, begin), ""),
            ]
    return []
