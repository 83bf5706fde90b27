"""`.data` reaches a tensor's storage behind autograd's back."""

import ast
from collections.abc import Iterator, Sequence

from gradvet.autograd.events import DataUse
from gradvet.finding import Applicability, Finding, Fix, Note, Severity, called_from, code, operations
from gradvet.rules import rule
from gradvet.syntax import edits, rewrite
from gradvet.syntax.parse import Module
from gradvet.text import Edit


@rule(DataUse, family="alias", severity=Severity.INFO)
def check(event: DataUse) -> Iterator[Finding]:
    """Report `.data` by what is done with it: read, or written, and whether a backward needs the old value."""
    node = event.node if event.write is None else event.write
    name = code(event.subject) if event.subject is not None else "the tensor"
    if event.kind == "read":
        yield Finding(
            event.node,
            f"{code(event.node)} reads {name} without autograd; `.detach()` does the same and its writes are seen",
            (),
            (_drop(event),) if event.of_grad or event.init else (_detach(event),),
        )
        return
    if event.saved:
        needs = event.saved[0]
        yield Finding(
            node,
            f"this write through `.data` changes what {operations(event.saved)} saved for backward: "
            "the gradient will be wrong, and torch cannot see it",
            (
                Note("saved", f"by {code(needs)}", needs),
                Note(
                    "note",
                    "`.data` has a version counter of its own, so the check that protects `.detach()` is blind here",
                ),
                *called_from(event.calls),
            ),
            (),
            Severity.ERROR,
        )
        return
    if event.kept is not None:
        yield Finding(
            node,
            f"{code(event.kept)} shares storage with {name}: this edit changes {name} too, and torch cannot see it",
            (Note("alias", f"{code(event.node)} copies nothing", event.node), *called_from(event.calls)),
            (),
            Severity.WARNING,
        )
        return
    if event.activation:
        yield Finding(
            node,
            f"this write through `.data` changes {name} and autograd does not know: the gradient flows as if it had not",
            called_from(event.calls),
            (),
            Severity.WARNING,
        )
        return
    fixes = (_drop(event),) if event.of_grad or event.init else (_no_grad(event),) if event.plain else ()
    if event.of_grad:
        instead = "a gradient has no graph: `.data` is not needed"
    elif event.init:
        instead = "`torch.nn.init` works under `no_grad` itself: `.data` is not needed"
    else:
        instead = "write under `torch.no_grad()`"
    yield Finding(
        node,
        f"this write to {name} goes through `.data`, which torch does not watch; {instead}",
        called_from(event.calls),
        fixes,
    )


def _detach(event: DataUse) -> Fix:
    def change(module: Module) -> Sequence[Edit]:
        node = event.node
        return (
            edits.replace(module, node, f"{module.text(node.value)}.detach()")
            if isinstance(node, ast.Attribute)
            else []
        )

    return Fix(
        "Replace `.data` by `.detach()`",
        "the same value and storage; writes are noticed",
        Applicability.SAFE,
        change,
    )


def _drop(event: DataUse) -> Fix:
    def change(module: Module) -> Sequence[Edit]:
        node = event.node
        return edits.unwrap(module, node, node.value) if isinstance(node, ast.Attribute) else []

    return Fix("Drop `.data`", "the same effect", Applicability.SAFE, change)


def _no_grad(event: DataUse) -> Fix:
    def change(module: Module) -> Sequence[Edit]:
        statement = module.statement(event.write or event.node)
        spelled, imports = rewrite.torch_name(module, "torch.no_grad")
        header = f"with {spelled}():"
        match statement:
            case ast.Assign(targets=[ast.Attribute(attr="data") as target], value=value):
                span, inner = (
                    module.source.span(statement),
                    f"{module.text(target.value)}.copy_({module.text(value)})",
                )
                margin = module.source.line(statement.lineno)[: statement.col_offset]
                return [*imports, Edit(span, f"{header}\n{margin}    {inner}")]
        dropped = [
            edit
            for node in event.together
            if isinstance(node, ast.Attribute)
            for edit in edits.unwrap(module, node, node.value)
        ]
        return [*imports, *rewrite.wrap_in_with(module, statement, header), *dropped]

    effect = "torch sees the write: a backward that needs the old value will raise"
    if event.kind == "assigned":
        effect = "copies into the old storage: needs the same shape, and whoever kept the old tensor sees it change"
    return Fix("Write under torch.no_grad()", effect, Applicability.UNSAFE, change)
