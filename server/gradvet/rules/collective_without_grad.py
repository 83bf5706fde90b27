"""What a collective gathered stands in a loss."""

from collections.abc import Iterator

from gradvet.autograd.events import CutPath
from gradvet.autograd.events_call import WrapperBypassed
from gradvet.finding import Finding, Note, Severity, called_from, code, cut_off, without_gradient
from gradvet.rules import rule


@rule(CutPath, WrapperBypassed, family="cut", severity=Severity.WARNING)
def check(event: CutPath | WrapperBypassed) -> Iterator[Finding]:
    """Report an `all_gather` whose copies are constants in a loss, and a call that goes past the wrapper."""
    if isinstance(event, WrapperBypassed):
        notes = [Note("wrapped", code(event.wrapped), event.wrapped)]
        if event.backward is not None:
            notes.append(Note("backward", code(event.backward), event.backward))
        yield Finding(
            event.node,
            f"{code(event.node)} goes past `DistributedDataParallel`: the backward exchanges no gradients, "
            "and each process trains a model of its own",
            (*notes, *called_from(event.calls)),
        )
        return
    if event.kind != "collective":
        return
    yield cut_off(
        event,
        f"{code(event.node)} gathers values without their graph, even the own: {without_gradient(event)} through them",
    )
