"""Evaluation or inference builds graphs that no backward will ever use."""

import ast
from collections.abc import Iterator, Sequence

from gradvet.autograd.events import UnusedGraph
from gradvet.finding import Applicability, Finding, Fix, Note, Severity, code, why
from gradvet.rules import rule
from gradvet.syntax import rewrite
from gradvet.syntax.parse import Module
from gradvet.text import Edit


@rule(UnusedGraph, family="leak", severity=Severity.WARNING)
def check(event: UnusedGraph) -> Iterator[Finding]:
    """Report a forward in eval mode whose graph no backward uses."""
    name = getattr(event.function, "name", "")
    place = f"`{name}`" if name else "this script"
    evidence = Note(
        "why", f"{code(event.evidence)} switches to evaluation, which does not stop autograd", event.evidence
    )
    if isinstance(event.evidence, ast.Assert):
        evidence = Note(
            "why",
            f"{code(event.evidence)} says that it evaluates, which does not stop autograd",
            event.evidence,
        )
    verb = "evaluates"
    if isinstance(event.evidence, ast.Call) and ast.unparse(event.evidence.func).endswith(
        ("detach", "detach_")
    ):
        evidence = Note(
            "why", f"what is kept of it is only ever used detached: {code(event.evidence)}", event.evidence
        )
        verb = "computes values"
    yield Finding(
        event.node,
        f"{place} {verb} with grad mode on: {code(event.node)} builds a graph that no backward uses",
        (evidence, *why("graph", event.tensor)),
        (
            _fix("torch.no_grad", "no graph is recorded, the activations are freed at once", event),
            _fix("torch.inference_mode", "the same; its results can take no part in training later", event),
        ),
    )


def _fix(mode: str, effect: str, event: UnusedGraph) -> Fix:
    def change(module: Module) -> Sequence[Edit]:
        function = event.function
        spelled, imports = rewrite.torch_name(module, mode)
        if isinstance(function, ast.FunctionDef) and event.whole:
            return [*imports, *rewrite.add_decorator(module, function, f"@{spelled}()")]
        return [*imports, *rewrite.wrap_in_with(module, module.statement(event.node), f"with {spelled}():")]

    return Fix(f"Run it under {mode}()", effect, Applicability.UNSAFE, change)
