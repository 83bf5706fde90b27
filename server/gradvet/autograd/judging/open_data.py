"""`.data` of things that the run knows nothing of, where the code around shows that they are tensors.

Other objects have an attribute of that name: a packed sequence, a graph, a container of a framework. So a name
or what is done with the result is not enough: what `.data` is taken of has to show that it is a tensor.
"""

import ast
import re
from collections.abc import Callable, Iterator

from gradvet.autograd.events import DataUse
from gradvet.autograd.judging.above import ANY_FUNCTION, function_of
from gradvet.autograd.memory.domain import ANYTHING
from gradvet.syntax.parents import Parents
from gradvet.syntax.parse import Module
from gradvet.syntax.tree import on_rows, walk

_OF_TENSORS = frozenset({
    "backward", "detach", "detach_", "requires_grad_", "retain_grad", "item", "unsqueeze", "squeeze", "permute",
    "contiguous", "softmax", "log_softmax", "argmax", "logsumexp", "masked_fill", "index_select", "gather", "numel",
    "expand", "clamp", "sigmoid", "relu", "tanh", "norm", "new_tensor", "new_zeros", "view", "dim", "register_hook",
})  # fmt: skip
"""Methods that tensors have and that objects with another `.data` do not; arrays lack most of them too."""
_SHOWN = frozenset({"requires_grad", "grad_fn", "is_leaf"})
_ASKING = frozenset({"isinstance", "type", "hasattr", "callable", "id"})
_MOVES = frozenset({"cpu", "cuda", "to"})
"""Methods that packed sequences have as well."""
_LEAVES_ARRAYS = frozenset(
    {"cpu", "cuda", "to", "detach", "clone", "numpy", "item", "float", "half", "double"}
)
"""Methods of a tensor that a memoryview, the `.data` of an array, has not."""

_MENTIONED = re.compile(r"\.\s*data\b")
"""Most files have no `.data` at all, and need no closer look."""


def open_data(module: Module, known: Callable[[ast.AST], bool]) -> Iterator[DataUse]:
    """The reads that the run did not know; `known` tells the expressions of which it did."""
    rows = module.rows(_MENTIONED)
    if not rows:
        return
    parents = module.parents
    found = [
        node
        for node in on_rows(module.tree, rows)
        if isinstance(node, ast.Attribute) and node.attr == "data" and isinstance(node.ctx, ast.Load)
    ]
    shown: dict[ast.AST, set[str]] = {}
    packs = "pack" in module.source.text.lower()
    for node in found:
        if known(node) or known(node.value) or _is_written(node, parents) or asks_what(parents.get(node)):
            continue
        function = function_of(node, parents, ANY_FUNCTION) or module.tree
        if function not in shown:
            shown[function] = _tensors_in(function)
        if _is_tensor(node, parents, shown[function], packs=packs):
            yield DataUse(
                node, (), ANYTHING, "read", None, (), False, node.value, False, False, False, None, ()
            )


def asks_what(above: ast.AST | None) -> bool:
    """Whether a call asks what kind of thing something is: then it need not be a tensor."""
    return isinstance(above, ast.Call) and isinstance(above.func, ast.Name) and above.func.id in _ASKING


def _is_tensor(node: ast.Attribute, parents: Parents, shown: set[str], *, packs: bool) -> bool:
    """Whether what `.data` is taken of is a tensor: by what it is made with, or what else is done with it."""
    holder, above = node.value, parents.get(node)
    called = (
        above.attr if isinstance(above, ast.Attribute) and isinstance(parents.get(above), ast.Call) else ""
    )
    if called == "requires_grad_":
        return True
    if isinstance(holder, (ast.Name, ast.Attribute)):
        return ast.unparse(holder) in shown
    return called in _LEAVES_ARRAYS and _is_made(holder, packs=packs)


def _is_made(holder: ast.expr, *, packs: bool) -> bool:
    """Whether an expression is made by what only tensors can: a method of theirs, arithmetic, an index of several."""
    match holder:
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in _OF_TENSORS or (name in _MOVES and not packs)
        case ast.Subscript(slice=ast.Tuple()) | ast.BinOp():
            return True
    return False


def _tensors_in(function: ast.AST) -> set[str]:
    """The names and attributes in a function on which methods are called that only tensors have."""
    found = set()
    for node in walk(function):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name() | ast.Attribute() as owner, attr=name)):
                if name in _OF_TENSORS:
                    found.add(ast.unparse(owner))
            case ast.Attribute(value=ast.Name() | ast.Attribute() as owner, attr=name) if name in _SHOWN:
                found.add(ast.unparse(owner))
    return found


def _is_written(node: ast.Attribute, parents: Parents) -> bool:
    """Whether the result is changed in place: by an item, an operator, a method."""
    below: ast.AST = node
    while isinstance(above := parents.get(below), (ast.Attribute, ast.Subscript, ast.Call)):
        if isinstance(above, ast.Call) and above.func is not below:
            return False
        if isinstance(getattr(above, "ctx", None), (ast.Store, ast.Del)):
            return True
        if isinstance(above, ast.Attribute) and above.attr.endswith("_") and above.attr != "requires_grad_":
            return True
        below = above
    return isinstance(above, ast.AugAssign) and above.target is below
