"""An optimizer's step changes parameters that a later backward still needs."""

from collections.abc import Iterator

from gradvet.autograd.events import SavedChanged
from gradvet.finding import Finding, Note, Severity, called_from, code, weakened
from gradvet.rules import rule


@rule(SavedChanged, family="backward", severity=Severity.ERROR)
def check(event: SavedChanged) -> Iterator[Finding]:
    """Report the step, with the backward that it comes before and the forward that saved the parameters."""
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
