"""A gradient scaler is used out of order."""

from collections.abc import Iterator

from gradvet.autograd.events_protocol import ScalerMisused
from gradvet.finding import Applicability, Finding, Fix, Note, Severity, called_from, code
from gradvet.rules import rule
from gradvet.syntax import statements

_SAYS = {
    "bypassed": "{node} uses gradients that are still multiplied by the loss scale; let the scaler make the step",
    "update": "{node} is the second step without `update()` in between: that raises",
    "unscaled": "{node} unscales what is unscaled already since the last `update()`: that raises",
    "plain": "{node} is of a loss that was not scaled, and the scaler's step divides what it gives by the scale",
    "late": "{node} comes after a step, without `update()` in between: that raises",
}
_NOTES = {
    "bypassed": "gives gradients that are scaled",
    "update": "the step before",
    "unscaled": "unscaled here first",
    "plain": "divides by the scale",
    "late": "the step",
}


@rule(ScalerMisused, family="backward", severity=Severity.ERROR)
def check(event: ScalerMisused) -> Iterator[Finding]:
    """Report the call that is out of order; a warning where the scaler may be switched off."""
    notes = []
    if event.other is not None and event.other is not event.node:
        notes.append(Note("why", f"{_NOTES[event.how]}: {code(event.other)}", event.other))
    if not event.sure:
        notes.append(Note("assuming", "the scaler is enabled"))
    yield Finding(
        event.node,
        _SAYS[event.how].format(node=code(event.node)),
        (*notes, *called_from(event.calls)),
        tuple(_fixes(event)),
        Severity.ERROR if event.sure else Severity.WARNING,
    )


def _fixes(event: ScalerMisused) -> Iterator[Fix]:
    if event.how == "update" and event.scaler is not None:
        text = f"{code(event.scaler)[1:-1]}.update()"
        yield Fix(
            f"Call {text} after the step",
            "the scale grows and shrinks as it should, and the next step does not raise",
            Applicability.UNSAFE,
            lambda module: statements.insert(module, event.node, text, after=True),
        )
