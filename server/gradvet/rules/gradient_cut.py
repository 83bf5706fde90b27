"""The only way for a gradient to parameters that are to be trained is cut."""

from collections.abc import Iterator

from gradvet.autograd.events import CutPath
from gradvet.finding import Finding, Severity, code, cut_off, named
from gradvet.rules import rule

_HOW = {"detach": "`.detach()`", "no_grad": "`torch.no_grad()`", "data": "`.data`"}


@rule(CutPath, family="cut", severity=Severity.WARNING)
def check(event: CutPath) -> Iterator[Finding]:
    """Report the cut that leaves parameters of an optimizer, or a term of the loss, without gradient."""
    how = _HOW.get(event.kind)
    if how is None:
        return
    preposition = "around" if event.kind == "no_grad" else "after"
    subject = f" {preposition} {code(event.subject)}" if event.subject is not None else ""
    if event.term:
        term = event.result or "this term"
        message = f"{how}{subject} makes {term} a constant in the loss: it adds no gradient"
    else:
        message = f"{how}{subject} cuts the only way for a gradient to {named(event.leaves)}"
    yield cut_off(event, message)
