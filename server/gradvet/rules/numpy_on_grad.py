"""A tensor that requires grad is turned into a numpy array."""

import ast
from collections.abc import Iterator

from gradvet.autograd.events import ToNumpy
from gradvet.autograd.memory.domain import GRAD, YES
from gradvet.finding import Applicability, Finding, Fix, Severity, called_from, code, weakened, why
from gradvet.rules import rule
from gradvet.syntax import edits
from gradvet.syntax.parse import Module
from gradvet.text import Edit

_CASTS = {"cpu", "float", "double", "half", "to", "type", "numpy"}


@rule(ToNumpy, family="exit", severity=Severity.ERROR)
def check(event: ToNumpy) -> Iterator[Finding]:
    """Report a conversion that torch refuses."""
    if event.mode != GRAD or event.tensor.requires_grad != YES:
        return
    source = event.source
    name = code(source) if source is not None else "a tensor"
    how = event.how if " " in event.how else f"`{event.how}`"
    yield Finding(
        event.node,
        f"{name} requires grad, and {how} refuses a tensor that does",
        (*why("why", event.tensor), *called_from(event.calls)),
        (_detach(event),) if source is not None and event.fixable and not event.in_forward else (),
        weakened(Severity.ERROR, event.tensor),
    )


def _detach(event: ToNumpy) -> Fix:
    def change(module: Module) -> list[Edit]:
        source = event.source
        if source is None:
            return []
        if event.how == ".numpy()" and isinstance(event.node, ast.Call):
            return edits.insert_in_chain(module, event.node, ".detach()", _CASTS)
        return edits.after(module, source, ".detach()")

    return Fix(
        "Detach before leaving torch", "the same values; the line raised before", Applicability.SAFE, change
    )
