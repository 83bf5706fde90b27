"""A detached tensor is changed in place, and the tensor it came from changes with it."""

import ast
from collections.abc import Iterator, Sequence

from gradvet.autograd.events import AliasEdited
from gradvet.finding import Applicability, Finding, Fix, Note, Severity, called_from, code, operations
from gradvet.rules import rule
from gradvet.syntax import edits
from gradvet.syntax.parse import Module
from gradvet.text import Edit


@rule(AliasEdited, family="alias", severity=Severity.WARNING)
def check(event: AliasEdited) -> Iterator[Finding]:
    """Report an edit through `.detach()` that the source will show."""
    alias = event.alias
    source = (
        alias.func.value if isinstance(alias, ast.Call) and isinstance(alias.func, ast.Attribute) else None
    )
    name = code(source) if source is not None else "its source"
    target = code(event.target) if event.target is not None else "the detached tensor"
    message = f"{target} shares storage with {name}: this edit changes {name} too"
    notes = [Note("alias", f"{code(alias)} copies nothing", alias)]
    if event.saved:
        needs = event.saved[0]
        message += f", which {operations(event.saved)} saved for backward; the backward will raise"
        notes.append(Note("saved", f"by {code(needs)}", needs))
    yield Finding(
        event.node,
        message,
        (*notes, *called_from(event.calls)),
        (
            Fix(
                "Copy before the edit",
                "the edit stays with the copy" if event.saved else f"{name} keeps its values",
                Applicability.SAFE if event.saved else Applicability.UNSAFE,
                lambda module: _clone(module, alias),
            ),
        )
        if isinstance(alias, ast.Call)
        else (),
        Severity.ERROR if event.saved else None,
    )


def _clone(module: Module, alias: ast.AST) -> Sequence[Edit]:
    return edits.after(module, alias, ".clone()") if isinstance(alias, ast.expr) else []
