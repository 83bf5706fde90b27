"""An op has no finite derivative where its result is left out by a mask, or where it surely is zero."""

from collections.abc import Iterator

from gradvet.autograd.events_flow import NanBehindMask, RootOfZero
from gradvet.finding import Finding, Note, Severity, called_from, code
from gradvet.rules import rule


@rule(NanBehindMask, RootOfZero, family="flow", severity=Severity.WARNING)
def check(event: NanBehindMask | RootOfZero) -> Iterator[Finding]:
    """Report an op whose result is masked while its operand is not, and the distance of a thing to itself."""
    if isinstance(event, NanBehindMask):
        message = (
            f"{code(event.node)} has no finite derivative where {code(event.mask)} leaves it out: "
            "its gradient there is 0 * inf, which is NaN"
        )
        why = Note("masked", f"by {code(event.masked)}", event.masked)
    else:
        message = (
            f"{code(event.node)} is of each thing and itself as well, where it is the root of zero: "
            "its gradient there is 0 * inf, which is NaN"
        )
        why = Note("pairs", "all pairs are made here", event.difference)
    notes = [why]
    if event.backward is not None:
        notes.append(Note("backward", code(event.backward), event.backward))
    yield Finding(event.node, message, (*notes, *called_from(event.calls)))
