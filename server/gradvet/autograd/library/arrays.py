"""Numpy arrays: which of them share memory, and what writes into them."""

import ast
from collections.abc import Iterable

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

UFUNCS = frozenset(
    [
        "abs",
        "absolute",
        "arccos",
        "arccosh",
        "arcsin",
        "arcsinh",
        "arctan",
        "arctanh",
        "cbrt",
        "ceil",
        "conj",
        "cos",
        "cosh",
        "deg2rad",
        "degrees",
        "exp",
        "exp2",
        "expm1",
        "fabs",
        "floor",
        "isfinite",
        "isinf",
        "isnan",
        "log",
        "log10",
        "log1p",
        "log2",
        "logical_not",
        "negative",
        "positive",
        "rad2deg",
        "radians",
        "reciprocal",
        "rint",
        "sign",
        "signbit",
        "sin",
        "sinh",
        "sqrt",
        "square",
        "tan",
        "tanh",
        "trunc",
    ]
)
"""Functions of one argument that go element by element: of a tensor they give a tensor, of a number a number (measured)."""
UFUNCS_OF_TWO = frozenset(
    [
        "add",
        "arctan2",
        "copysign",
        "divide",
        "float_power",
        "floor_divide",
        "fmax",
        "fmin",
        "fmod",
        "hypot",
        "logaddexp",
        "maximum",
        "minimum",
        "mod",
        "multiply",
        "power",
        "remainder",
        "subtract",
        "true_divide",
    ]
)
"""The same of two arguments, and `clip`: of numbers they give a number."""
REDUCES = frozenset(
    [
        "mean",
        "sum",
        "max",
        "min",
        "std",
        "var",
        "median",
        "prod",
        "argmax",
        "argmin",
        "all",
        "any",
        "ptp",
        "trace",
        "average",
        "nanmean",
        "nansum",
        "nanmax",
        "nanmin",
        "nanstd",
        "percentile",
        "quantile",
        "norm",
        "amax",
        "amin",
        "count_nonzero",
    ]
)
"""Functions and methods that give one number of a whole array when no axis is named."""
SAMPLES = frozenset(
    [
        "rand",
        "randn",
        "random",
        "random_sample",
        "uniform",
        "normal",
        "randint",
        "integers",
        "standard_normal",
        "choice",
        "beta",
        "exponential",
        "poisson",
    ]
)
"""Functions of numpy.random that give one number when no size is named."""
GENERATORS = frozenset({"numpy.random.default_rng", "numpy.random.RandomState", "numpy.random.Generator"})
"""What makes an object with the functions of numpy.random."""
_MOST_PLAIN = {
    "uniform": 2,
    "normal": 2,
    "randint": 2,
    "integers": 2,
    "choice": 1,
    "beta": 2,
    "exponential": 1,
    "poisson": 1,
}


def one_number(name: str, args: tuple[Value, ...], words: Iterable[str], *, method: bool = False) -> bool:
    """Whether a function of numpy, or a method of an array, gives one number and no array."""
    short = name.rpartition(".")[2]
    if name.startswith("numpy.random."):
        return short in SAMPLES and "size" not in words and len(args) <= _MOST_PLAIN.get(short, 0)
    given = len(args) + method
    if short in ("percentile", "quantile"):
        return given <= 2 and "axis" not in words and all(type(a) in (Const, Number) for a in args[-1:])  # noqa: PLR2004
    return short in REDUCES and given == 1 and not {"axis", "keepdims"} & set(words)


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
