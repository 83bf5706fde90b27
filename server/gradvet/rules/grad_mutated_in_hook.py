"""A hook, or the backward of a custom Function, changes in place the gradient that it was given."""

import ast
from collections.abc import Iterator

from gradvet.autograd.events import GradientChanged
from gradvet.finding import Applicability, Finding, Fix, Severity, called_from, code
from gradvet.rules import rule
from gradvet.syntax.unplace import call_out_of_place


@rule(GradientChanged, family="alias", severity=Severity.WARNING)
def check(event: GradientChanged) -> Iterator[Finding]:
    """Report the change."""
    name = code(event.target) if event.target is not None else "the gradient"
    who = "this hook" if event.role == "hook" else "this backward"
    yield Finding(
        event.node,
        f"{who} changes {name} in place, which other branches of the graph may be given as well: "
        "their gradients change too; return a new tensor",
        called_from(event.calls),
        tuple(_fixes(event)),
    )


def _fixes(event: GradientChanged) -> Iterator[Fix]:
    node, name = event.node, event.target
    if event.returned and isinstance(node, ast.Call) and isinstance(name, ast.Name):
        yield Fix(
            "Compute out of place",
            "the hook gives the same values, and nobody else's gradient changes",
            Applicability.UNSAFE,
            lambda module: call_out_of_place(module, node, name),
        )
