"""How many elements the root of a backward has: one, or one for each sample and more. Told from what made it.

Sizes are not followed. But a layer gives a row for each sample, an elementwise op as many elements as it is given,
and a reduction to one element says so.
"""

import ast

from gradvet.autograd.graph import node_key
from gradvet.autograd.knowledge.lookup import load
from gradvet.autograd.library.module_calls import EACH, each_key
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import Node, Tensor

ONE, MANY, SURELY_MANY, UNKNOWN = "one", "many", "surely many", ""

ELEMENTWISE = frozenset({
    "abs", "clamp", "clamp_max", "clamp_min", "clip", "clone", "contiguous", "cos", "cumsum", "dropout", "elu", "erf", "exp",
    "expm1", "flatten", "flip", "gelu", "leaky_relu", "log", "log10", "log1p", "log2", "log_softmax", "logsigmoid",
    "masked_fill", "mul", "neg", "permute", "pow", "relu", "reshape", "roll", "rsqrt", "sigmoid", "silu", "sin", "softmax",
    "softplus", "sqrt", "square", "squeeze", "t", "tanh", "transpose", "unsqueeze", "view", "where", "add", "sub", "div",
})  # fmt: skip
"""Functions and methods that give at least as many elements as each tensor has that they compute with."""
ALONG = frozenset({"softmax", "log_softmax", "gather", "cumsum", "flip", "roll", "index_select"})
"""Functions and methods that work along a dimension and keep the others."""
SPREADING = (
    "Conv",
    "MaxPool2d",
    "AvgPool2d",
    "BatchNorm2d",
    "Embedding",
    "LSTM",
    "GRU",
    "RNN",
    "Transformer",
    "Upsample",
)
"""Layers (torch.nn) that give several elements even for one sample: channels, places, a row of features."""
POINTWISE = frozenset({
    "ReLU", "ReLU6", "LeakyReLU", "ELU", "GELU", "SiLU", "Sigmoid", "Tanh", "Softplus", "Dropout", "Identity", "Flatten",
    "LogSigmoid", "Hardtanh", "Mish", "Softmax", "LogSoftmax",
})  # fmt: skip
_OPERATORS = frozenset({"+", "-", "*", "/", "**", "neg", "+=", "-=", "*=", "/="})
REDUCING = frozenset(
    {"mean", "sum", "prod", "max", "min", "norm", "std", "var", "nansum", "nanmean", "amax", "amin"}
)
"""Functions and methods that give one element when they are told no dimension."""
_FACTORIES = frozenset({"rand", "randn", "zeros", "ones", "full", "empty"})
_DEEP = 60
Known = dict[int, tuple[str, ast.AST | None]]


def count_of(m: Machine, root: Tensor) -> tuple[str, ast.AST | None]:
    """How many elements a computed tensor has, and the call from which it has more than one."""
    known: Known = {}
    found = [_of_node(m, address, known, 0) for address in root.nodes]
    if not found or any(count not in (MANY, SURELY_MANY) for count, _ in found):
        return (ONE if found and all(count == ONE for count, _ in found) else UNKNOWN), None
    sure = all(count == SURELY_MANY for count, _ in found)
    return (SURELY_MANY if sure else MANY), found[0][1]


def _of_node(m: Machine, address: int, known: Known, depth: int) -> tuple[str, ast.AST | None]:
    if address not in known:
        known[address] = UNKNOWN, None  # what leads back to itself tells nothing
        node = m.cells.get(node_key(address))
        if type(node) is Node and depth < _DEEP:
            known[address] = _told_by(m, address, node, known, depth)
    return known[address]


def _told_by(m: Machine, address: int, node: Node, known: Known, depth: int) -> tuple[str, ast.AST | None]:
    name = node.name.removesuffix("()")
    call = node.node
    each = m.cells.get(each_key(address))
    if each is not None:
        return (MANY, call) if each == EACH else (UNKNOWN, None)
    layer = load().module(f"torch.nn.{name}") if name[:1].isupper() else None
    if layer is not None:
        return _of_layer(m, name, node, call, known, depth, reduces="reduction" in layer.init)
    reduction = _reduction(name, call)
    if reduction is not None:
        return (MANY, call) if reduction == "none" else (ONE, None) if reduction else (UNKNOWN, None)
    if name in REDUCING and isinstance(call, ast.Call):
        return _reduced(m, node, call, known, depth)
    if name in ALONG and isinstance(call, ast.Call) and _dimension(call) >= 1:
        return MANY, call  # a second dimension: the first one is that of the samples
    operator = name in _OPERATORS and isinstance(call, (ast.BinOp, ast.AugAssign, ast.UnaryOp))
    if name not in ELEMENTWISE and not operator:
        return UNKNOWN, None
    return _widest(m, node, known, depth)


