"""What an op keeps for backward, and whether its own gradients have a graph."""

from collections.abc import Mapping
from typing import NamedTuple

from gradvet.autograd.graph import sure_leaf, sure_nodes
from gradvet.autograd.knowledge.ops import Op
from gradvet.autograd.library.storages import counts_with_source
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import MAYBE, NO, YES, Graphed, Tensor
from gradvet.autograd.memory.values import Value

Places = Mapping[str, int]
"""The addresses of what an op makes, by where each output stands in the result."""


class Operand(NamedTuple):
    """A tensor that goes into an op, joined over what it may be; a `bias` of a module is never saved for backward."""

    parameter: str
    value: Value
    state: Tensor
    bias: bool = False


class Inputs(NamedTuple):
    """The arguments of an op by parameter, its tensors, and what is unknown and may be a tensor too.

    `asking` is whether a gradient might go to something unknown: a device or a dtype has none.
    """

    arguments: dict[str, Value]
    operands: tuple[Operand, ...]
    unknown: tuple[Value, ...]
    asking: bool = False


Dependence = tuple[Operand | None, bool]
"""What a gradient is computed from that may require grad, an operand or (None) the output; and whether it surely is."""


def saved_by(
    m: Machine, address: int, places: Places, op: Op | None, inputs: Inputs, leaves: frozenset[int]
) -> tuple[frozenset[int], int, int, frozenset[Graphed]]:
    """The storages that this op keeps for backward, whether it keeps anything, and whether gradients have a graph.

    Last come those inputs of which the gradient surely has one, with what is behind that.

    `places` are the storages of its outputs, by their place: `max(dim)` keeps its indices and not its values.
    `leaves` are those to which the node leads that it makes at an address.
    """
    if m.deriving is not None:
        m.deriving.made(address, op, inputs, leaves)
    if op is None:
        return frozenset(), YES, MAYBE, frozenset()
    if any(out.zero for out in op.out):
        m.zeroing.add(address & ~1)
    saved: set[int] = set()
    counted: set[int] = set()
    may_ask = [o for o in inputs.operands if o.state.requires_grad & YES]
    asking = {o.parameter for o in may_ask if o.state.requires_grad == YES}
    if len(may_ask) == 1 and not inputs.unknown:
        asking = {may_ask[0].parameter}  # it does, or there is no node
    for entry in op.saves_in:
        if entry.answer == "always" and entry.needs & asking:
            for operand in inputs.operands:
                if (
                    operand.parameter == entry.operand
                    and not operand.bias
                    and len(operand.state.storage) == 1
                ):
                    saved |= operand.state.storage
                    if counts_with_source(operand.state):
                        counted |= operand.state.storage
    for entry in op.saves_out:
        if entry.answer == "always" and entry.needs & asking and entry.operand in places:
            saved.add(places[entry.operand])
            counted.add(places[entry.operand])
    if m.judge is not None and len(saved) > len(counted):
        m.judge.walks.apart[address & ~1] = frozenset(saved - counted)
    keeps = YES if saved else _keeps(op, asking, {o.parameter for o in may_ask}, inputs)
    return frozenset(saved), keeps, *_graph_of_gradients(m, address, op, inputs)


def _keeps(op: Op, asking: set[str], may_ask: set[str], inputs: Inputs) -> int:
    """Whether an op keeps anything for backward, by the parameters that surely ask for a gradient and that may.

    What it was seen to keep for the gradients of some it does not keep for those of others.
    """
    if op.twice != "raises":
        return NO if op.twice == "fine" else MAYBE
    needs = [entry.needs for entry in (*op.saves_in, *op.saves_out)]
    if not needs or any(asking & one for one in needs):
        return YES
    perhaps = inputs.unknown or op.saves_hidden != "never" or any(may_ask & one for one in needs)
    return MAYBE if perhaps else NO


def _graph_of_gradients(m: Machine, address: int, op: Op, inputs: Inputs) -> tuple[int, frozenset[Graphed]]:
    """Whether the gradients of an op have a graph, whichever of its inputs they are for, and for which they surely do."""
    by, complete = dependences(op, inputs)
    sure: dict[str, list[Graphed]] = {}
    for parameter, found in by.items():
        kept = [o for o, surely in found if surely and (o is None or o.state.requires_grad == YES)]
        # What is kept of the result as well may be kept for another gradient: a power's for that of its exponent.
        behind = [o for o in kept if o is not None] or kept
        if behind:
            sure[parameter] = [one for operand in behind for one in _behind(m, address, operand)]
    higher = YES if sure and sure.keys() == by.keys() else NO if complete and not any(by.values()) else MAYBE
    if not sure:
        return higher, frozenset()
    graphed = frozenset(
        behind._replace(input=at)
        for operand in inputs.operands
        for behind in sure.get(operand.parameter, ())
        for at in sure_nodes(m, operand.state) | sure_leaf(operand.state)
    )
    if higher == YES:
        return higher, graphed
    rest = [o.state for o in inputs.operands if o.parameter not in sure]
    plain = frozenset[int]().union(*(sure_nodes(m, state) | sure_leaf(state) for state in rest))
    return higher, frozenset(one for one in graphed if one.input not in plain)


def _behind(m: Machine, address: int, operand: Operand | None) -> list[Graphed]:
    """What is behind a gradient that is computed from an operand, or from what the op has made at an address."""
    if operand is None:
        return [Graphed(0, node=address)]
    nodes = [Graphed(0, node=at) for at in sure_nodes(m, operand.state)]
    return [*nodes, *(Graphed(0, leaf=at) for at in sure_leaf(operand.state))] or [Graphed(0)]


def dependences(op: Op, inputs: Inputs) -> tuple[dict[str, list[Dependence]], bool]:
    """What the gradient for each parameter that may ask for one is computed from, and whether that is all of it."""
    asking = [operand for operand in inputs.operands if operand.state.requires_grad & YES]
    found: dict[str, list[Dependence]] = {operand.parameter: [] for operand in asking}
    if op.flat:
        return found, not inputs.unknown
    for entry in op.saves_in:
        for parameter in entry.needs & found.keys():
            several = entry.operand == parameter and _times(parameter, inputs) > 1
            found[parameter] += [
                (operand, entry.answer == "always" and not several)
                for operand in asking
                if operand.parameter == entry.operand and not operand.bias
            ]
    for entry in op.saves_out:
        if op.out_asks(entry.operand):
            for parameter in entry.needs & found.keys():
                found[parameter].append((None, entry.answer == "always"))
    # What is kept of one tensor and a number, and is not the tensor, is the number.
    unseen = op.twice != "fine" and not (op.saves_in or op.saves_out) and len(inputs.operands) > 1
    return found, not (inputs.unknown or unseen or op.saves_hidden != "never")


def _times(parameter: str, inputs: Inputs) -> int:
    return sum(operand.parameter == parameter for operand in inputs.operands)
