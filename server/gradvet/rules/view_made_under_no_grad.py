"""A view that was made with grad mode off is used where autograd records."""

from collections.abc import Iterator

from gradvet.autograd.events_mode import UnrecordedView
from gradvet.finding import Finding, Note, Severity, called_from, code
from gradvet.rules import rule


@rule(UnrecordedView, family="mode", severity=Severity.WARNING)
def check(event: UnrecordedView) -> Iterator[Finding]:
    """Report a view that leads nowhere."""
    name = code(event.subject) if event.subject is not None else "a view"
    message = f"{name} says that it requires grad, but it was made with grad mode off: no gradient goes on from here"
    notes = [Note("made", code(event.made), event.made)] if event.made is not None else []
    yield Finding(
        event.node,
        message,
        (*notes, *called_from(event.calls)),
    )
