"""Numpy arrays: which of them share memory, and what writes into them."""

import ast

from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import NOTHING
from gradvet.autograd.memory.values import Array, Const, Number, Ref, Slice, Tuple, Value

VIEWS = frozenset({"reshape", "ravel", "transpose", "view", "squeeze", "swapaxes", "diagonal"})
"""Methods of an array that give a view of it wherever they can."""
WRITES = frozenset({"sort", "fill", "put", "partition", "resize", "itemset"})
"""Methods of an array that change it in place."""
KEEPS = frozenset({"numpy.asarray", "numpy.asanyarray", "numpy.squeeze", "numpy.transpose", "numpy.swapaxes"})
"""Functions that give their array itself, or a view of it."""
CHANGES = frozenset({
    "numpy.copyto", "numpy.put", "numpy.place", "numpy.putmask", "numpy.fill_diagonal", "numpy.random.shuffle",
})  # fmt: skip
"""Functions that change their first argument in place."""


def fresh(m: Machine, node: ast.AST, cuts: frozenset[int] = NOTHING, tag: str = "array") -> Ref:
    """An array with memory of its own."""
    address = m.address(node, tag)
    m.place(address, Array(frozenset({address}), cuts))
    return Ref(address)


def array_in(m: Machine, value: Value | None) -> tuple[Ref, Array] | None:
    """The array that a value must be."""
    content = m.cells.get(value.address) if type(value) is Ref else None
    return (value, content) if type(value) is Ref and type(content) is Array else None


def index(m: Machine, ref: Ref, content: Array, key: Value, node: ast.AST) -> Value:
    """`array[key]`: a view for numbers and slices, a copy for anything that selects."""
    return ref if _is_basic(key) else fresh(m, node, content.cuts, "selected")


def _is_basic(key: Value) -> bool:
    if type(key) is Tuple:
        return all(_is_basic(item) for item in key.items)
    return type(key) is Slice or (type(key) in (Const, Number) and key.kind != "bool")


def written(m: Machine, ref: Ref, content: Array, node: ast.AST, *, anew: bool = False) -> None:
    """An array is written, `anew` when its old values do not matter; version counters of tensors do not see it."""
    if m.judge is not None:
        m.judge.arrays.array_edited(node, content, anew=anew)


def written_by_function(
    m: Machine, name: str, node: ast.AST, args: tuple[Value, ...], out: Value | None
) -> None:
    """A function of numpy that writes into one of its arguments."""
    changed = args[0] if name in CHANGES and args else None
    for target, anew in ((changed, name in ("numpy.copyto", "numpy.put")), (out, False)):
        found = array_in(m, target)
        if found is not None:
            written(m, *found, node, anew=anew)