def _of_layer(
    m: Machine, name: str, node: Node, call: ast.AST, known: Known, depth: int, *, reduces: bool
) -> tuple[str, ast.AST | None]:
    """What a layer gives: many elements where its kind or its data says so."""
    if reduces:
        return ONE, None
    if name.startswith(SPREADING):
        return MANY, call
    if isinstance(call, ast.Call) and call.args:
        state = m.states.get(call.args[0])
        site = state.origin.node if state is not None and state.origin is not None else None
        sizes = _written_sizes(site)
        if len(sizes) > 1 and sizes[0] > 1 and call.args[0] not in m.vague:
            return SURELY_MANY, call
    return _widest(m, node, known, depth) if name in POINTWISE else (UNKNOWN, None)


def _dimension(call: ast.Call) -> int:
    """The dimension that a call names, as `softmax(x, 1)`, `x.gather(1, index)`; -1 where it names none by number."""
    for keyword in call.keywords:
        if keyword.arg in ("dim", "axis"):
            return _number(keyword.value)
    numbers = [_number(arg) for arg in call.args]
    return max(numbers, default=-1)


def _number(node: ast.expr) -> int:
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else -1


def _widest(m: Machine, node: Node, known: Known, depth: int) -> tuple[str, ast.AST | None]:
    """What an elementwise op gives: as much as the widest of its inputs."""
    found = [_of_node(m, above, known, depth + 1) for above in node.inputs]
    found += [_of_leaf(m, leaf) for leaf in node.sure_leaves]
    for wanted in (SURELY_MANY, MANY):
        for count, made in found:
            if count == wanted:
                return count, made
    return UNKNOWN, None  # what requires no grad is not among the inputs, and may be wider


def _of_leaf(m: Machine, leaf: int) -> tuple[str, ast.AST | None]:
    """A leaf that a factory has made with sizes that are written out."""
    state = m.cells.get(leaf)
    site = state.origin.node if type(state) is Tensor and state.origin is not None else None
    if any(size > 1 for size in _written_sizes(site)):
        return SURELY_MANY, site
    match site:
        case ast.Call(ast.Attribute(attr="tensor") | ast.Name(id="tensor"), [ast.List(elts), *_]) if (
            len(elts) > 1
        ):
            return SURELY_MANY, site
    return UNKNOWN, None


def _written_sizes(site: ast.AST | None) -> list[int]:
    """The sizes that a factory is given, when all are written out: `torch.randn(8, 4)`."""
    match site:
        case ast.Call(ast.Attribute(attr=name) | ast.Name(id=name), sizes) if name in _FACTORIES:
            if len(sizes) == 1 and isinstance(sizes[0], (ast.Tuple, ast.List)):
                sizes = sizes[0].elts
            written = [_number(size) for size in sizes]
            return written if all(size > 0 for size in written) else []
    return []


def _reduction(name: str, call: ast.AST) -> str | None:
    """What a loss function is told of its reduction: `none`, another word, empty when unknown; None for no loss."""
    op = load().function(f"torch.nn.functional.{name}")
    if op is None or "reduction" not in op.params or not isinstance(call, ast.Call):
        return None
    for keyword in call.keywords:
        if keyword.arg in ("reduction", "reduce", "size_average", None):
            value = keyword.value
            known = keyword.arg == "reduction" and isinstance(value, ast.Constant)
            return str(value.value) if known and isinstance(value, ast.Constant) else ""
    return "mean" if len(call.args) <= op.params.index("reduction") - 2 else ""


def _reduced(m: Machine, node: Node, call: ast.Call, known: Known, depth: int) -> tuple[str, ast.AST | None]:
    """A reduction: to one element, or along a dimension that is not the first and so leaves the samples."""
    is_method = not (isinstance(call.func, ast.Attribute) and _is_module(call.func.value))
    given = call.args if is_method and isinstance(call.func, ast.Attribute) else call.args[1:]
    dims = [keyword.value for keyword in call.keywords if keyword.arg in ("dim", "axis")]
    names = {keyword.arg for keyword in call.keywords}
    if not given and not dims and names <= {"dtype"}:
        return ONE, None
    dims = dims or given[-1:]
    match dims:
        case [ast.Constant(int(dim))] if dim >= 1 and len(node.inputs) == 1 and "norm" not in node.name:
            count, _ = _of_node(m, next(iter(node.inputs)), known, depth + 1)
            return (MANY, call) if count in (MANY, SURELY_MANY) else (UNKNOWN, None)
    return UNKNOWN, None


def _is_module(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("torch", "F", "functional")
