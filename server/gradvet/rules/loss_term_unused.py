"""A term is computed for a loss, with its graph, and never becomes part of one."""

from collections.abc import Iterator

from gradvet.autograd.events import TermUnused
from gradvet.finding import Finding, Note, Severity, called_from, code
from gradvet.rules import rule


@rule(TermUnused, family="cut", severity=Severity.WARNING)
def check(event: TermUnused) -> Iterator[Finding]:
    """Report the name that nothing reads."""
    yield Finding(
        event.node,
        f"`{event.name}` is a term with its graph that nothing reads: {code(event.backward)} does not know of it; "
        "add it to the loss, or do not compute it",
        (Note("backward", code(event.backward), event.backward), *called_from(event.calls)),
    )
