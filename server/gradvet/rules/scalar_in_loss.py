"""A tensor becomes a Python number on the way to a loss."""

import ast
from collections.abc import Callable, Iterator, Sequence

from gradvet.autograd.events import CutPath
from gradvet.autograd.knowledge.lookup import load
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
from gradvet.syntax import edits
from gradvet.syntax.parse import Module
from gradvet.text import Edit

Change = Callable[[Module], Sequence[Edit]]


@rule(CutPath, family="cut", severity=Severity.WARNING)
def check(event: CutPath) -> Iterator[Finding]:
    """Report a number that stands in a loss where a tensor was meant."""
    if event.kind != "item":
        return
    message = f"{code(event.node)} is a Python number without a graph: {without_gradient(event)}"
    yield cut_off(event, f"{message} through it" if event.form == "parameter" else message, _fixes(event))


def _fixes(event: CutPath) -> Iterator[Fix]:
    match event.node:
        case ast.Call(func=ast.Attribute(attr="item"), args=[]) as call:
            yield _fix("Drop .item()", lambda module: edits.drop_call(module, call))
        case ast.Call(func=ast.Name(id="float"), args=[inner], keywords=[]) as call:
            yield _fix("Drop float()", lambda module: edits.unwrap(module, call, inner))
        case ast.Call(args=[inner], keywords=[]) as call:
            name = _method(event)
            if name is not None:
                yield _fix(f"Use the tensor's own {name}()", lambda module: _own(module, call, inner, name))


def _fix(title: str, change: Change) -> Fix:
    return Fix(title, "a gradient flows through it from now on", Applicability.UNSAFE, change)


def _method(event: CutPath) -> str | None:
    """The method of a tensor that does what a function of `math` does to a number."""
    module, _, name = event.name.removesuffix("()").rpartition(".")
    op = load().method(name) if module == "math" else None
    return name if op is not None and op.ret == "tensor" else None


def _own(module: Module, call: ast.Call, inner: ast.expr, name: str) -> Sequence[Edit]:
    text = module.text(inner)
    simple = isinstance(inner, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
    return edits.replace(module, call, f"{text}.{name}()" if simple else f"({text}).{name}()")
