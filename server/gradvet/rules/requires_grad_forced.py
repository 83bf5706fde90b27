"""A value whose graph was cut is made a leaf, so that a backward runs that reaches nothing."""

from collections.abc import Iterator

from gradvet.autograd.events import CutPath
from gradvet.finding import Finding, Note, Severity, code, gravity, of_the_loss, without_gradient
from gradvet.rules import rule


@rule(CutPath, family="cut", severity=Severity.WARNING)
def check(event: CutPath) -> Iterator[Finding]:
    """Report a new leaf that stands in a loss for a value that was computed."""
    if event.kind != "forced":
        return
    lost = without_gradient(event)
    yield Finding(
        event.node,
        f"{code(event.node)} makes a leaf of a value that has lost its graph: backward runs, and {lost}",
        (
            *(Note("cut", f"the graph is lost here: {code(node)}", node) for node in event.causes[:2]),
            *of_the_loss(event),
        ),
        (),
        gravity(event),
    )
