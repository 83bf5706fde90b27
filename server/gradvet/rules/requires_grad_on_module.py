"""The flag is set on a module, where nothing looks at it."""

import ast
from collections.abc import Iterator, Sequence

from gradvet.autograd.events_flag import ModuleFlag
from gradvet.finding import Applicability, Finding, Fix, Note, Severity, called_from, code
from gradvet.rules import rule
from gradvet.syntax.parse import Module
from gradvet.text import Edit, Span


@rule(ModuleFlag, family="requires-grad", severity=Severity.WARNING)
def check(event: ModuleFlag) -> Iterator[Finding]:
    """Report `module.requires_grad = flag`."""
    name = code(event.subject) if event.subject is not None else "this"
    stay = "its parameters still train" if event.flag is False else "its parameters stay as they are"
    notes = [Note("module", f"{code(event.evidence)}", event.evidence)] if event.evidence is not None else []
    yield Finding(
        event.node,
        f"{name} is a module: `requires_grad` on it is an attribute like any other, and {stay}",
        (*notes, *called_from(event.calls)),
        (
            Fix(
                "Call `requires_grad_()`",
                "every parameter of the module gets the flag: what trains changes",
                Applicability.UNSAFE,
                lambda module: _call(module, event.node),
            ),
        )
        if isinstance(event.node, ast.Attribute)
        else (),
    )


def _call(module: Module, node: ast.AST) -> Sequence[Edit]:
    statement = module.parents.get(node)
    match node, statement:
        case ast.Attribute(), ast.Assign(targets=[_], value=value):
            end = module.source.span(node).end
            start = end - len(node.attr)
            given = module.source.span(value)
            if module.bare[end : given.start].strip() == "=":
                return [Edit(Span(start, given.end), f"requires_grad_({module.text(value)})")]
    return []
