"""The forward of a custom Function keeps an input or an output as an attribute of `ctx`."""

import ast
from collections.abc import Iterator, Sequence

from gradvet.autograd.events import FunctionHolds
from gradvet.finding import Applicability, Finding, Fix, Severity, code
from gradvet.rules import rule
from gradvet.syntax import edits
from gradvet.syntax.parse import Module
from gradvet.text import Edit


@rule(FunctionHolds, family="leak", severity=Severity.WARNING)
def check(event: FunctionHolds) -> Iterator[Finding]:
    """Report the assignment."""
    node = event.node
    plain = isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute)
    kept = code(node.value) if isinstance(node, ast.Assign) and plain else "of this call"
    spelled = code(node.targets[0]) if isinstance(node, ast.Assign) and plain else f"`ctx.{event.name}`"
    if event.role == "output":
        message = (
            f"{spelled} holds the output {kept}, whose graph holds `ctx`: memory that goes only when the "
            "garbage collector runs; use `ctx.save_for_backward`"
        )
    else:
        message = (
            f"{spelled} holds the input {kept} unseen by autograd: a change in place before the backward makes the "
            "gradient wrong, and no error; use `ctx.save_for_backward`"
        )
    severity = Severity.WARNING if event.role == "output" else Severity.INFO
    yield Finding(node, message, (), tuple(_fixes(event)), severity)


def _fixes(event: FunctionHolds) -> Iterator[Fix]:
    match event.node:
        case ast.Assign(targets=[ast.Attribute(value=ast.Name(id=ctx))], value=ast.Name() as value) as node:
            if event.plain:
                yield Fix(
                    "Use save_for_backward",
                    "autograd sees the tensor: it is freed with the graph, and a change in place raises",
                    Applicability.UNSAFE,
                    lambda module: _save(module, node, ctx, value, event.name),
                )


def _save(module: Module, node: ast.Assign, ctx: str, value: ast.Name, name: str) -> Sequence[Edit]:
    """Save the tensor, and let backward take it from what was saved."""
    above: ast.AST = node
    while not isinstance(above, ast.ClassDef) and above in module.parents:
        above = module.parents[above]
    found = [Edit(module.source.span(node), f"{ctx}.save_for_backward({module.text(value)})")]
    for part in ast.walk(above):
        match part:
            case ast.Attribute(value=ast.Name(id=own), attr=attr, ctx=ast.Load()) if attr == name:
                found += edits.replace(module, part, f"{own}.saved_tensors[0]")
    return found
