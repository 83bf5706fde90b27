"""Parameters are frozen, and all of them are unfrozen before the freeze has any effect."""

from collections.abc import Iterator

from gradvet.autograd.events import FreezeUndone
from gradvet.finding import Finding, Note, Severity, called_from, code
from gradvet.rules import rule


@rule(FreezeUndone, family="requires-grad", severity=Severity.WARNING)
def check(event: FreezeUndone) -> Iterator[Finding]:
    """Report the place that makes them train again."""
    yield Finding(
        event.node,
        f"{code(event.node)} makes every parameter train again that {code(event.freeze)} has just frozen",
        (
            Note("frozen", code(event.freeze), event.freeze),
            Note("note", "unfreeze only what is to be trained, or set this flag first and freeze afterwards"),
            *called_from(event.calls),
        ),
    )
