"""Tensors of bfloat16, as far as their making tells: dtypes are not followed, casts and factories are read."""

import ast
from collections.abc import Iterable

from gradvet.autograd.events_exit import HalfToNumpy
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import YES, Origin, Tensor
from gradvet.autograd.memory.values import External, Ref, Value
from gradvet.autograd.python.calls import Call

_KEEPS = frozenset({
    "cpu", "detach", "clone", "cuda", "view", "reshape", "squeeze", "unsqueeze", "flatten", "transpose", "permute",
    "relu", "sigmoid", "tanh", "softmax", "abs", "mean", "sum", "max", "min", "exp", "sqrt", "square", "clamp",
    "cat", "stack", "gelu", "silu", "log_softmax", "normalize",
})  # fmt: skip
"""Methods and functions that give the dtype that they are given, when they are told no other."""
_FACTORIES = frozenset(
    {"rand", "randn", "zeros", "ones", "full", "empty", "tensor", "rand_like", "randn_like", "zeros_like"}
)
_CASTS = frozenset({"to", "type", "float", "double", "half", "bfloat16", "int", "long", "bool", "type_as"})
_DEEP = 12
_KEY = "#half"
_LOWERED = frozenset({
    "Linear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "Bilinear",
    "linear()", "matmul()", "bmm()", "mm()", "addmm()", "einsum()", "@", "conv1d()", "conv2d()", "conv3d()",
})  # fmt: skip
"""What autocast computes in the lower type on every device (the docs of torch.amp, "Op-Specific Behavior")."""


def module_cast(m: Machine, parameters: Iterable[Ref], name: str, call: Call) -> None:
    """`module.bfloat16()`, `module.to(torch.bfloat16)`: the parameters are of that type until they are cast again."""
    dtype = next((v for v in call.all_values() if type(v) is External and v.name.startswith("torch.")), None)
    if name == "to" and dtype is None:
        return  # to another device
    half = name == "bfloat16" or (dtype is not None and dtype.name == "torch.bfloat16")
    for ref in parameters:
        if half or (ref.address, _KEY) in m.cells:
            m.store.set((ref.address, _KEY), call.node if half else None)


def half_to_numpy(m: Machine, node: ast.AST, receiver: Value, source: ast.expr | None) -> None:
    """`.numpy()` of a tensor: torch raises for bfloat16, unless it raises for the graph first."""
    states = [state for _, state in m.tensors(receiver)]
    if not states or any(state.requires_grad & YES for state in states):
        return
    # What a cast gives may be its input itself: then the two are one of several, and the cast tells the dtype.
    casts = [s.origin.node for s in states if s.origin is not None and _is_cast(s.origin.node)]
    found = [_made_half(m, Origin(cast, ""), 0) for cast in casts] or [
        _made_half(m, s.origin, 0) for s in states
    ]
    if all(made is not None for made in found) and found[0] is not None:
        m.emit(HalfToNumpy(node, m.where(), states[0], found[0], source))


def _is_cast(node: ast.AST) -> bool:
    match node:
        case ast.Call(ast.Attribute(attr=name)):
            return name in _CASTS
    return False


def _made_half(m: Machine, origin: Origin | None, depth: int) -> ast.AST | None:
    """Where a value surely became bfloat16, and nothing has changed that since."""
    if origin is None or depth > _DEEP:
        return None
    node = origin.node
    autocast = m.casting.get(node) if origin.text in _LOWERED else None
    if autocast is not None and _lowers(autocast):
        return autocast
    cast = _module_cast(m, origin) if not origin.inputs else None
    if cast is not None:
        return cast
    match node:
        case ast.Call() if origin.text.isidentifier() and origin.text[0].isupper():
            pass  # a layer, whose result is of the type of its parameters
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
    found = [_made_half(m, above, depth + 1) for above in origin.inputs]
    return found[0] if found and all(made is not None for made in found) else None


def _module_cast(m: Machine, origin: Origin) -> ast.AST | None:
    """Where the parameters that were made so were cast with their module, when all of them were."""
    casts = [
        m.cells.get((address, _KEY))
        for address, content in m.cells.items()
        if type(content) is Tensor and content.parameter & YES and content.origin == origin
    ]
    return casts[0] if casts and all(cast is not None for cast in casts) else None


def _lowers(entered: ast.expr) -> bool:
    """Whether an autocast is one to bfloat16 that nothing may have switched off."""
    if not isinstance(entered, ast.Call):
        return False
    given = {keyword.arg: keyword.value for keyword in entered.keywords}
    enabled = given.get("enabled")
    on = enabled is None or (isinstance(enabled, ast.Constant) and enabled.value is True)
    return on and "dtype" in given and _is_bfloat16(given["dtype"])


def _is_bfloat16(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "bfloat16"
