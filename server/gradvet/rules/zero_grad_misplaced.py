"""Gradients are cleared after they were computed and before a step has used them."""

from collections.abc import Iterator

from gradvet.autograd.events_protocol import GradientDropped
from gradvet.finding import Finding, Note, Severity, called_from, code
from gradvet.rules import rule


@rule(GradientDropped, family="backward", severity=Severity.ERROR)
def check(event: GradientDropped) -> Iterator[Finding]:
    """Report a clear between a backward and the step that should use what it computed."""
    if event.loop is not None:
        message = (
            f"{code(event.node)} drops what the pass before has accumulated: only the last "
            f"{code(event.backward)} is left for {code(event.step)}"
        )
    else:
        message = f"{code(event.node)} clears what {code(event.backward)} has computed before {code(event.step)} can use it"
    notes = (
        Note("lost", f"{code(event.backward)} computed them", event.backward),
        Note("step", "this step should have used them", event.step),
    )
    assumed = () if event.known else (Note("assuming", "what makes the step is an optimizer of torch"),)
    severity = Severity.ERROR if event.known else Severity.WARNING
    yield Finding(event.node, message, (*notes, *assumed, *called_from(event.calls)), (), severity)
