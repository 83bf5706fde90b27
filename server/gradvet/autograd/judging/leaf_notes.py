"""Leaves whose name was given away: a finding where the leaf is missed afterwards."""

import ast
from dataclasses import dataclass, field

from gradvet.autograd.events_leaf import LeafRebound
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import NO, Tensor
from gradvet.autograd.memory.values import Ref


@dataclass(slots=True)
class LeafNotes:
    """Which tensors took the name of the leaf that they were computed from."""

    machine: Machine
    rebound: dict[int, LeafRebound] = field(default_factory=dict)
    cuts: dict[int, LeafRebound] = field(default_factory=dict)
    told: set[ast.AST] = field(default_factory=set)

    def took_the_name(self, ref: Ref, event: LeafRebound, cut: int | None) -> None:
        """A computed tensor is bound to the name of a leaf; nothing is wrong until the leaf is missed."""
        self.rebound[ref.address & ~1] = event
        if cut is not None:
            self.cuts[cut] = event

    def grad_read(self, ref: Ref, state: Tensor, site: ast.AST) -> bool:
        """`.grad` is read of a tensor: one that took a leaf's name has none. Whether that is told here."""
        event = self.rebound.get(ref.address & ~1)
        if event is None or NO not in (state.is_leaf, state.requires_grad):
            return False
        self.tell(event, site)
        return True

    def without_graph(self, root: Tensor, site: ast.AST) -> None:
        """A backward has nothing to go back through."""
        for cut in root.cuts & self.cuts.keys():
            self.tell(self.cuts[cut], site)

    def tell(self, event: LeafRebound, site: ast.AST | None) -> None:
        """The leaf is missed here."""
        if event.node not in self.told:
            self.told.add(event.node)
            self.machine.emit(LeafRebound(event.node, event.calls, event.name, event.recorded, site))
