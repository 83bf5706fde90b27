"""The only way for a gradient to parameters that are to be trained is cut."""

from collections.abc import Iterator

from gradvet.autograd.events import CutPath
from gradvet.autograd.events_flow import StateCut
from gradvet.finding import Finding, Note, Severity, called_from, code, cut_off, named
from gradvet.rules import rule

_HOW = {"detach": "`.detach()`", "no_grad": "`torch.no_grad()`", "data": "`.data`"}


@rule(CutPath, StateCut, family="cut", severity=Severity.WARNING)
def check(event: CutPath | StateCut) -> Iterator[Finding]:
    """Report the cut that leaves parameters of an optimizer, a term of the loss or a step before without gradient."""
    if isinstance(event, StateCut):
        yield Finding(
            event.node,
            f"{code(event.node)} in each step cuts the state that {code(event.cell)} gives to its next one: "
            "no gradient goes back through time",
            (
                Note("state", f"{code(event.cell)} takes it and gives the next", event.cell),
                *called_from(event.calls),
            ),
        )
        return
    how = _HOW.get(event.kind)
    if how is None:
        return
    preposition = "around" if event.kind == "no_grad" else "after"
    subject = f" {preposition} {code(event.subject)}" if event.subject is not None else ""
    if event.term:
        term = event.result or "this term"
        message = f"{how}{subject} makes {term} a constant in the loss: it adds no gradient"
    elif event.form == "other side":
        message = f"{how}{subject} takes {named(event.leaves)} out of this term: no step uses what its other side trains"
    else:
        message = f"{how}{subject} cuts the only way for a gradient to {named(event.leaves)}"
    yield cut_off(event, message)
