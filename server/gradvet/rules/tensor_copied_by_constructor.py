"""A tensor is copied by a constructor that is meant for plain data."""

import ast
from collections.abc import Iterator, Sequence

from gradvet.autograd.events_leaf import TensorCopied
from gradvet.autograd.memory.domain import YES
from gradvet.finding import Applicability, Finding, Fix, Severity, called_from, code
from gradvet.rules import rule
from gradvet.syntax import edits
from gradvet.syntax.parse import Module
from gradvet.text import Edit

_KEPT = {"dtype", "device", "requires_grad"}


@rule(TensorCopied, family="exit", severity=Severity.INFO)
def check(event: TensorCopied) -> Iterator[Finding]:
    """Report `torch.tensor(t)` of a tensor; a warning where a loss is made of the copy, and its graph is gone."""
    lost = ", and drops its graph without a word" if event.tensor.requires_grad == YES else ""
    call = event.node
    yield Finding(
        call,
        f"{code(event.source)} is a tensor already: this copies it, and torch warns{lost}",
        called_from(event.calls),
        tuple(_fixes(event, call)) if isinstance(call, ast.Call) else (),
        Severity.WARNING if event.in_loss and event.tensor.has_graph else Severity.INFO,
    )


def _fixes(event: TensorCopied, call: ast.Call) -> Iterator[Fix]:
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    flag = given.pop("requires_grad", None)
    constant = flag is None or (isinstance(flag, ast.Constant) and isinstance(flag.value, bool))
    if not given.keys() <= _KEPT or len(call.args) != 1 or not constant:
        return
    asks = isinstance(flag, ast.Constant) and flag.value is True

    def change(module: Module) -> Sequence[Edit]:
        where = [] if event.like is None else [module.text(event.like)]
        where += [f"{name}={module.text(value)}" for name, value in given.items()]
        copy = f".to({', '.join([*where, 'copy=True'])})" if where else ".clone()"
        source = module.text(event.source)
        if not isinstance(event.source, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)):
            source = f"({source})"
        return edits.replace(module, call, f"{source}.detach(){copy}{'.requires_grad_()' if asks else ''}")

    title = (
        "Copy with .detach().clone()"
        if event.like is None and not given
        else "Copy with .detach().to(copy=True)"
    )
    yield Fix(title, "the same values in a new tensor, said in torch's own words", Applicability.SAFE, change)
