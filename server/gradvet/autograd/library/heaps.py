"""heapq: lists whose elements come out in the order of their size."""

from gradvet.autograd.library.externals import handles
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.values import NONE, Sequence, Value
from gradvet.autograd.python.calls import Call, unknown_call
from gradvet.autograd.python.objects import element_of, take_any
from gradvet.autograd.python.operators import grow


@handles("heapq.heappush", "heapq.heappushpop", "heapq.heapreplace")
def _pushed(m: Machine, name: str, call: Call) -> Value:
    """One element more, anywhere; what a push takes away for it may be any of them."""
    if len(call.args) < 2:  # noqa: PLR2004  a heap and what is pushed
        return unknown_call(m, call, f"the result of `{name}`")
    heap, new = call.args[0], call.args[1]
    if type(m.cells.get(getattr(heap, "address", -1))) is not Sequence:
        return unknown_call(m, call, f"the result of `{name}`")
    _in_any_order(m, heap)
    grow(m, heap, [new], call.node, known=False)
    return NONE if name.endswith("heappush") else element_of(m, heap, call.node)


@handles("heapq.heappop", "heapq.heapify", "heapq.nlargest", "heapq.nsmallest")
def _taken(m: Machine, name: str, call: Call) -> Value:
    """Any of the elements, or some of them."""
    heap = call.args[-1] if call.args else NONE
    if len(call.args) > 1 and name.endswith("est"):
        heap = call.args[1]
    content = m.cells.get(getattr(heap, "address", -1))
    if type(content) is not Sequence:
        return unknown_call(m, call, f"the result of `{name}`")
    if name.endswith("heapify"):
        _in_any_order(m, heap)
        return NONE
    if name.endswith("heappop"):
        take_any(m, heap)
        return element_of(m, heap, call.node)
    return m.new(call.node, Sequence("list", None, element_of(m, heap, call.node)), "picked")


def _in_any_order(m: Machine, heap: Value) -> None:
    m.update(heap, lambda c: c._replace(items=None, rest=c.element) if type(c) is Sequence else c)
