"""A module works in place on its input, and the input is used again as if it had not been changed."""

from collections.abc import Iterator

from gradvet.autograd.events import InputOverwritten
from gradvet.finding import Finding, Note, Severity, called_from, code
from gradvet.rules import rule


@rule(InputOverwritten, family="alias", severity=Severity.WARNING)
def check(event: InputOverwritten) -> Iterator[Finding]:
    """Report the module that works in place, at the place where it is made."""
    given = code(event.given)
    yield Finding(
        event.maker,
        f"this module changes {given} in place, and {given} is read again after it: what is read has been overwritten; "
        "make the first module without `inplace=True`",
        (
            Note("changed", code(event.node), event.node),
            Note("read", f"{given} is read here", event.read),
            *called_from(event.calls),
        ),
    )
