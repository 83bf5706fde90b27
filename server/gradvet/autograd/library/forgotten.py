"""Methods that are named and not called, and results that are dropped."""

import ast

from gradvet.autograd.events_call import NotCalled, ResultDropped
from gradvet.autograd.knowledge.lookup import load
from gradvet.autograd.knowledge.training import TRAINING
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.values import (
    NONE,
    Bound,
    Instance,
    Layer,
    Method,
    Opaque,
    Optimizer,
    Unknown,
    Value,
)

_VERBS = frozenset({"backward", "zero_grad", "step", "detach_", "requires_grad_", "retain_grad"})
_GIVES_VALUE = frozenset({
    "item", "detach", "tolist", "numpy", "clone", "cpu", "cuda", "mean", "sum", "max", "min", "float", "double", "norm",
})  # fmt: skip
"""Methods that are called for their value: nobody keeps them in a list to call them later."""
_CONVERTS = frozenset(
    {"detach", "to", "cpu", "cuda", "float", "half", "double", "bfloat16", "long", "int", "bool"}
)


def statement(m: Machine, node: ast.Expr, value: Value) -> None:
    """An expression that stands alone, and is a method that is not called."""
    if isinstance(node.value, ast.Attribute):
        subject, name = node.value.value, node.value.attr
        alternatives = [atom for atom in m.alternatives(value) if atom != NONE]
        holders = [_holder(m, atom, name) for atom in alternatives]
        if holders and all(holders):
            m.emit(NotCalled(node.value, m.where(), name, holders[0], "statement", None, subject))
        elif any(_may_be_method(m, atom) for atom in alternatives):
            return  # the rest of the module tells
        if m.judge is not None:
            m.judge.calls.stands_alone(node.value)


def _holder(m: Machine, value: Value, name: str) -> str:
    """What a method that stands alone belongs to; empty where it need not be a method, or that is not known."""
    if type(value) is Method:
        if m.tensor(value.receiver) is not None:
            return "tensor" if _is_method(name) else ""
        content = m.cells.get(getattr(value.receiver, "address", -1))
        if type(content) in (Optimizer, Layer):
            return "optimizer" if type(content) is Optimizer else "module"
        return "module" if _is_module(m, content) else ""
    if type(value) is Bound:
        content = m.cells.get(getattr(value.receiver, "address", -1))
        return "module" if _is_module(m, content) else "unknown" if name in _VERBS else ""
    return ""


def _may_be_method(m: Machine, value: Value) -> bool:
    return type(value) in (Method, Unknown) or type(m.cells.get(getattr(value, "address", -1))) is Opaque


def _is_method(name: str) -> bool:
    op = load().method(name)
    return name == "backward" or (op is not None and not op.property)


def _is_module(m: Machine, content: object) -> bool:
    return type(content) is Instance and bool(m.classes[content.owner].is_module)


def _trains(m: Machine) -> bool:
    """Whether the function that runs shows by its calls that it trains."""
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in TRAINING
        for node in ast.walk(m.frames[-1].node)
    )


def dropped(m: Machine, call: ast.AST, name: str, *, known: bool) -> None:
    """A method of a tensor (`known`), or of what may be one, stands alone as a statement."""
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or m.frames[-1].raises:
        return
    op, twin = load().method(name), f"{name}_"
    if load().method(twin) is None:
        twin = ""
    if op is None or op.ret != "tensor" or op.mutates or not (twin or name in _CONVERTS):
        return
    if any(keyword.arg == "out" for keyword in call.keywords) or not (known or _trains(m)):
        return
    m.emit(ResultDropped(call, m.where(), name, call.func.value, twin))


def rebound(m: Machine, node: ast.Assign, value: Value) -> None:
    """`h = h.detach`: the tensor has lost its name to its own method."""
    match node:
        case ast.Assign([ast.Name(target)], ast.Attribute(ast.Name(source) as subject, name)):
            if source != target:
                return
            if type(value) is Method and m.tensor(value.receiver) is not None and _is_method(name):
                m.emit(NotCalled(node.value, m.where(), name, "tensor", "rebound", None, subject))
            elif name == "detach" and type(m.cells.get(getattr(value, "address", -1))) is Opaque:
                m.emit(NotCalled(node.value, m.where(), name, "unknown", "rebound", None, subject))


def used(m: Machine, value: Value, site: ast.AST, how: str = "operand") -> None:
    """A value goes where only a number or a tensor can: into an operator, an op, a text."""
    event = _method_as_value(m, value, site, how)
    if event is not None:
        m.emit(event)


def kept(m: Machine, value: Value, site: ast.AST) -> None:
    """A value goes into a container; a method that gives a value is meant to be called, unless somebody does."""
    if type(value) is Method and value.name in _GIVES_VALUE and m.judge is not None:
        event = _method_as_value(m, value, site, "kept")
        if event is not None:
            m.judge.calls.kept(event)


def _method_as_value(m: Machine, value: Value, site: ast.AST, how: str) -> NotCalled | None:
    state = m.tensor(value.receiver) if type(value) is Method else None
    if state is None or state.loose or not _is_method(value.name):
        return None  # a distribution that a module gave has a mean that is no method
    node = value.node
    subject = node.value if isinstance(node, ast.Attribute) else None
    return NotCalled(node, m.where(), value.name, "tensor", how, site, subject)
