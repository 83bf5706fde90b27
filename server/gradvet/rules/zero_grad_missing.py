"""Gradients of earlier iterations are never cleared: every step uses their sum."""

from collections.abc import Iterator

from gradvet.autograd.events_protocol import GradientNotCleared
from gradvet.finding import Finding, Note, Severity, called_from, code, named
from gradvet.rules import rule


@rule(GradientNotCleared, family="backward", severity=Severity.ERROR)
def check(event: GradientNotCleared) -> Iterator[Finding]:
    """Report a backward, or a gradient that is read, in which all earlier iterations still are."""
    if event.manual:
        message = f"{code(event.node)} holds the sum of all iterations: nothing clears it after it was used"
        step = Note("used", f"{code(event.step)} uses it in each iteration", event.step)
    elif event.left is not None:
        message = (
            f"{code(event.node)} adds to what {code(event.left)} left in the gradients of "
            f"{named(event.leaves) or 'the same parameters'}: nothing clears it in between"
        )
        step = Note("step", "this step uses both", event.step)
    elif event.leaves:
        message = (
            f"{code(event.node)} adds to what every earlier iteration gave to {named(event.leaves)}: nothing clears it "
            f"after {code(event.step)} has used it"
        )
        step = Note("step", "the next iteration's step uses them again", event.step)
    else:
        message = (
            f"{code(event.node)} adds to the gradients of every earlier iteration: nothing clears them "
            f"after {code(event.step)} has used them"
        )
        step = Note("step", "the next iteration's step uses them again", event.step)
    assumed = []
    if not event.repeated:
        assumed.append(Note("assuming", "it is called again and again, and the caller does not clear them"))
    if not event.known:
        assumed.append(Note("assuming", "what makes the step is an optimizer of torch"))
    yield Finding(
        event.node,
        message,
        (step, *assumed, *called_from(event.calls)),
        (),
        Severity.WARNING if assumed or event.left is not None else Severity.ERROR,
    )
