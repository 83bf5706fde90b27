"""`backward` of a custom Function does not return one gradient for each input."""

import ast
from collections.abc import Iterator, Sequence

from gradvet.autograd.events import CutPath
from gradvet.autograd.events_function import GradientCount
from gradvet.finding import Applicability, Finding, Fix, Note, Severity, cut_off, without_gradient
from gradvet.rules import rule
from gradvet.syntax.parse import Module
from gradvet.text import Edit


@rule(GradientCount, CutPath, family="function", severity=Severity.ERROR)
def check(event: GradientCount | CutPath) -> Iterator[Finding]:
    """Report the number of gradients that torch will not take, and None for an input that is to be trained."""
    if isinstance(event, CutPath):
        if event.kind == "unreturned":
            yield cut_off(event, f"`{event.name}` gives None here: {without_gradient(event)}")
        return
    returned = f"{event.given} gradient{'s' if event.given != 1 else ''}"
    if event.value is None:
        returned = "nothing"
    inputs = f"{event.wanted} input{'s' if event.wanted != 1 else ''}"
    fixes: tuple[Fix, ...] = ()
    if event.value is not None and event.given < event.wanted:
        fixes = (
            Fix(
                "Return None for the rest",
                "the last inputs get no gradient",
                Applicability.UNSAFE,
                lambda module: _padded(module, event),
            ),
        )
    yield Finding(
        event.node,
        f"`backward` of `{event.owner}` returns {returned} for {inputs} of `forward`: torch raises when it is used",
        (Note("forward", "takes the inputs", event.forward),),
        fixes,
    )


def _padded(module: Module, event: GradientCount) -> Sequence[Edit]:
    value = event.value
    if value is None:
        return []
    text, rest = module.text(value), ", None" * (event.wanted - event.given)
    closed = isinstance(value, ast.Tuple) and text.startswith("(") and text.endswith(")")
    new = f"{text[:-1].rstrip().rstrip(',')}{rest})" if closed else f"{text.rstrip().rstrip(',')}{rest}"
    return [Edit(module.source.span(value), new)]
