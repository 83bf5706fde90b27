"""Tensors of bfloat16, as far as their making tells: dtypes are not followed, casts and factories are read."""

import ast

from gradvet.autograd.events_exit import HalfToNumpy
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import YES, Origin
from gradvet.autograd.memory.values import Value

_KEEPS = frozenset({
    "cpu", "detach", "clone", "cuda", "view", "reshape", "squeeze", "unsqueeze", "flatten", "transpose", "permute",
    "relu", "sigmoid", "tanh", "softmax", "abs", "mean", "sum", "max", "min", "exp", "sqrt", "square", "clamp",
})  # fmt: skip
"""Methods and functions that give the dtype that they are given, when they are told no other."""
_FACTORIES = frozenset(
    {"rand", "randn", "zeros", "ones", "full", "empty", "tensor", "rand_like", "randn_like", "zeros_like"}
)
_CASTS = frozenset({"to", "type", "float", "double", "half", "bfloat16", "int", "long", "bool", "type_as"})
_DEEP = 12


def half_to_numpy(m: Machine, node: ast.AST, receiver: Value, source: ast.expr | None) -> None:
    """`.numpy()` of a tensor: torch raises for bfloat16, unless it raises for the graph first."""
    states = [state for _, state in m.tensors(receiver)]
    if not states or any(state.requires_grad & YES for state in states):
        return
    # What a cast gives may be its input itself: then the two are one of several, and the cast tells the dtype.
    casts = [s.origin.node for s in states if s.origin is not None and _is_cast(s.origin.node)]
    found = [_made_half(Origin(cast, ""), 0) for cast in casts] or [_made_half(s.origin, 0) for s in states]
    if all(made is not None for made in found) and found[0] is not None:
        m.emit(HalfToNumpy(node, m.where(), states[0], found[0], source))


def _is_cast(node: ast.AST) -> bool:
    match node:
        case ast.Call(ast.Attribute(attr=name)):
            return name in _CASTS
    return False


def _made_half(origin: Origin | None, depth: int) -> ast.AST | None:
    """Where a value surely became bfloat16, and nothing has changed that since."""
    if origin is None or depth > _DEEP:
        return None
    node = origin.node
    match node:
        case ast.Call(ast.Attribute(attr="bfloat16"), []):
            return node
        case ast.Call(ast.Attribute(attr="to" | "type"), [dtype], []) if _is_bfloat16(dtype):
            return node
        case ast.Call(ast.Attribute(attr=name) | ast.Name(id=name), _, keywords):
            told = [keyword.value for keyword in keywords if keyword.arg == "dtype"]
            if told:
                return node if name in (*_FACTORIES, "to") and _is_bfloat16(told[0]) else None
            if name not in _KEEPS:
                return None
        case ast.Subscript() | ast.Attribute(attr="T" | "mT" | "data") | ast.UnaryOp():
            pass
        case ast.BinOp(left, _, right) if isinstance(left, ast.Constant) or isinstance(right, ast.Constant):
            pass  # a Python number takes on the dtype of the tensor
        case _:
            return None
    found = [_made_half(above, depth + 1) for above in origin.inputs]
    return found[0] if found and all(made is not None for made in found) else None


def _is_bfloat16(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "bfloat16"
