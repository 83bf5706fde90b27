"""An option that stops the gradient of some arguments of a call, and does the same to another whether it is set or not."""

import ast
from collections.abc import Iterator

from gradvet.autograd.events_flow import TargetInGraph
from gradvet.autograd.machine import Machine
from gradvet.syntax.parse import Module
from gradvet.syntax.tree import walk

WORDS = ".detach() if "


def equal_arms(m: Machine, module: Module) -> None:
    """Emit the arguments that keep their graph beside others that the same option detaches."""
    if WORDS not in module.words:
        return
    for call in walk(module.tree):
        if isinstance(call, ast.Call):
            given = [*call.args, *(keyword.value for keyword in call.keywords)]
            chosen = [one for one in given if isinstance(one, ast.IfExp)]
            stopped = [one for one in chosen if _is_detached(one.body, one.orelse)]
            flags = {flag for one in stopped for flag in _flags(one.test)}
            for one in chosen:
                if ast.dump(one.body) == ast.dump(one.orelse) and not flags.isdisjoint(_flags(one.test)):
                    m.emit(TargetInGraph(one, (), "option", None, stopped[0], None, owned=True))


def _is_detached(body: ast.expr, other: ast.expr) -> bool:
    match body:
        case ast.Call(func=ast.Attribute(value=what, attr="detach"), args=[]):
            return ast.dump(what) == ast.dump(other)
    return False


def _flags(test: ast.expr) -> Iterator[str]:
    """What a test asks for: each part of an `and`."""
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
    return (ast.dump(part) for part in parts)
