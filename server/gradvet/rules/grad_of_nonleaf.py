"""The gradient of a computed tensor is read, and torch does not keep it."""

from collections.abc import Iterator

from gradvet.autograd.events_flag import NonLeafGradient
from gradvet.finding import Finding, Note, Severity, called_from, code, why
from gradvet.rules import rule


@rule(NonLeafGradient, family="requires-grad", severity=Severity.WARNING)
def check(event: NonLeafGradient) -> Iterator[Finding]:
    """Report `.grad` of what is no leaf."""
    name = code(event.subject) if event.subject is not None else "this tensor"
    yield Finding(
        event.node,
        f"{name} was computed: backward passes its gradient on and does not keep it, so `.grad` is None",
        (
            Note("note", f"call `{name[1:-1]}.retain_grad()` before the backward"),
            *why("why", event.tensor),
            *called_from(event.calls),
        ),
    )
