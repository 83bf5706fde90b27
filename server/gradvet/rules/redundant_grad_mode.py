"""Grad mode is turned off where it is off already."""

from collections.abc import Iterator

from gradvet.autograd.events_mode import ModeRedundant
from gradvet.finding import Finding, Note, Severity, Tag, called_from, code
from gradvet.rules import rule


@rule(ModeRedundant, family="mode", severity=Severity.INFO, tag=Tag.UNNECESSARY)
def check(event: ModeRedundant) -> Iterator[Finding]:
    """Report a `with torch.no_grad()` that changes nothing."""
    yield Finding(
        event.node,
        f"{code(event.node)} changes nothing here: {code(event.outer)} has turned grad mode off already",
        (Note("outer", code(event.outer), event.outer), *called_from(event.calls)),
    )
