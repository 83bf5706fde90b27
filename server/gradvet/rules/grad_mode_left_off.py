"""A function turns grad mode off and leaves it off."""

import ast
from collections.abc import Iterator, Sequence

from gradvet.autograd.events_mode import ModeLeftOff
from gradvet.finding import Applicability, Finding, Fix, Note, Severity, called_from, code
from gradvet.rules import rule
from gradvet.syntax import rewrite
from gradvet.syntax.parse import Module
from gradvet.text import Edit


@rule(ModeLeftOff, family="mode", severity=Severity.WARNING)
def check(event: ModeLeftOff) -> Iterator[Finding]:
    """Report a switch that outlives the function that threw it."""
    name = f"`{getattr(event.function, 'name', 'the function')}`"
    when = "on one way out of" if event.other else "when"
    left = f"{when} {name}" if event.other else f"{when} {name} returns"
    if isinstance(event.function, ast.ClassDef):
        left = f"when a block of {name} is left"
    effect = (
        f"{code(event.loss)} raises for it" if event.raises else "whatever trains after it records nothing"
    )
    yield Finding(
        event.node,
        f"{code(event.node)} is still in force {left}: {effect}",
        (
            Note("loss" if event.raises else "trains", code(event.loss), event.loss),
            *called_from(event.calls),
        ),
        ()
        if event.other or isinstance(event.function, ast.ClassDef)  # the block is the caller's
        else (
            Fix(
                "Turn grad off in a block",
                "grad mode is as before when the block is left",
                Applicability.UNSAFE,
                lambda module: _block(module, event.node),
            ),
        ),
        Severity.ERROR if event.raises else None,
    )


def _block(module: Module, node: ast.AST) -> Sequence[Edit]:
    statement = module.statement(node)
    if not isinstance(statement, ast.Expr) or statement.value is not node:
        return []
    spelled, imports = rewrite.torch_name(module, "torch.no_grad")
    block = rewrite.block_instead(module, statement, f"{spelled}()")
    return [*imports, *block] if block else []
