"""Graphs that `retain_graph=True` keeps, and whether another backward goes through them."""

import ast
from dataclasses import dataclass, field

from gradvet.autograd.events import Backward, CutPath, RetainUnneeded
from gradvet.autograd.graph import UNKNOWN, reachable
from gradvet.autograd.held import held_tensors
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import NO, YES, Node, Tensor
from gradvet.autograd.memory.values import Value

Calls = tuple[ast.AST, ...]


@dataclass(slots=True)
class Retaining:
    """A call that retains its graph, by the place where it is written."""

    calls: Calls
    root: Tensor
    alone: bool
    needed: bool = False


@dataclass(slots=True)
class RetainNotes:
    """Which nodes are kept by which calls; a later backward that may go through one of them needs it."""

    machine: Machine
    sites: dict[ast.AST, Retaining] = field(default_factory=dict)
    kept: dict[int, set[ast.AST]] = field(default_factory=dict)
    linked: dict[int, set[ast.AST]] = field(default_factory=dict)

    def made(self, address: int, node: Node) -> None:
        """A node was made anew: what goes through it goes through those of its inputs that are kept.

        It is not the one that was kept itself; and its older namesakes are no longer told from it.
        """
        if not self.kept:
            return
        behind = [self.kept[at] for at in node.inputs if at in self.kept]
        if behind:
            self.linked.setdefault(address & ~1, set()).update(*behind)
        self.kept.pop(address & ~1, None)
        self.kept.pop(address | 1, None)

    def end_of_pass(self, born: set[int]) -> None:
        """What an iteration has kept is from now on of an earlier one."""
        for address in [at for at in self.kept if at in born and not at & 1]:
            self.kept.setdefault(address | 1, set()).update(self.kept.pop(address))

    def passed(self, site: ast.AST, root: Tensor, *, keeps: bool) -> None:
        """A backward may go through all that leads to `root`; `autograd.grad` is not asked how far it goes."""
        m = self.machine
        retains = keeps and _retains(site)
        if not self.sites and not retains:
            return
        found = reachable(m, root.nodes)
        for address in found:
            for other in (*self.kept.get(address, ()), *self.linked.get(address & ~1, ())):
                self.sites[other].needed = True
        if not retains:
            return
        known = self.sites.setdefault(site, Retaining(m.where(), root, m.alone))
        known.alone = known.alone and m.alone
        keeping = any(node.keeps & YES for node in found.values())
        # What is not known, an argument say, may belong to a graph that goes on elsewhere.
        if any(node.name == UNKNOWN for node in found.values()) or not keeping:
            known.needed = True
        # A comprehension is run once for all its turns: each comes to what was made outside.
        turns = [loop.allocs for loop in m.loops if not loop.number]
        if any(address not in born for address in found for born in turns):
            known.needed = True
        for address in found:
            self.kept.setdefault(address, set()).add(site)

    def failed(self) -> None:
        """A backward found no graph: what was to be gone through again is not known."""
        for known in self.sites.values():
            known.needed = True

    def handed_over(self, values: tuple[Value, ...]) -> None:
        """Something that is not known gets these values, and may run a backward of what was kept."""
        m = self.machine
        for value in values:
            for _, state in held_tensors(m, value):
                for address in self.kept.keys() & reachable(m, state.nodes).keys():
                    for site in self.kept[address]:
                        self.sites[site].needed = True

    def conclude(self, escaped: set[int]) -> None:
        """Tell of those that nobody needed."""
        m = self.machine
        if not self.sites or m.cut_short:
            return
        if any(type(event) is Backward and event.root.requires_grad == NO for event in m.events):
            return  # a backward raises since its way is cut: nobody knows what it was to go through
        for address, sites in self.kept.items():
            if address in escaped or address | 1 in escaped:
                for site in sites:
                    self.sites[site].needed = True
        for site, known in self.sites.items():
            if not known.needed:
                m.emit(RetainUnneeded(site, known.calls, known.root, known.alone))


def told_as_cuts(m: Machine) -> None:
    """That `create_graph` was meant where `retain_graph` stands is told there already."""
    cut = {event.node for event in m.events if isinstance(event, CutPath) and event.kind == "grad"}
    if cut:
        m.events[:] = [
            event for event in m.events if not (isinstance(event, RetainUnneeded) and event.node in cut)
        ]


def _retains(site: ast.AST) -> bool:
    """Whether a call says `retain_graph=True` and asks for no graph of the gradients."""
    if not isinstance(site, ast.Call) or any(k.arg == "create_graph" for k in site.keywords):
        return False
    return any(
        k.arg == "retain_graph" and isinstance(k.value, ast.Constant) and k.value.value is True
        for k in site.keywords
    )
