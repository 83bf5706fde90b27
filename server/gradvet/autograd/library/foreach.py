"""`torch._foreach_mul_(tensors, 0.5)` and its kin: one change in place of each tensor in a list."""

from gradvet.autograd.knowledge.lookup import Op, load
from gradvet.autograd.library.changes import edit
from gradvet.autograd.library.externals import handles
from gradvet.autograd.library.inputs import bind
from gradvet.autograd.library.operations import mutate
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.values import NONE, Const, Number, Value
from gradvet.autograd.python.calls import Call
from gradvet.autograd.python.objects import element_of, items_of

_CHANGES = (
    "abs", "acos", "add", "addcdiv", "addcmul", "asin", "atan", "ceil", "clamp_max", "clamp_min", "cos", "cosh", "div",
    "erf", "erfc", "exp", "expm1", "floor", "frac", "lerp", "lgamma", "log", "log10", "log1p", "log2", "mul", "neg",
    "pow", "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "sub", "tan", "tanh", "trunc", "zero",
)  # fmt: skip
_BY_NUMBER = frozenset({"add", "sub", "mul", "div"})
"""Those that have a node of their own for numbers, which keeps nothing for backward (measured on torch 2.13)."""


@handles(*(f"torch._foreach_{change}_" for change in _CHANGES))
def _foreach(m: Machine, name: str, call: Call) -> Value:
    """Each tensor is changed as the method of this name would do it (measured: the same nodes, which keep the same)."""
    change = name.rpartition("_foreach_")[2].removesuffix("_")
    op = load().method(f"{change}_")
    for at, target in enumerate(_parts(m, call.args[0], call) if call.args else ()):
        args = (target, *(_part(m, other, at, call) for other in call.args[1:]))
        keywords = {word: _part(m, other, at, call) for word, other in call.keywords.items()}
        if op is None:
            edit(m, call.node, target, f"{change}_()", tag=f" {at}")
            continue
        own = _of_one(op, args, number=change in _BY_NUMBER) if _is_by_one(m, call, args) else op
        mutate(m, call.node, own, bind(m, call.node, own, args, keywords), f"{change}_()", tag=f" {at}")
    return NONE


@handles("torch._foreach_copy_")
def _copy(m: Machine, name: str, call: Call) -> Value:
    """It has no derivative: what is changed so has a node that only raises."""
    for at, target in enumerate(_parts(m, call.args[0], call) if call.args else ()):
        args = (target, *(_part(m, other, at, call) for other in call.args[1:]))
        op = load().method("copy_")
        if op is not None:
            unnamed = op._replace(out=tuple(out._replace(fn=()) for out in op.out))
            mutate(m, call.node, unnamed, bind(m, call.node, op, args, {}), "copy_()", tag=f" {at}")
    return NONE


def _is_by_one(m: Machine, call: Call, args: tuple[Value, ...]) -> bool:
    """Whether the other operand is a number, or a tensor that is not one of a list."""
    return len(args) > 1 and (m.tensor(args[1]) is None or items_of(m, call.args[1]) is None)


def _of_one(op: Op, args: tuple[Value, ...], *, number: bool) -> Op:
    """The form of an op whose other operand is one for all: its node may have another name."""
    unnamed = op._replace(out=tuple(out._replace(fn=()) for out in op.out))
    if number and type(args[1]) in (Const, Number):
        return unnamed._replace(twice="fine", saves_in=(), saves_out=())
    return unnamed


def _parts(m: Machine, value: Value, call: Call) -> tuple[Value, ...]:
    """The tensors of a list one by one, or whichever of them it is."""
    items = items_of(m, value)
    return items if items is not None else (element_of(m, value, call.node),)


def _part(m: Machine, value: Value, at: int, call: Call) -> Value:
    """What comes to the tensor at a place: its part of a list, or what is given for them all."""
    items = items_of(m, value)
    if items is None:
        return (
            value
            if type(value) in (Const, Number) or m.tensor(value) is not None
            else element_of(m, value, call.node)
        )
    return items[at] if at < len(items) else items[0] if items else NONE
