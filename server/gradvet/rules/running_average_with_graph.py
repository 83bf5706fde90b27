"""A running average or statistic keeps the graph of every step that it was updated in."""

import ast
from collections.abc import Iterator, Sequence

from gradvet.autograd.events import Retained
from gradvet.autograd.memory.domain import YES
from gradvet.finding import Applicability, Finding, Fix, Note, Severity, called_from, code, weakened, why
from gradvet.rules import rule
from gradvet.syntax import edits, rewrite
from gradvet.syntax.parse import Module
from gradvet.text import Edit


@rule(Retained, family="leak", severity=Severity.ERROR)
def check(event: Retained) -> Iterator[Finding]:
    """Report where something new goes in with its graph."""
    if event.how != "average":
        return
    new = f"{code(event.value)} goes in" if event.value is not None else "what is new goes in"
    freed = event.freed == YES
    stays = (
        "a backward has freed the activations; the nodes of the graph stay"
        if freed
        else "no backward frees it: the activations stay as well"
    )
    yield Finding(
        event.node,
        f"`{event.holder}` is a running average that leads back to every step: {new} with its graph",
        (
            *why("why", event.tensor),
            Note("held", f"each value of `{event.holder}` is computed from the last one; {stays}"),
            *called_from(event.calls),
        ),
        tuple(_fixes(event)),
        Severity.WARNING if freed else weakened(Severity.ERROR, event.tensor),
    )


def _fixes(event: Retained) -> Iterator[Fix]:
    value, node = event.value, event.node
    if value is not None and event.fixable:
        yield Fix(
            "Detach what goes in",
            "the average has the same values, and no graph",
            Applicability.SAFE,
            lambda module: edits.after(module, value, ".detach()"),
        )
    if isinstance(node, ast.stmt):

        def wrap(module: Module) -> Sequence[Edit]:
            spelled, imports = rewrite.torch_name(module, "torch.no_grad")
            return [*imports, *rewrite.wrap_in_with(module, node, f"with {spelled}():")]

        yield Fix(
            "Update under torch.no_grad()",
            "the same values; nothing in the statement is recorded, whatever else it computes",
            Applicability.UNSAFE,
            wrap,
        )
