"""An optimizer's step comes too early: a later backward needs the parameters as they were, or fills the gradients."""

from collections.abc import Iterator

from gradvet.autograd.events import SavedChanged
from gradvet.autograd.events_protocol import StepTooEarly
from gradvet.finding import Finding, Note, Severity, called_from, code, weakened
from gradvet.rules import rule


@rule(SavedChanged, StepTooEarly, family="backward", severity=Severity.ERROR)
def check(event: SavedChanged | StepTooEarly) -> Iterator[Finding]:
    """Report the step, with the backward that it comes before and the forward that saved the parameters."""
    if isinstance(event, StepTooEarly):
        yield _uses_nothing(event)
        return
    if event.how != "step()" or event.backward is None:
        return
    backward, saver = code(event.backward), code(event.saver)
    assumed = [Note("assuming", words) for words in sorted(event.root.assumes)]
    yield Finding(
        event.node,
        f"{code(event.node)} changes parameters that {backward} still needs as they were in {saver}; "
        "step after that backward, or run the forward again",
        (
            Note("forward", saver, event.saver),
            Note("backward", backward, event.backward),
            *assumed,
            *called_from(event.calls),
        ),
        (),
        weakened(Severity.ERROR, event.root),
    )


def _uses_nothing(event: StepTooEarly) -> Finding:
    assumed = () if event.known else (Note("assuming", "what makes the step is an optimizer of torch"),)
    message = f"{code(event.node)} has no gradients to use: {code(event.backward)} comes only after it"
    return Finding(
        event.node,
        f"{message}, and {code(event.clear)} drops them before the next step" if event.dropped else message,
        (
            Note("cleared", "here the gradients of the time before are dropped", event.clear),
            Note("backward", "this computes what the step should use", event.backward),
            *assumed,
            *called_from(event.calls),
        ),
        (),
        Severity.ERROR if event.known else Severity.WARNING,
    )
