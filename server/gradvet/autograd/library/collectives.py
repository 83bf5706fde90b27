"""`torch.distributed`: what comes from other processes has no graph (the docs: its functions do not support autograd)."""

from gradvet.autograd.held import held_tensors
from gradvet.autograd.library.externals import handles
from gradvet.autograd.library.storages import count_change
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import ANY_FN, MAYBE, NOTHING, YES, Tensor
from gradvet.autograd.memory.values import NONE, Value
from gradvet.autograd.python.calls import Call


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
    if leaves:
        number = m.cut("collective", f"{name.rpartition('.')[2]}()", call.node, leaves, nodes, cuts)
        cuts |= {number}
        if m.judge is not None:
            m.judge.cut_notes.gathered.add(number)
    for ref, state in held_tensors(m, target) if target is not None else ():
        count_change(m, state)
        m.update(ref, lambda t: _filled(t, cuts, records=bool(leaves) and name.endswith("into_tensor")))
    return NONE


def _filled(content: object, cuts: frozenset[int], *, records: bool) -> object:
    """A tensor that was filled; `all_gather_into_tensor` leaves a node that leads nowhere (measured on torch 2.13)."""
    if type(content) is not Tensor:
        return content
    content = content._replace(cuts=content.cuts | cuts)
    if not records:
        return content
    return content._replace(requires_grad=MAYBE, is_leaf=MAYBE, grad_fn=content.grad_fn | {ANY_FN})
