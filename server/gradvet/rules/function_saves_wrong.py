"""`save_for_backward` is given what it does not keep."""

from collections.abc import Iterator

from gradvet.autograd.events_function import SavedWrong
from gradvet.finding import Finding, Note, Severity, code
from gradvet.rules import rule

_SAYS = {
    "list": "{what} is no tensor: `save_for_backward` takes each tensor as an argument of its own, and raises",
    "number": "{what} is no tensor: `save_for_backward` raises; keep it as an attribute of `ctx`",
    "twice": "a second `save_for_backward` takes the place of the first: what that kept is lost",
    "detached": "{what} is saved without its graph: a gradient of this gradient leaves it out",
}


@rule(SavedWrong, family="function", severity=Severity.ERROR)
def check(event: SavedWrong) -> Iterator[Finding]:
    """Report what is saved and cannot be, or is lost."""
    notes = (Note("first", code(event.what), event.what),) if event.how == "twice" else ()
    yield Finding(
        event.node,
        _SAYS[event.how].format(what=code(event.what)),
        notes,
        (),
        Severity.WARNING if event.how == "detached" else None,
    )
