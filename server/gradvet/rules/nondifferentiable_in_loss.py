"""A loss is made by an op that has no gradient, or one of zero."""

from collections.abc import Iterator

from gradvet.autograd.events import CutPath, NoBackward
from gradvet.finding import (
    Finding,
    Note,
    Severity,
    called_from,
    code,
    cut_off,
    operation,
    without_gradient,
)
from gradvet.rules import rule


@rule(CutPath, NoBackward, family="cut", severity=Severity.WARNING)
def check(event: CutPath | NoBackward) -> Iterator[Finding]:
    """Report an op at which the gradient of a loss ends."""
    what = operation(event.node)
    if isinstance(event, NoBackward):
        yield Finding(
            event.node,
            f"{what} is recorded but has no backward: {code(event.loss)} raises when it comes here",
            (Note("loss", f"{code(event.loss)} leads here", event.loss), *called_from(event.calls)),
            (),
            Severity.ERROR,
        )
    elif event.kind in ("nondiff", "zero"):
        why = "has no gradient" if event.kind == "nondiff" else "has a gradient that is zero everywhere"
        lost = "what is made of it adds a constant to the loss" if event.term else without_gradient(event)
        yield cut_off(event, f"{what} {why}: {lost}")
