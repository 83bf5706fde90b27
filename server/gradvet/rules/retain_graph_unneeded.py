"""`retain_graph=True` keeps a graph that no other backward goes through."""

import ast
from collections.abc import Iterator

from gradvet.autograd.events import RetainUnneeded
from gradvet.finding import Applicability, Finding, Fix, Note, Severity, called_from
from gradvet.rules import rule
from gradvet.syntax import edits


@rule(RetainUnneeded, family="leak", severity=Severity.WARNING)
def check(event: RetainUnneeded) -> Iterator[Finding]:
    """Report the call that retains."""
    call = event.node
    if not isinstance(call, ast.Call):
        return
    notes = [Note("assuming", words) for words in sorted(event.root.assumes)]
    if event.alone:
        notes.append(Note("assuming", "no argument brings a graph with it that its owner runs a backward of"))
    yield Finding(
        call,
        "`retain_graph=True` keeps all that this graph has saved, and no other backward goes through it",
        (*notes, *called_from(event.calls)),
        (
            Fix(
                "Drop retain_graph=True",
                "the same gradients; the activations are freed as soon as they are used",
                Applicability.UNSAFE if event.alone else Applicability.SAFE,
                lambda module: edits.remove_call_keyword(module, call, "retain_graph"),
            ),
        ),
        Severity.INFO if event.alone else Severity.WARNING,
    )
