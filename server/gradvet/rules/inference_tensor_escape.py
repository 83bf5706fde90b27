"""A tensor that was made in inference mode is used where autograd records."""

from collections.abc import Iterator, Sequence

from gradvet.autograd.events_mode import InferenceTensorUsed
from gradvet.finding import Applicability, Finding, Fix, Note, Severity, called_from, code
from gradvet.rules import rule
from gradvet.syntax import edits
from gradvet.syntax.parse import Module
from gradvet.text import Edit

_HOW = {
    "saved": "is to be saved for backward, which torch refuses",
    "edited": "is changed in place outside of it, which torch refuses",
    "flag": "is to require grad outside of it, which torch refuses",
}


@rule(InferenceTensorUsed, family="mode", severity=Severity.ERROR)
def check(event: InferenceTensorUsed) -> Iterator[Finding]:
    """Report what inference mode has made and autograd cannot take."""
    subject = event.subject
    name = code(subject) if subject is not None else "a tensor"
    notes = [Note("made", f"{code(event.made)}", event.made)] if event.made is not None else []
    fixes: tuple[Fix, ...] = ()
    if event.how == "saved" and subject is not None:
        fixes = (
            Fix(
                "Use a copy",
                "as it is, the line raises",
                Applicability.SAFE,
                lambda module: _cloned(module, event),
            ),
        )
    yield Finding(
        event.node,
        f"{name} was made in inference mode and {_HOW[event.how]}",
        (*notes, Note("note", "`torch.no_grad()` makes ordinary tensors"), *called_from(event.calls)),
        fixes,
        Severity.WARNING if event.assumed else None,
    )


def _cloned(module: Module, event: InferenceTensorUsed) -> Sequence[Edit]:
    return edits.after(module, event.subject, ".clone()") if event.subject is not None else []
