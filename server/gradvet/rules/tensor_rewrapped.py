"""A tensor is made anew from the values of others on the way to a loss."""

import ast
from collections.abc import Iterator, Sequence

from gradvet.autograd.events import CutPath
from gradvet.finding import (
    Applicability,
    Finding,
    Fix,
    Severity,
    code,
    cut_off,
    without_gradient,
)
from gradvet.rules import rule
from gradvet.syntax import edits, rewrite
from gradvet.syntax.parse import Module
from gradvet.text import Edit

_EFFECT = "a gradient flows through it from now on"


@rule(CutPath, family="cut", severity=Severity.WARNING)
def check(event: CutPath) -> Iterator[Finding]:
    """Report a new tensor, or a way through numpy, that leaves the graph of a loss behind."""
    if event.kind == "rewrap":
        how = f"{code(event.node)} copies values into a new tensor without their graph"
    elif event.kind == "numpy":
        how = f"{code(event.node)} leaves torch, and no graph comes back"
    else:
        return
    yield cut_off(
        event,
        f"{how}: {without_gradient(event)}",
        _fixes(event),
    )


def _fixes(event: CutPath) -> Iterator[Fix]:
    call = event.node
    if event.kind != "rewrap" or not isinstance(call, ast.Call) or len(call.args) != 1:
        return
    names = {keyword.arg for keyword in call.keywords}
    if event.form == "tensors" and not names:
        yield Fix(
            "Use torch.stack", _EFFECT, Applicability.UNSAFE, lambda module: _call(module, call, "stack")
        )
    elif event.form == "tensor" and event.name == "new_tensor()":
        if not names:
            yield Fix(
                "Use the tensor itself",
                _EFFECT,
                Applicability.UNSAFE,
                lambda module: edits.unwrap(module, call, call.args[0]),
            )
    elif event.form == "tensor" and names <= {"dtype", "device"} and event.name == "torch.tensor()":
        yield Fix(
            "Use torch.as_tensor",
            _EFFECT,
            Applicability.UNSAFE,
            lambda module: _call(module, call, "as_tensor"),
        )


def _call(module: Module, call: ast.Call, name: str) -> Sequence[Edit]:
    """The same arguments, given to another function of torch."""
    spelled, imports = rewrite.torch_name(module, f"torch.{name}")
    return [*imports, *edits.replace(module, call.func, spelled)]
