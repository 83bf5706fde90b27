"""Packed sequences, in and out of recurrent layers: named tuples of the data and of how it is packed (nn/utils/rnn.py)."""

from gradvet.autograd.library import layers, module_calls
from gradvet.autograd.library.externals import handles
from gradvet.autograd.library.made_tensors import combined
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import MAYBE, NO, Tensor
from gradvet.autograd.memory.values import NONE as NOTHING_SORTED
from gradvet.autograd.memory.values import Layer, Ref, Tuple, Unknown, Value, join
from gradvet.autograd.python.calls import Call, unknown_call

_FIELDS = ("data", "batch_sizes", "sorted_indices", "unsorted_indices")
_MODULE = "torch.nn.utils.rnn."
_SORTED_BACK = "IndexSelectBackward0"


@handles(f"{_MODULE}pack_padded_sequence", f"{_MODULE}pack_sequence")
def _pack(m: Machine, name: str, call: Call) -> Value:
    source = call.argument(0, "input" if name.endswith("padded_sequence") else "sequences")
    if source is None:
        return unknown_call(m, call, "a packed sequence")
    data = combined(m, call.node, "a packed sequence", [source], fn=("PackPaddedSequenceBackward0",))
    sizes = m.new(call.node, Tensor(dtype=2, view=MAYBE), "sizes")
    order = join(NOTHING_SORTED, m.new(call.node, Tensor(dtype=2, view=MAYBE), "order"))
    return Tuple((data, sizes, order, order), _FIELDS)


@handles(f"{_MODULE}pad_packed_sequence")
def _pad(m: Machine, name: str, call: Call) -> Value:
    source = call.argument(0, "sequence")
    if type(source) is not Tuple or source.fields != _FIELDS:
        return Tuple((unknown_call(m, call, "a padded sequence"), Unknown("lengths")))
    names = ("CopySlices", _SORTED_BACK, "TransposeBackward0")
    out = combined(m, call.node, "a padded sequence", [source.items[0]], fn=names)
    m.update(out, lambda t: t._replace(view=MAYBE) if type(t) is Tensor else t)
    return Tuple((out, m.new(call.node, Tensor(dtype=2, view=MAYBE), "lengths")))


def through(m: Machine, ref: Ref, content: Layer, call: Call) -> Value | None:
    """A recurrent layer gives back a packed sequence for one; None for what is none."""
    given = call.args[0] if call.args else None
    if type(given) is not Tuple or given.fields != _FIELDS:
        return None
    value = module_calls.call_layer(m, ref, content, call._replace(args=(given.items[0], *call.args[1:])))
    if type(value) is not Tuple or not value.items:
        return value
    states = value.items[1:]
    for item in (part for state in states for part in (state.items if type(state) is Tuple else (state,))):
        m.update(item, _sorted_back)
    out = value.items[0]
    m.update(
        out,
        lambda t: t._replace(grad_fn=t.grad_fn | {"*"}) if type(t) is Tensor and t.requires_grad != NO else t,
    )
    return value._replace(items=(given._replace(items=(out, *given.items[1:])), *states))


def _sorted_back(content: object) -> object:
    """The last states come in the order of the batch, which packing may have changed."""
    if type(content) is not Tensor or content.requires_grad == NO:
        return content
    return content._replace(grad_fn=content.grad_fn | {_SORTED_BACK}, view=content.view | NO)


layers.ON_PACKED.append(through)
