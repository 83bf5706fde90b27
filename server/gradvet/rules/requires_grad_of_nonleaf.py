"""The flag of a computed tensor is set."""

import ast
from collections.abc import Iterator, Sequence

from gradvet.autograd.events_flag import NonLeafFlag
from gradvet.finding import Applicability, Finding, Fix, Severity, called_from, code, weakened, why
from gradvet.rules import rule
from gradvet.syntax.parse import Module
from gradvet.text import Edit


@rule(NonLeafFlag, family="requires-grad", severity=Severity.ERROR)
def check(event: NonLeafFlag) -> Iterator[Finding]:
    """Report `y.requires_grad = flag` where `y` was computed."""
    subject = event.subject
    name = code(subject) if subject is not None else "this tensor"
    does = "`.detach()` gives it without its graph" if event.off else "it requires grad as it is"
    fixes: tuple[Fix, ...] = ()
    if event.off and isinstance(subject, ast.Name):
        fixes = (
            Fix(
                "Detach it",
                "as it is, the line raises",
                Applicability.SAFE,
                lambda module: _detached(module, event.node, subject.id),
            ),
        )
    yield Finding(
        event.node,
        f"{name} was computed: the flag can be changed only of a leaf, and torch raises; {does}",
        (*why("why", event.tensor), *called_from(event.calls)),
        fixes,
        weakened(Severity.ERROR, event.tensor),
    )


def _detached(module: Module, node: ast.AST, name: str) -> Sequence[Edit]:
    statement = module.statement(node)
    alone = isinstance(statement, ast.Assign) and len(statement.targets) == 1
    if alone or (isinstance(statement, ast.Expr) and statement.value is node):
        return [Edit(module.source.span(statement), f"{name} = {name}.detach()")]
    return []
