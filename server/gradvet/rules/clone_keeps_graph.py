"""A clone that is meant as a snapshot of a parameter passes gradients on to it."""

import ast
from collections.abc import Iterator

from gradvet.autograd.events import CloneOutdated
from gradvet.finding import Applicability, Finding, Fix, Note, Severity, called_from, code, weakened
from gradvet.rules import rule
from gradvet.syntax import edits


@rule(CloneOutdated, family="leak", severity=Severity.ERROR)
def check(event: CloneOutdated) -> Iterator[Finding]:
    """Report the clone, with the backward that goes through it."""
    backward = code(event.backward)
    notes = [Note("backward", backward, event.backward)]
    notes += [Note("assuming", words) for words in sorted(event.root.assumes)]
    yield Finding(
        event.node,
        f"{code(event.node)} is older than the last change of its source, and still leads there: "
        f"{backward} adds the snapshot's gradient to what was changed; `.detach().clone()` copies values alone",
        (*notes, *called_from(event.calls)),
        tuple(_fixes(event.node)),
        weakened(Severity.ERROR, event.root),
    )


def _fixes(node: ast.AST) -> Iterator[Fix]:
    match node:
        case ast.Call(func=ast.Attribute(value=source, attr="clone")):
            yield Fix(
                "Detach before the copy",
                "the snapshot has the same values and passes no gradient on",
                Applicability.UNSAFE,
                lambda module: edits.after(module, source, ".detach()"),
            )
