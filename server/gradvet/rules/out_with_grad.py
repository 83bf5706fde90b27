"""`out=` is given to an op that autograd is to record."""

from collections.abc import Iterator

from gradvet.autograd.events_alias import OutRecorded
from gradvet.finding import Finding, Severity, called_from, code, weakened, why
from gradvet.rules import rule


@rule(OutRecorded, family="alias", severity=Severity.ERROR)
def check(event: OutRecorded) -> Iterator[Finding]:
    """Report the call that torch refuses."""
    yield Finding(
        event.node,
        f"{code(event.node)} is recorded, and writes into `out=`: autograd does not support that, and torch raises",
        (*why("why", event.tensor), *called_from(event.calls)),
        (),
        weakened(Severity.ERROR, event.tensor),
    )
