"""einops: the same elements in another order, repeated or reduced (its docs: gradients flow through all of it)."""

from gradvet.autograd.held import held_tensors
from gradvet.autograd.library import arrays
from gradvet.autograd.library.externals import handles
from gradvet.autograd.library.made_tensors import combined
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import MAYBE, NOTHING, Tensor
from gradvet.autograd.memory.values import Layer, Sequence, Tuple, Unknown, Value, join_all
from gradvet.autograd.python.calls import Call

_VIEWS = frozenset({"rearrange", "repeat", "unpack"})
"""What may give views of what it is given (the docs of `einops.rearrange`: "a view when possible")."""


@handles(
    "einops.rearrange", "einops.repeat", "einops.reduce", "einops.einsum", "einops.pack", "einops.unpack"
)
def _rearranged(m: Machine, name: str, call: Call) -> Value:
    """What comes of a tensor, of several, or of a list of them."""
    short = name.rpartition(".")[2]
    given = (
        call.args[:-1]
        if short == "einsum"
        else (call.argument(0, "tensor" if short != "pack" else "tensors"),)
    )
    values = [value for value in given if value is not None]
    if any(arrays.array_in(m, value) is not None for value in values):
        return arrays.fresh(m, call.node)
    held = [state for value in values for _, state in held_tensors(m, value)]
    if not held:
        return m.unknown(call.node, f"the result of `{short}`", tuple(values), "call")
    made = combined(m, call.node, f"{short}()", values)
    dtypes = held[0].dtype if len(held) == 1 else 0
    shared = NOTHING.union(*(state.storage for state in held)) if short in _VIEWS else NOTHING

    def change(content: object) -> object:
        if type(content) is not Tensor:
            return content
        content = content._replace(dtype=dtypes or content.dtype, storage=content.storage | shared)
        return content._replace(view=MAYBE) if shared else content

    m.update(made, change)
    if short == "pack":
        return Tuple((made, Unknown("the shapes of what was packed")))
    if short == "unpack":
        return m.new(call.node, Sequence("list", None, join_all([made]), nonempty=True), "unpacked")
    return made


@handles("einops.layers.torch.Rearrange", "einops.layers.torch.Reduce")
def _layer(m: Machine, name: str, call: Call) -> Value:
    """A module without parameters."""
    return m.new(call.node, Layer(name))
