"""Parameters that came to a module, or began to train, after an optimizer had taken its parameters."""

import ast
from collections.abc import Container
from dataclasses import dataclass, field
from typing import NamedTuple

from gradvet.autograd.events_leaf import OptimizerMisses
from gradvet.autograd.library.layers import is_module, members
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import NO, YES, Tensor
from gradvet.autograd.memory.values import Instance, Layer, Optimizer, Ref


class Taken(NamedTuple):
    """An optimizer as it was made: the modules whose parameters it took, with the flag of each parameter."""

    site: ast.AST
    calls: tuple[ast.AST, ...]
    modules: dict[Ref, dict[int, int]]


@dataclass(slots=True)
class OptimizerNotes:
    """What each optimizer was given, for a judgement at the end of the run."""

    machine: Machine
    taken: dict[ast.AST, Taken] = field(default_factory=dict)

    def made(self, content: Optimizer, site: ast.AST) -> None:
        """An optimizer is made: note the modules that it takes whole."""
        m = self.machine
        found: dict[Ref, dict[int, int]] = {}
        for address, held in list(m.cells.items()) if content.owns and content.all_known else ():
            if (
                type(address) is not int
                or type(held) not in (Instance, Layer)
                or not is_module(m, Ref(address))
            ):
                continue
            leaves = {
                leaf.address: self._flag(leaf.address) for _, leaf in members(m, Ref(address)).parameters
            }
            training = {leaf for leaf, flag in leaves.items() if flag == YES}
            if training and training <= content.owns:
                found[Ref(address)] = leaves
        self.taken[site] = Taken(site, m.where(), found)

    def _flag(self, leaf: int) -> int:
        state = self.machine.cells.get(leaf)
        return state.requires_grad if type(state) is Tensor and not state.assumes else 0

    def conclude(
        self, optimizers: list[tuple[Ref, Optimizer, ast.AST]], reached: set[int], forced: Container[int]
    ) -> None:
        """Emit the optimizers that miss parameters which a backward reached; forced leaves are no such parameters."""
        m = self.machine
        contents = [m.cells.get(ref.address) for ref, _, _ in optimizers]
        owners = [content for content in contents if type(content) is Optimizer]
        if any(not content.all_known for content in owners):
            return
        owned = {leaf & ~1 for content in owners for leaf in content.owns}
        for taken in self.taken.values():
            missed: dict[int, str] = {}
            late = False
            for module, flags in taken.modules.items():
                for path, leaf in members(m, module).parameters:
                    if (
                        leaf.address & ~1 in owned
                        or leaf.address not in reached
                        or leaf.address & ~1 in forced
                    ):
                        continue
                    if self._flag(leaf.address) == YES and flags.get(leaf.address, NO) == NO:
                        late |= leaf.address in flags
                        known = missed.get(leaf.address, "")
                        missed[leaf.address] = path if len(path) > len(known) else known
            if missed:
                place = None if late else m.site_of(next(iter(missed)))
                names = tuple(sorted(missed.values()))
                m.emit(OptimizerMisses(taken.site, taken.calls, names, place, late))
