"""A leaf that requires grad, or a view of one, is changed in place while autograd records."""

import ast
from collections.abc import Iterator, Sequence

from gradvet.autograd.events import LeafChanged
from gradvet.finding import Applicability, Finding, Fix, Note, Severity, called_from, code, weakened
from gradvet.rules import rule
from gradvet.syntax import rewrite
from gradvet.syntax.parse import Module
from gradvet.syntax.unplace import out_of_place
from gradvet.text import Edit


@rule(LeafChanged, family="alias", severity=Severity.ERROR)
def check(event: LeafChanged) -> Iterator[Finding]:
    """Report the change where it is made."""
    name = code(event.target) if event.target is not None else "the tensor"
    what = "is a view of a leaf that requires grad" if event.is_view else "is a leaf that requires grad"
    notes: list[Note] = []
    origin = event.leaf.origin
    if origin is not None:
        notes.append(Note("leaf", origin.text, origin.node))
    notes += [Note("assuming", words) for words in sorted(event.tensor.assumes)]
    yield Finding(
        event.node,
        f"{name} {what}: torch raises when it is changed in place while autograd records",
        (*notes, *called_from(event.calls)),
        tuple(_fixes(event)),
        weakened(Severity.ERROR, event.tensor),
    )


def _fixes(event: LeafChanged) -> Iterator[Fix]:
    node = event.node
    if not event.asks:

        def wrap(module: Module) -> Sequence[Edit]:
            spelled, imports = rewrite.torch_name(module, "torch.no_grad")
            return [*imports, *rewrite.wrap_in_with(module, module.statement(node), f"with {spelled}():")]

        yield Fix(
            "Write under torch.no_grad()",
            "the leaf gets new values, and no gradient flows through the write",
            Applicability.UNSAFE,
            wrap,
        )
    elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        yield Fix(
            "Compute out of place",
            "the name then holds a new tensor; the leaf stays as it is",
            Applicability.UNSAFE,
            lambda module: out_of_place(module, node),
        )
