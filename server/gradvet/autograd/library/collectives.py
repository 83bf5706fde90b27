"""`torch.distributed`: what comes from other processes has no graph (the docs: its functions do not support autograd).

Those of `torch.distributed.nn` do: they are custom Functions.
"""

from gradvet.autograd.held import held_tensors
from gradvet.autograd.library.externals import handles
from gradvet.autograd.library.inputs import in_mode, operands_of
from gradvet.autograd.library.kept import Inputs
from gradvet.autograd.library.results import computed
from gradvet.autograd.library.storages import count_change
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import (
    ANY_FN,
    FUNCTIONS_RECORD,
    INTEGER,
    MAYBE,
    NO,
    NOTHING,
    YES,
    Tensor,
)
from gradvet.autograd.memory.values import NONE, Number, Ref, Sequence, Value
from gradvet.autograd.python.calls import Call, unknown_call


@handles("torch.distributed.all_gather", "torch.distributed.all_gather_into_tensor")
def _all_gather(m: Machine, name: str, call: Call) -> Value:
    """Copies the tensors of all processes into the ones given, the own one included, as values."""
    target = call.argument(0, "tensor_list" if name.endswith("gather") else "output_tensor")
    source = call.argument(1, "tensor" if name.endswith("gather") else "input_tensor")
    leaves, nodes, cuts = NOTHING, NOTHING, NOTHING
    for _, state in m.tensors(source) if source is not None else ():
        cuts |= state.cuts
        if state.requires_grad & YES:
            leaves, nodes = leaves | state.leaves, nodes | state.nodes
    filled = list(held_tensors(m, target)) if target is not None else []
    if leaves:
        number = m.cut("collective", f"{name.rpartition('.')[2]}()", call.node, leaves, nodes, cuts)
        cuts |= {number}
        if m.judge is not None:
            m.judge.cut_notes.gathered.setdefault(number, set()).update(ref.address & ~1 for ref, _ in filled)
    for ref, state in filled:
        count_change(m, state)
        m.update(ref, lambda t: _filled(t, cuts, records=bool(leaves) and name.endswith("into_tensor")))
    return NONE


_RECORDING = {
    "all_gather": "_AllGatherBackward",
    "gather": "_GatherBackward",
    "all_reduce": "_AllReduceBackward",
    "reduce": "_ReduceBackward",
    "broadcast": "_BroadcastBackward",
}
_OF_MANY = frozenset({"all_gather", "gather"})
"""Those that give a tuple with a tensor of each process."""


@handles(*(f"torch.distributed.nn.{inner}{short}" for short in _RECORDING for inner in ("", "functional.")))
def _recorded(m: Machine, name: str, call: Call) -> Value:
    """A new tensor, or a tuple of them, through which gradients go back to all processes (measured on torch 2.13)."""
    short = name.rpartition(".")[2]
    given = call.argument(0, "tensor")
    operands = operands_of(m, "tensor", given) if given is not None else []
    if len(operands) != 1:
        return unknown_call(m, call, f"the result of `{short}()`")
    (operand,) = operands
    state, address = operand.state, m.address(call.node, short)
    granted = in_mode(m, NO if state.dtype == INTEGER else state.requires_grad, FUNCTIONS_RECORD)
    through, inputs = [operand] if granted & YES else [], Inputs({"tensor": operand.value}, (operand,), ())
    made = computed(
        m, call.node, address, f"{short}()", (_RECORDING[short],), granted, through, inputs, state.dtype
    )
    m.place(address, made)
    if short not in _OF_MANY:
        return Ref(address)
    return m.new(call.node, Sequence("tuple", None, Ref(address), nonempty=True), f"all of {short}")


@handles("torch.distributed.get_rank", "torch.distributed.get_world_size")
def _number(m: Machine, name: str, call: Call) -> Value:
    return Number("int")


@handles("torch.distributed.is_initialized", "torch.distributed.is_available")
def _whether(m: Machine, name: str, call: Call) -> Value:
    return Number("bool")


def _filled(content: object, cuts: frozenset[int], *, records: bool) -> object:
    """A tensor that was filled; `all_gather_into_tensor` leaves a node that leads nowhere (measured on torch 2.13)."""
    if type(content) is not Tensor:
        return content
    content = content._replace(cuts=content.cuts | cuts)
    if not records:
        return content
    return content._replace(requires_grad=MAYBE, is_leaf=MAYBE, grad_fn=content.grad_fn | {ANY_FN})
