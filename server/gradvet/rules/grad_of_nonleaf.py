"""The gradient of a computed tensor is read, and torch does not keep it."""

from collections.abc import Iterator

from gradvet.autograd.events_flag import LateFlag, NonLeafGradient
from gradvet.finding import Finding, Note, Severity, called_from, code, why
from gradvet.rules import rule


@rule(NonLeafGradient, LateFlag, family="requires-grad", severity=Severity.WARNING)
def check(event: NonLeafGradient | LateFlag) -> Iterator[Finding]:
    """Report `.grad` of what is no leaf, or was none yet when the loss was computed."""
    if isinstance(event, LateFlag):
        yield Finding(
            event.node,
            f"{code(event.subject)} did not require grad yet when the loss was computed: "
            "backward does not reach it, and `.grad` is None",
            (
                Note("why", f"{code(event.flag)} comes too late", event.flag),
                Note("backward", "this backward does not reach it", event.backward),
                *called_from(event.calls),
            ),
        )
        return
    name = code(event.subject) if event.subject is not None else "this tensor"
    yield Finding(
        event.node,
        f"{name} was computed: backward passes its gradient on and does not keep it, so `.grad` is None",
        (
            Note("note", f"call `{name[1:-1]}.retain_grad()` before the backward"),
            *why("why", event.tensor),
            *called_from(event.calls),
        ),
    )
