"""The only way for a gradient to parameters that are to be trained is cut."""

from collections.abc import Iterator

from gradvet.autograd.events import CutPath
from gradvet.finding import Finding, Note, Severity, called_from, code
from gradvet.rules import rule

_HOW = {
    "detach": "`.detach()`",
    "no_grad": "`torch.no_grad()`",
    "data": "`.data`",
    "rewrap": "the new tensor",
    "nondiff": "an op without gradient",
    "item": "the Python number",
    "numpy": "the way through numpy",
}


@rule(CutPath, family="cut", severity=Severity.WARNING)
def check(event: CutPath) -> Iterator[Finding]:
    """Report the cut that leaves parameters of an optimizer, or a term of the loss, without gradient."""
    how = _HOW.get(event.kind, "this")
    if event.term:
        after = f" {_preposition(event)} {code(event.subject)}" if event.subject is not None else ""
        message = (
            f"{how}{after} makes {event.result or 'this term'} a constant in the loss: it adds no gradient"
        )
        notes: tuple[Note, ...] = (Note("loss", f"the term has no effect in {code(event.loss)}", event.loss),)
    else:
        lost = ", ".join(f"{name}" for name in event.leaves[:4]) + (", ..." if len(event.leaves) > 4 else "")  # noqa: PLR2004
        subject = f" {_preposition(event)} {code(event.subject)}" if event.subject is not None else ""
        message = f"{how}{subject} cuts the only way for a gradient to {lost}"
        notes = (Note("loss", f"{code(event.loss)} cannot reach them", event.loss),)
    if event.owner is not None:
        notes = (*notes, Note("owned", f"by the optimizer {code(event.owner)}", event.owner))
    yield Finding(
        event.node,
        message,
        (*notes, *called_from(event.calls)),
        (),
        Severity.ERROR if event.all_cut else None,
    )


def _preposition(event: CutPath) -> str:
    return "around" if event.kind == "no_grad" else "after"
