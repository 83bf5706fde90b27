"""A tensor of bfloat16 is handed to numpy."""

from collections.abc import Iterator

from gradvet.autograd.events_exit import HalfToNumpy
from gradvet.finding import Applicability, Finding, Fix, Note, Severity, called_from, code
from gradvet.rules import rule
from gradvet.syntax import edits


@rule(HalfToNumpy, family="exit", severity=Severity.ERROR)
def check(event: HalfToNumpy) -> Iterator[Finding]:
    """Report `.numpy()` of what numpy has no type for."""
    source = event.source
    fixes: tuple[Fix, ...] = ()
    if source is not None:
        fixes = (
            Fix(
                "Cast to float32 first",
                "as it is, the line raises",
                Applicability.SAFE,
                lambda module: edits.after(module, source, ".float()"),
            ),
        )
    name = code(source) if source is not None else "the tensor"
    yield Finding(
        event.node,
        f"{name} is bfloat16, a type that numpy does not have: torch raises",
        (Note("made", code(event.made), event.made), *called_from(event.calls)),
        fixes,
    )
