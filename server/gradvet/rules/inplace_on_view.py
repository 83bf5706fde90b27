"""A view is changed in place that torch does not let be changed."""

import ast
from collections.abc import Iterator

from gradvet.autograd.events import ViewChanged
from gradvet.autograd.memory.domain import EXPANDED, UNRECORDED
from gradvet.finding import Applicability, Finding, Fix, Note, Severity, called_from, code, weakened
from gradvet.rules import rule
from gradvet.syntax.unplace import call_out_of_place, out_of_place


@rule(ViewChanged, family="alias", severity=Severity.ERROR)
def check(event: ViewChanged) -> Iterator[Finding]:
    """Report the change by what makes it impossible."""
    view, origin = event.tensor, event.tensor.origin
    name = code(event.target) if event.target is not None else "this tensor"
    severity = weakened(Severity.ERROR, view)
    if event.how == "detach_()":
        message = (
            f"{name} is a view, and torch does not detach views in place; `.detach()` gives what is meant"
        )
    elif view.made_as == EXPANDED:
        message = (
            f"{name} is expanded: one element in memory stands for many, and torch refuses to write to it"
        )
        severity = Severity.WARNING
    elif view.made_as == UNRECORDED:
        message = f"{name} is a view that was taken without recording; torch refuses to change it where autograd records"
    else:
        message = (
            f"{name} is one of several views that one op gave; torch refuses to change any of them in place"
        )
    notes = [] if origin is None else [Note("view", code(origin.node), origin.node)]
    notes += [Note("assuming", words) for words in sorted(view.assumes)]
    if view.made_as == EXPANDED and event.how != "detach_()":
        notes.append(Note("assuming", "the tensor was smaller before"))
    yield Finding(
        event.node,
        message,
        (*notes, *called_from(event.calls)),
        tuple(_fixes(event)),
        severity,
    )


def _fixes(event: ViewChanged) -> Iterator[Fix]:
    node, target, origin = event.node, event.target, event.tensor.origin
    detaches = event.how == "detach_()"
    of_whole = event.tensor.made_as == UNRECORDED or (origin is not None and origin.text == "[...]")
    if of_whole and not detaches:
        return  # it is changed for the sake of what it is a part of
    safe = Applicability.SAFE if detaches else Applicability.UNSAFE
    effect = "the name holds a new tensor; the one that it was a view of does not change"
    if detaches:
        effect = "the name holds the same values without a graph"
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        yield Fix("Compute out of place", effect, safe, lambda module: out_of_place(module, node))
    elif isinstance(node, ast.Call) and isinstance(target, ast.Name) and event.how.endswith("_()"):
        yield Fix(
            "Compute out of place", effect, safe, lambda module: call_out_of_place(module, node, target)
        )
