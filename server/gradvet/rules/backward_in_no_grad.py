"""Forward and backward stand in one block that turns grad mode off."""

from collections.abc import Iterator

from gradvet.autograd.events_mode import BackwardUnrecorded
from gradvet.finding import Finding, Note, Severity, called_from, code
from gradvet.rules import rule


@rule(BackwardUnrecorded, family="backward", severity=Severity.ERROR)
def check(event: BackwardUnrecorded) -> Iterator[Finding]:
    """Report a backward whose own block kept its forward from being recorded."""
    name = code(event.root) if event.root is not None else "its root"
    yield Finding(
        event.node,
        f"{name} was computed under the {code(event.mode)} that covers this backward: there is no graph, and torch raises",
        (
            Note("mode", code(event.mode), event.mode),
            Note("note", "take the forward out of it, or turn grad on with `torch.enable_grad()`"),
            *called_from(event.calls),
        ),
    )
