"""What a generator gives: one by one where it comes by each `yield` in order, else any of it."""

import ast

from gradvet.autograd.machine import Frame, Machine
from gradvet.autograd.memory.domain import Tensor, join_tensors
from gradvet.autograd.memory.scopes import yields_in_order
from gradvet.autograd.memory.store import Seen
from gradvet.autograd.memory.values import NONE, Sequence, Unknown, Value, join

MOST_YIELDED = 20


class Yielded:
    """Collects what the body of a generator yields while it is run."""

    def __init__(self, m: Machine, node: ast.FunctionDef | ast.AsyncFunctionDef, frame: Frame) -> None:
        """Begin a run of the body."""
        self._m, self._frame = m, frame
        self._cell = (frame.scope, "#yielded")  # a cell, so that what is yielded ages with the loop around it
        self._seen = Seen(frame.base, whole=False)
        self._surely = False  # whether it yields anything outside of loops that may be passed over
        self._in_order: list[Value] | None = [] if yields_in_order(node) else None
        m.store.set(self._cell, None)

    def collect(self, value: Value) -> Value:
        """Something is yielded; what is sent back is not known, where anything is sent at all."""
        m, frame = self._m, self._frame
        low = m.store.low
        m.store.look(self._seen)
        m.store.low = min(low, m.store.low)
        if self._in_order is not None:
            self._in_order.append(value)
            if len(self._in_order) > MOST_YIELDED or any(loop.node is not None for loop in frame.loops):
                self._in_order = None  # a loop that is not run round by round
        self._surely |= not any(loop.may_skip for loop in frame.loops)
        m.store.set(self._cell, m.store.union((m.cells.get(self._cell), value)))
        if any(_never_ends(loop.node) for loop in frame.loops):
            frame.returns.append((m.store.delta(frame.base), NONE))  # it is left here, and not gone on with
        return join(NONE, Unknown("what is sent to a generator")) if m.sends else NONE

    def taken(self) -> Sequence:
        """All that was yielded."""
        element = self._m.cells.get(self._cell)
        self._m.store.set(self._cell, None)
        self._as_met()
        if self._in_order:
            return Sequence("generator", tuple(self._in_order))
        if element is None:
            return Sequence("generator")
        return Sequence("generator", None, element, thinned=not self._surely)

    def _as_met(self) -> None:
        """The consumer meets a tensor as it was at some `yield`, or as the body leaves it at its end."""
        for key, met in self._seen.cells.items():
            left = self._m.cells.get(key)
            if type(met) is Tensor and type(left) is Tensor and left is not met:
                self._m.store.set(key, join_tensors(left, met))


def _never_ends(loop: ast.AST | None) -> bool:
    """Whether a loop is a `while True`."""
    return isinstance(loop, ast.While) and isinstance(loop.test, ast.Constant) and bool(loop.test.value)
