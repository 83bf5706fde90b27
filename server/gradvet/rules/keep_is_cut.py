"""A gradient is cut where the code says that it is wanted."""

from collections.abc import Iterator

from gradvet.autograd.events import KeepCut
from gradvet.finding import Finding, Note, Severity, called_from, code, why
from gradvet.rules import rule


@rule(KeepCut, family="intent", severity=Severity.WARNING)
def check(event: KeepCut) -> Iterator[Finding]:
    """Report a value marked `# grad: keep` that has no gradient, or whose gradient no backward reaches."""
    cuts = tuple(Note("cut", f"{code(node)} stops it", node) for node in event.cuts[:3])
    if event.later:
        message = f"`# grad: keep` says that the gradient of {code(event.node)} is wanted, but it is cut before any backward"
    else:
        message = f"`# grad: keep` says that a gradient is wanted here, but {code(event.node)} does not require grad"
    yield Finding(
        event.node,
        message,
        (*(cuts or why("why", event.tensor)), *called_from(event.calls)),
    )
