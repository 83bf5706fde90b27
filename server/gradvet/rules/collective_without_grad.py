"""What a collective gathered stands in a loss."""

from collections.abc import Iterator

from gradvet.autograd.events import CutPath
from gradvet.finding import Finding, Severity, code, gravity, of_the_loss, without_gradient
from gradvet.rules import rule


@rule(CutPath, family="cut", severity=Severity.WARNING)
def check(event: CutPath) -> Iterator[Finding]:
    """Report an `all_gather` whose copies are constants in a loss."""
    if event.kind != "collective":
        return
    yield Finding(
        event.node,
        f"{code(event.node)} gathers values without their graph, even the own: {without_gradient(event)} through them",
        of_the_loss(event),
        (),
        gravity(event),
    )
