"""`backward()` is called on a tensor of more than one element."""

from collections.abc import Iterator
from functools import partial

from gradvet.autograd.events_flag import NonScalarBackward
from gradvet.finding import Applicability, Finding, Fix, Note, Severity, called_from, code
from gradvet.rules import rule
from gradvet.syntax import edits


@rule(NonScalarBackward, family="backward", severity=Severity.WARNING)
def check(event: NonScalarBackward) -> Iterator[Finding]:
    """Report a root that was not reduced to one element."""
    source = event.source
    name = code(source) if source is not None else "the tensor"
    message = (
        f"{name} has more than one element, and `backward()` without a gradient raises"
        if event.surely
        else f"{name} has an element for each sample: `backward()` raises for more than one"
    )
    notes = [Note("made", code(event.made), event.made)] if event.made is not None else []
    fixes: tuple[Fix, ...] = ()
    if source is not None:
        fixes = tuple(
            Fix(
                f"Take the {word}",
                f"the loss is the {word} over all elements",
                Applicability.UNSAFE,
                partial(edits.after, node=source, trailer=trailer),
            )
            for word, trailer in (("mean", ".mean()"), ("sum", ".sum()"))
        )
    severity = Severity.ERROR if event.surely and not event.assumed else None
    yield Finding(event.node, message, (*notes, *called_from(event.calls)), fixes, severity)
