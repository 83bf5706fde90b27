"""Grad mode is to be switched, and the switch does nothing."""

import ast
from collections.abc import Iterator, Sequence
from functools import partial

from gradvet.autograd.events import ModeDecorator, ModeStatement, WithUncalled
from gradvet.finding import Applicability, Finding, Fix, Note, Severity, code
from gradvet.rules import rule
from gradvet.syntax import edits, rewrite
from gradvet.syntax.parse import Module
from gradvet.text import Edit, Span, apply


@rule(ModeStatement, WithUncalled, ModeDecorator, family="mode", severity=Severity.WARNING)
def check(event: ModeStatement | WithUncalled | ModeDecorator) -> Iterator[Finding]:
    """Report a grad mode that is dropped, not called, or put where it cannot act."""
    match event:
        case ModeStatement(node=ast.Expr() as node):
            short = event.name.rpartition(".")[2]
            yield Finding(
                node,
                f"{code(node.value)} as a statement does nothing: grad mode changes only in a `with` block "
                "or as a decorator",
                (Note("note", f"`{short}` was made and dropped; what follows still runs as before", None),),
                (
                    Fix(
                        "Wrap what follows in the block",
                        "the rest of this block runs in that grad mode",
                        Applicability.UNSAFE,
                        partial(_wrapped, node=node),
                    ),
                ),
            )
        case WithUncalled(node=ast.expr() as node):
            yield Finding(
                node,
                f"{code(node)} is not called: `with` needs the object that {code(node)[:-1]}()` makes, and raises here",
                (),
                (
                    Fix(
                        "Call it",
                        "as it is, the line raises",
                        Applicability.SAFE,
                        lambda module: edits.after(module, node, "()"),
                    ),
                ),
                Severity.ERROR,
            )
        case ModeDecorator(target=ast.ClassDef() as target):
            yield Finding(
                event.node,
                f"on a class, {code(event.node)} covers only the making of `{target.name}`, none of its methods",
                (Note("note", "decorate the methods that should run without autograd"),),
            )
        case ModeDecorator(target=ast.AsyncFunctionDef() as target):
            yield Finding(
                event.node,
                f"on an `async def`, {code(event.node)} has no effect: it ends before the body of `{target.name}` runs",
                (Note("note", "use a `with` block inside the function"),),
            )


def _wrapped(module: Module, node: ast.Expr) -> Sequence[Edit]:
    """The statement becomes the header of a block that holds the statements after it."""
    parent = module.parents[node]
    for field in ("body", "orelse", "finalbody"):
        block = getattr(parent, field, None)
        if isinstance(block, list) and node in block:
            rest = block[block.index(node) + 1 :]
            if not rest:
                return []
            return _in_place_of(module, node, rest)
    return []


def _in_place_of(module: Module, node: ast.Expr, rest: list[ast.stmt]) -> Sequence[Edit]:
    """One edit: the lines of the statement go, and those after it come back inside the block."""
    wrapped = rewrite.wrap_in_with(module, rest, f"with {module.text(node.value)}:")
    source = module.source
    first, begin = source.line_starts[node.lineno - 1], source.line_starts[rest[0].lineno - 1]
    if not wrapped or first == begin or (node.end_lineno or node.lineno) == rest[0].lineno:
        return []
    end = source.span(rest[-1]).end
    changed = apply(source.text, wrapped)
    kept = changed[begin : end + len(changed) - len(source.text)]
    return [Edit(Span(first, end), kept)]
