"""A recurrent cell whose state is detached in each step: no gradient comes from one step to the step before.

A layer that goes through a whole window by itself may well be given a detached state for each.
"""

import ast
from dataclasses import dataclass, field

from gradvet.autograd.events_flow import StateCut
from gradvet.autograd.graph import reachable
from gradvet.autograd.held import held_tensors
from gradvet.autograd.machine import Loop, Machine
from gradvet.autograd.memory.domain import NO, YES
from gradvet.autograd.memory.values import Value


@dataclass(slots=True)
class Step:
    """A call of a cell with a state that it gave itself, and that was cut in the same loop."""

    site: ast.AST
    loop: Loop
    nodes: set[int]


@dataclass(slots=True)
class Recurrences:
    """Where states are cut, and which cells take them then."""

    machine: Machine
    cut_in: dict[int, Loop] = field(default_factory=dict)
    found: dict[int, Step] = field(default_factory=dict)
    whole: set[ast.AST] = field(default_factory=set)

    def cut(self, number: int) -> None:
        """A tensor was detached."""
        if self.machine.loops:
            self.cut_in[number] = self.machine.loops[-1]

    def called(self, site: ast.AST, state: Value, result: Value) -> None:
        """A cell was called with a state."""
        m = self.machine
        if not m.loops:
            return
        nodes = {at & ~1 for _, made in held_tensors(m, result) for at in made.nodes}
        for _, given in held_tensors(m, state):
            if given.requires_grad & YES:
                self.whole.add(site)  # at times the gradient passes: a window
            for number in given.cuts if given.requires_grad == NO else ():
                if self.cut_in.get(number) is m.loops[-1] and self._is_own(number, site):
                    step = self.found.setdefault(number, Step(site, m.loops[-1], set()))
                    step.nodes |= nodes

    def _is_own(self, number: int, site: ast.AST) -> bool:
        """Whether what was cut came from the cell's own call."""
        nodes = self.machine.cuts[number].nodes
        behind = reachable(self.machine, frozenset(at ^ age for at in nodes for age in (0, 1)))
        return any(node.node is site for node in behind.values())

    def conclude(self, used: dict[int, int]) -> None:
        """Tell the cuts in loops that end before a backward goes through what all their steps gave."""
        m = self.machine
        for number, step in self.found.items():
            if step.loop.trains or step.site in self.whole:
                continue
            if any(at in used or at | 1 in used for at in step.nodes):
                info = m.cuts[number]
                m.emit(StateCut(info.node, info.calls, step.site, step.loop.node))
