"""Whether the derivative that a transform takes of a function depends on what requires grad outside of it."""

from collections.abc import Iterable, Mapping

from gradvet.autograd.graph import gives_zero, leading_to, reachable, surely_between
from gradvet.autograd.knowledge.ops import Op
from gradvet.autograd.library.kept import Inputs, Operand, dependences
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import MAYBE, NO, YES, Tensor
from gradvet.autograd.memory.values import Ref, atoms

Leaves = frozenset[int]
Kept = tuple[Leaves, list[Leaves]]
"""The leaves behind an input of an op, and those behind each tensor that its gradient is surely computed from."""
_UNKNOWN: Leaves = frozenset({0})
"""Stands for the leaves of a tensor that requires grad and of which none is known; nothing lies at 0."""


class Derivation:
    """Told of each op of a function while it runs: of which tensors its gradients are computed."""

    def __init__(self, outside: set[int], constants: Mapping[int, int]) -> None:
        """`outside` are the addresses that were there before the transform.

        `constants` are tensors that were handed in without a wish for their gradients, with whether they require grad
        outside: the derivative does where it is computed from them.
        """
        self._outside = frozenset(outside) | _UNKNOWN
        self._surely: dict[int, list[Kept]] = {}
        self._perhaps: dict[int, Leaves] = {}
        self._constants = {at: truth for at, truth in constants.items() if truth & YES}
        self._of_constants: dict[int, Leaves] = {}

    def cut_inside(self, address: int, sources: Iterable[int], state: Tensor) -> None:
        """`.data` of what was made inside makes a constant there and nothing else: outside it asks as it did."""
        if state.requires_grad & YES and not self._outside.intersection(sources):
            sure = state.requires_grad == YES and bool(state.leaves) and state.leaves <= self._outside
            self._constants[address] = YES if sure else MAYBE

    def plain(self, address: int, inputs: Inputs) -> Leaves:
        """An op has made something, which outside may also come from these constants (their addresses negative)."""
        behind = frozenset(-abs(at) for operand in inputs.operands for at in self._behind(operand))
        if behind:
            self._of_constants[address] = behind
        return behind

    def _behind(self, operand: Operand) -> Leaves:
        """The constants that a tensor is, or (their addresses negative) that it may be computed from."""
        found = frozenset[int]()
        for at in (atom.address for atom in atoms(operand.value) if type(atom) is Ref):
            found |= frozenset({at}) if at in self._constants else self._of_constants.get(at, frozenset())
        return found

    def _as_outside(self, operand: Operand) -> Operand:
        """An operand as it would be where no transform made constants of what was handed in."""
        behind, state = self._behind(operand), operand.state
        if not behind:
            return operand
        if not state.requires_grad & YES:
            sure = all(self._constants.get(at) == YES for at in behind)
            state = state._replace(requires_grad=YES if sure else MAYBE)
        return operand._replace(state=state._replace(leaves=state.leaves | behind))

    def made(self, address: int, op: Op | None, inputs: Inputs, leaves: Leaves) -> None:
        """An op has made a node, which leads to these leaves."""
        if self._constants:
            leaves |= self.plain(address, inputs)
            inputs = inputs._replace(operands=tuple(map(self._as_outside, inputs.operands)))
        asking = [operand for operand in inputs.operands if operand.state.requires_grad & YES]
        by, complete = dependences(op, inputs) if op is not None else ({}, False)
        perhaps = frozenset[int]() if complete else leaves.union(*map(_leaves, asking))
        perhaps = perhaps.union(
            *(
                leaves if operand is None else _leaves(operand)
                for found in by.values()
                for operand, _ in found
            )
        )
        kept = [
            (
                frozenset[int]().union(*(_leaves(o) for o in asking if o.parameter == parameter)),
                [
                    leaves if operand is None else _leaves(operand)
                    for operand, sure in found
                    if sure and (operand is None or operand.state.requires_grad == YES)
                ],
            )
            for parameter, found in by.items()
        ]
        again = address in self._perhaps
        self._perhaps[address] = perhaps | self._perhaps.get(address, frozenset())
        self._surely[address] = [] if again else kept

    def asks(self, m: Machine, value: Tensor, inner: Ref, given: dict[int, int]) -> int:
        """Whether the derivative of a value requires grad, taken for an inner tensor.

        `given` is whether the arguments for which the inner leaves stand require grad themselves.
        """
        state = m.cells[inner.address]
        way = leading_to(reachable(m, value.nodes), [state])
        perhaps = self._outside.union(at for at, truth in given.items() if truth & YES)
        perhaps |= self._constants.keys() | {-at for at in self._constants}
        if all(at in self._perhaps and not self._perhaps[at] & perhaps for at in way):
            return NO
        if gives_zero(m, way):
            return MAYBE
        surely = self._outside.union(at for at, truth in (given | self._constants).items() if truth == YES)
        between = surely_between(m, value, frozenset({inner.address}))
        own = inner.address
        return YES if any(_all_on(self._surely.get(at, []), own, surely) for at in between) else MAYBE


def _all_on(kept: list[Kept], own: int, theirs: Leaves) -> bool:
    """Whether each gradient of an op on a way to a leaf is computed from something that comes from theirs alone.

    What it may come from as well, the constants whose addresses are negative, takes nothing from that.
    """
    taken = [
        [{at for at in leaves if at >= 0} for leaves in found] for behind, found in kept if own in behind
    ]
    return bool(taken) and all(any(leaves and leaves <= theirs for leaves in found) for found in taken)


def _leaves(operand: Operand) -> Leaves:
    return operand.state.leaves or _UNKNOWN
