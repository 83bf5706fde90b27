"""Gradients are clipped where there is nothing to clip, or before they have their true size."""

from collections.abc import Iterator, Sequence

from gradvet.autograd.events_protocol import ClipMisplaced
from gradvet.finding import Applicability, Finding, Fix, Note, Severity, called_from, code
from gradvet.rules import rule
from gradvet.syntax import statements
from gradvet.syntax.parse import Module
from gradvet.text import Edit


@rule(ClipMisplaced, family="backward", severity=Severity.ERROR)
def check(event: ClipMisplaced) -> Iterator[Finding]:
    """Report a clip that no step can feel, or that is felt far too much."""
    clip = code(event.node)
    other = code(event.other) if event.other is not None else ""
    if event.how == "early":
        message = f"{clip} has nothing to clip: no backward has filled these gradients yet"
        note = "fills them"
    elif event.how == "late":
        message = f"{clip} comes too late: {other} has used the gradients as they were"
        note = "uses them unclipped"
    elif event.how == "other":
        message = f"{clip} clips nothing new: {other} comes next and uses the gradients of other parameters, unclipped"
        note = "uses gradients that are not clipped"
    elif event.how == "scaled":
        message = f"{clip} clips gradients that are still multiplied by the loss scale: unscaled, next to nothing is left"
        note = "gives gradients that are scaled"
    else:
        message = f"{clip} clips nothing: the generator of parameters was used up before"
        note = "has walked through all of it"
    notes = (Note("why", note, event.other),) if event.other is not None else ()
    assumed = [Note("assuming", words) for words in sorted(event.assumes)]
    yield Finding(
        event.node,
        message,
        (*notes, *assumed, *called_from(event.calls)),
        tuple(_fixes(event)),
        Severity.WARNING if assumed else None,
    )


def _fixes(event: ClipMisplaced) -> Iterator[Fix]:
    scaler, optimizer = event.scaler, event.optimizer
    if scaler is not None and optimizer is not None:
        text = f"{code(scaler)[1:-1]}.unscale_({code(optimizer)[1:-1]})"
        yield Fix(
            f"Call {text} first",
            "gradients have their true size when they are clipped, and steps grow to what was meant",
            Applicability.UNSAFE,
            lambda module: statements.insert(module, event.node, text, after=False),
        )
    if event.how in ("early", "late") and event.other is not None:
        anchor = event.other

        def change(module: Module) -> Sequence[Edit]:
            return statements.move(module, event.node, anchor, after=event.how == "early")

        yield Fix(
            "Clip after the backward" if event.how == "early" else "Clip before the step",
            "steps are clipped from now on, which they were not",
            Applicability.UNSAFE,
            change,
        )
