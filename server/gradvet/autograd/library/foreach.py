"""`torch._foreach_mul_(tensors, 0.5)` and its kin: one change in place of each tensor in a list."""

from gradvet.autograd.library.externals import handles
from gradvet.autograd.library.operations import edit, operands_of
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.values import NONE, Value
from gradvet.autograd.python.calls import Call
from gradvet.autograd.python.objects import element_of, items_of

_CHANGES = (
    "abs", "add", "addcdiv", "addcmul", "clamp_max", "clamp_min", "copy", "div", "exp", "lerp", "log", "mul", "neg", "pow",
    "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sqrt", "sub", "tanh", "zero",
)  # fmt: skip


@handles(*(f"torch._foreach_{change}_" for change in _CHANGES))
def _foreach(m: Machine, name: str, call: Call) -> Value:
    words = name.rpartition("_foreach_")[2] + "()"
    others = [*call.args[1:], *call.keywords.values()]
    for at, target in enumerate(_parts(m, call.args[0], call) if call.args else ()):
        given = [_parts(m, other, call) if items_of(m, other) is not None else (other,) for other in others]
        own = [parts[at] if at < len(parts) else parts[0] for parts in given if parts]
        operands = tuple(operand for value in own for operand in operands_of(m, "other", value))
        edit(m, call.node, target, words, operands, tag=f" {at}")
    return NONE


def _parts(m: Machine, value: Value, call: Call) -> tuple[Value, ...]:
    """The tensors of a list one by one, or whichever of them it is."""
    items = items_of(m, value)
    return items if items is not None else (element_of(m, value, call.node),)
