"""`Variable` and `volatile`, which torch has left behind."""

import ast
from collections.abc import Iterator, Sequence

from gradvet.autograd.events_exit import LegacyVariable
from gradvet.finding import Applicability, Finding, Fix, Severity, Tag, called_from, code
from gradvet.rules import rule
from gradvet.syntax import edits
from gradvet.syntax.parse import Module
from gradvet.text import Edit


@rule(LegacyVariable, family="mode", severity=Severity.INFO, tag=Tag.DEPRECATED)
def check(event: LegacyVariable) -> Iterator[Finding]:
    """Report a wrapper that does nothing, or cuts a graph in silence."""
    source = event.source
    if event.volatile:
        yield Finding(
            event.node,
            "`volatile` was removed and has no effect: what follows records as usual; use `with torch.no_grad():`",
            called_from(event.calls),
            (),
            Severity.WARNING,
        )
        return
    fixes: tuple[Fix, ...] = ()
    if source is not None and event.plain:
        fixes = (
            Fix(
                "Write `.detach()`" if event.cuts else "Drop `Variable`",
                "the same value and storage",
                Applicability.SAFE,
                lambda module: _without(module, event),
            ),
        )
    message = (
        f"{code(event.node)} drops the graph in silence: `.detach()` says so"
        if event.cuts
        else f"{code(event.node)} does nothing that a tensor does not do by itself"
    )
    yield Finding(event.node, message, called_from(event.calls), fixes)


def _without(module: Module, event: LegacyVariable) -> Sequence[Edit]:
    node, source = event.node, event.source
    if not isinstance(node, ast.expr) or source is None:
        return []
    if not event.cuts:
        return edits.unwrap(module, node, source)
    bare = isinstance(source, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
    text = module.text(source) if bare else f"({module.text(source)})"
    return edits.replace(module, node, f"{text}.detach()")
