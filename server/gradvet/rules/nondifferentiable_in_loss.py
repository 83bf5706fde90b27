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

_WHY = {
    "nondiff": "has no gradient",
    "zero": "has a gradient that is zero everywhere",
    "cancelled": "adds what it takes away, and the gradients of the two cancel out",
}


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
    elif event.kind in _WHY:
        what, why = code(event.node) if event.kind == "cancelled" else what, _WHY[event.kind]
        lost = "what is made of it adds a constant to the loss" if event.term else without_gradient(event)
        if event.kind == "cancelled" and not event.term:
            lost += " through it"
        yield cut_off(event, f"{what} {why}: {lost}")
