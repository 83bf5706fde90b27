"""A tensor of integers or booleans is told to require grad."""

from collections.abc import Iterator

from gradvet.autograd.events_flag import IntegerFlag
from gradvet.finding import Finding, Severity, called_from, code, weakened, why
from gradvet.rules import rule


@rule(IntegerFlag, family="requires-grad", severity=Severity.ERROR)
def check(event: IntegerFlag) -> Iterator[Finding]:
    """Report the flag on what has no slope."""
    name = code(event.subject) if event.subject is not None else "this tensor"
    yield Finding(
        event.node,
        f"{name} holds integers or booleans: only floating point can require grad, and torch raises",
        (*why("why", event.tensor), *called_from(event.calls)),
        (),
        weakened(Severity.ERROR, event.tensor),
    )
