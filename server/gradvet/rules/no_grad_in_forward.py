"""The forward of a module that is trained runs with grad mode off."""

import ast
from collections.abc import Iterator

from gradvet.autograd.events_mode import ForwardUnrecorded
from gradvet.finding import Finding, Note, Severity, called_from, code, named
from gradvet.rules import rule


@rule(ForwardUnrecorded, family="mode", severity=Severity.WARNING)
def check(event: ForwardUnrecorded) -> Iterator[Finding]:
    """Report the grad mode that keeps a trained module's forward out of the graph."""
    mode = code(event.node)
    decorates = event.node in getattr(event.function, "decorator_list", ())
    where = f"{mode} on the `forward` of" if decorates else f"{mode} inside the `forward` of"
    if event.leaves:
        effect = f"{named(event.leaves)} {'get' if len(event.leaves) > 1 else 'gets'} no gradient"
    else:
        effect = "its parameters get no gradient"
    if event.raises:
        effect += f", and {_how(event.loss)} raises"
    yield Finding(
        event.node,
        f"{where} `{event.owner_class}`: {effect}",
        (Note("loss", f"{code(event.loss)} cannot reach them", event.loss), *called_from(event.calls)),
        (),
        Severity.ERROR if event.raises else None,
    )


def _how(loss: ast.AST) -> str:
    return "`backward()`" if isinstance(loss, ast.Call) else "the backward"
