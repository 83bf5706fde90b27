"""Leaves whose name was given away: a finding where the leaf is missed afterwards."""

import ast
from dataclasses import dataclass, field
from typing import NamedTuple

from gradvet.autograd.events_flag import LateFlag
from gradvet.autograd.events_leaf import LeafRebound
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import NO, Tensor
from gradvet.autograd.memory.values import Ref
from gradvet.syntax.parents import Parents


class Late(NamedTuple):
    """Where a leaf was made to require grad, what had been computed with it, and how many backwards there were."""

    site: ast.AST
    used: frozenset[int]
    backwards: int


@dataclass(slots=True)
class LeafNotes:
    """Which tensors took the name of the leaf that they were computed from."""

    machine: Machine
    rebound: dict[int, LeafRebound] = field(default_factory=dict)
    cuts: dict[int, LeafRebound] = field(default_factory=dict)
    told: set[ast.AST] = field(default_factory=set)
    late: dict[int, Late] = field(default_factory=dict)
    missing: dict[ast.AST, tuple[tuple[ast.AST, ...], ast.AST, ast.AST]] = field(default_factory=dict)
    """By the place where a gradient is read that is missing, where the leaf was asked, and the backward."""

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

    def asked(self, ref: Ref, state: Tensor, site: ast.AST) -> None:
        """A tensor that is no parameter is made a leaf that requires grad: what was computed from it does not lead to it."""
        flow = self.machine.judge.flow
        used = {
            address
            for address, many in flow.told.items()
            if any(operand.state.storage & state.storage for one in many for operand in one.inputs.operands)
        }
        self.late.pop(ref.address, None)
        if used and not ref.address & 1:
            self.late[ref.address] = Late(site, frozenset(used), len(flow.backwards))

    def none_read(self, ref: Ref, site: ast.AST) -> None:
        """The gradient of a leaf is read that has none."""
        known = self.late.get(ref.address)
        if known is None:
            return
        for run in self.machine.judge.flow.backwards[known.backwards :]:
            if not known.used.isdisjoint(at & ~1 for at in run.seen):
                self.missing.setdefault(site, (self.machine.where(), known.site, run.site))

    def conclude(self, parents: Parents) -> None:
        """Tell of gradients that never come, but where it is only asked whether there is one."""
        for site, (calls, flag, backward) in self.missing.items():
            if isinstance(site, ast.Attribute) and not isinstance(
                parents.get(site), (ast.Compare, ast.If, ast.BoolOp, ast.UnaryOp)
            ):
                self.machine.emit(LateFlag(site, calls, site.value, flag, backward))

    def without_graph(self, root: Tensor, site: ast.AST) -> None:
        """A backward has nothing to go back through."""
        for cut in root.cuts & self.cuts.keys():
            self.tell(self.cuts[cut], site)

    def tell(self, event: LeafRebound, site: ast.AST | None) -> None:
        """The leaf is missed here."""
        if event.node not in self.told:
            self.told.add(event.node)
            self.machine.emit(LeafRebound(event.node, event.calls, event.name, event.recorded, site))
