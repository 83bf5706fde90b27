"""Grad mode is to be switched, and the switch does nothing."""

import ast
from collections.abc import Iterator, Sequence
from functools import partial

from gradvet.autograd.events import ModeDecorator, ModeStatement, WithUncalled
from gradvet.finding import Applicability, Finding, Fix, Note, Severity, code
from gradvet.rules import rule
from gradvet.syntax import edits, rewrite
from gradvet.syntax.parse import Module
from gradvet.text import Edit


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
                        partial(_block, node=node),
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


def _block(module: Module, node: ast.Expr) -> Sequence[Edit]:
    return rewrite.block_instead(module, node, module.text(node.value))
