"""What a collective gathered stands in a loss."""

from collections.abc import Iterator

from gradvet.autograd.events import CutPath
from gradvet.finding import Finding, Severity, code, cut_off, without_gradient
from gradvet.rules import rule


@rule(CutPath, family="cut", severity=Severity.WARNING)
def check(event: CutPath) -> Iterator[Finding]:
    """Report an `all_gather` whose copies are constants in a loss."""
    if event.kind != "collective":
        return
    yield cut_off(
        event,
        f"{code(event.node)} gathers values without their graph, even the own: {without_gradient(event)} through them",
    )
