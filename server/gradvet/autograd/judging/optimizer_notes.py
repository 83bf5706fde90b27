"""Parameters that came to a module, or began to train, after an optimizer had taken its parameters."""

import ast
from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gradvet.autograd.events import Backward
from gradvet.autograd.events_leaf import OptimizerMisses
from gradvet.autograd.library.layers import is_module, members
from gradvet.autograd.library.open_modules import OTHERS, readable
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import NO, YES, Tensor
from gradvet.autograd.memory.gradients import CLEAR
from gradvet.autograd.memory.values import NONE, Instance, Layer, Optimizer, Ref

_WRITTEN_OUT = frozenset({"torch.tensor()", "torch.as_tensor()", "torch.from_numpy()"})
"""What gives values of their own to what they make."""


class Taken(NamedTuple):
    """An optimizer as it was made: the modules whose parameters it took, with the flag of each parameter.

    `frozen` are the parameters of modules that were frozen as a whole just then.
    """

    site: ast.AST
    calls: tuple[ast.AST, ...]
    modules: dict[Ref, dict[int, int]]
    frozen: set[int]


@dataclass(slots=True)
class OptimizerNotes:
    """What each optimizer was given, for a judgement at the end of the run."""

    machine: Machine
    taken: dict[ast.AST, Taken] = field(default_factory=dict)
    moved: set[int] = field(default_factory=set)
    """What is changed by hand once its module is made."""
    frozen: dict[int, ast.AST] = field(default_factory=dict)
    """By optimizer the first of its steps, none of which had anything to move."""
    moving: set[int] = field(default_factory=set)

    def made(self, content: Optimizer, site: ast.AST, present: Iterable[tuple[Any, Any]]) -> None:
        """An optimizer is made: note the modules that it takes whole, of those in cells that are present."""
        m = self.machine
        found: dict[Ref, dict[int, int]] = {}
        frozen = set[int]()
        for address, held in present if content.owns and content.all_known else ():
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
            elif all(flag == NO for flag in leaves.values()):
                frozen |= {leaf & ~1 for leaf in leaves}
        self.taken[site] = Taken(site, m.where(), found, frozen)

    def parted(self, whole: int, part: int) -> None:
        """Some of the parameters for which a leaf stands are looked at by themselves."""
        for taken in self.taken.values():
            for flags in taken.modules.values():
                if whole in flags:
                    flags.setdefault(part, flags[whole])
            if whole & ~1 in taken.frozen:
                taken.frozen.add(part & ~1)

    def stepped(self, optimizer: Ref, content: object, site: ast.AST) -> None:
        """An optimizer makes a step: on nothing, where all that it has is frozen and holds no gradient from before."""
        if type(content) is not Optimizer or optimizer.address in self.moving:
            return
        cells = self.machine.cells
        idle = bool(content.owns) and content.all_known
        if idle and all(
            self._flag(leaf) == NO and cells.get((leaf, "grad"), NONE) == NONE for leaf in content.owns
        ):
            self.frozen.setdefault(optimizer.address, site)
        else:
            self.moving.add(optimizer.address)

    def edited(self, state: Tensor) -> None:
        """A tensor was changed in place; in a constructor it is only filled."""
        if not any(getattr(frame.node, "name", "") == "__init__" for frame in self.machine.frames):
            self.moved |= {at & ~1 for at in state.storage}

    def _flag(self, leaf: int) -> int:
        state = self.machine.cells.get(leaf)
        return state.requires_grad if type(state) is Tensor and not state.assumes else 0

    def conclude(
        self, optimizers: list[tuple[Ref, Optimizer, ast.AST]], reached: set[int], forced: Container[int]
    ) -> None:
        """Emit the optimizers that miss parameters which a backward reached; forced leaves are no such parameters."""
        m = self.machine
        # One that is made in a loop is an older one at the end; what it was given when it was made is known.
        contents = [(m.cells.get(ref.address), made) for ref, made, _ in optimizers]
        owners = [now if type(now) is Optimizer else made for now, made in contents]
        if any(not content.all_known for content in owners):
            return
        owned = {leaf & ~1 for content in owners for leaf in content.owns}
        others = self._others({ref.address & ~1 for ref, _, _ in optimizers})
        owned |= {leaf & ~1 for leaf in reached if others and self._has_another(leaf, others)}
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
                    # A thaw that waits for its epoch is one nevertheless.
                    thawed = self._flag(leaf.address) & YES and leaf.address in flags
                    thawed = thawed and leaf.address & ~1 in m.judge.freezes.ever_asked
                    if (thawed or self._flag(leaf.address) == YES) and flags.get(leaf.address, NO) == NO:
                        late |= leaf.address in flags
                        known = missed.get(leaf.address, "")
                        missed[leaf.address] = path if len(path) > len(known) else known
            if missed:
                place = None if late else m.site_of(next(iter(missed)))
                called = m.judge.leaf_names
                names = tuple(
                    sorted(
                        (called.get(leaf) or OTHERS) if path == OTHERS else readable(path)
                        for leaf, path in missed.items()
                    )
                )
                m.emit(OptimizerMisses(taken.site, taken.calls, names, place, late))
        if not any(type(event) is OptimizerMisses for event in m.events):
            self._thawed(optimizers, reached, owned)
        if not any(type(event) is OptimizerMisses for event in m.events):
            still = {leaf & ~1 for now, _ in contents if type(now) is Optimizer for leaf in now.owns}
            self._mistaken(optimizers, reached, still, forced)
        if not any(type(event) is OptimizerMisses for event in m.events):
            self._left_out(optimizers, owned)
        if not any(type(event) is Backward and event.root.requires_grad == NO for event in m.events):
            self._all_frozen(optimizers)

    def _others(self, known: set[int]) -> list[tuple[ast.AST | None, frozenset[int]]]:
        """The optimizers made elsewhere that make steps: by which function that is run by itself, and with what."""
        protocol = self.machine.judge.protocol
        return [
            (
                protocol.sites[step.number].begins,
                frozenset(leaf & ~1 for leaf in protocol.given_to(step.optimizer)),
            )
            for step in protocol.steps
            if step.optimizer & ~1 not in known and not step.manual
        ]

    def _has_another(self, leaf: int, others: list[tuple[ast.AST | None, frozenset[int]]]) -> bool:
        """Whether an optimizer that is made elsewhere may have a parameter: it steps where a backward fills its gradient."""
        protocol = self.machine.judge.protocol
        filled = {protocol.sites[number].begins for number in protocol.fills.get(leaf & ~1, ())}
        return any(begins in filled and (not given or leaf & ~1 in given) for begins, given in others)

    def _thawed(
        self, optimizers: list[tuple[Ref, Optimizer, ast.AST]], reached: set[int], owned: set[int]
    ) -> None:
        """Emit the optimizer beside which a whole module was frozen that was made to train later, and that has none of it.

        A backward fills the gradients of both, and nobody reads those of the module.
        """
        m = self.machine
        if m.judge is None:
            return
        protocol, flow = m.judge.protocol, m.judge.flow
        used = owned | flow.read | flow.followers.keys() | {at & ~1 for at in protocol.by_hand | self.moved}
        asked = {leaf for leaf in m.judge.freezes.asked if leaf not in used and leaf in protocol.fills}
        asked &= {leaf & ~1 for leaf in reached}
        for ref, _, site in optimizers:
            taken = self.taken.get(site)
            missed = asked & taken.frozen if taken is not None else set()
            numbers = {number for leaf in missed for number in protocol.fills[leaf]}
            steps = [step for step in protocol.steps if step.optimizer == ref.address]
            if taken is not None and any(numbers & g.backwards for step in steps for g in step.gradients):
                names = parameter_names(m, missed)
                m.emit(OptimizerMisses(site, taken.calls, names, None, late=True))
                return

    def _all_frozen(self, optimizers: list[tuple[Ref, Optimizer, ast.AST]]) -> None:
        """Emit the optimizers that only ever step on frozen parameters; where a backward raises, that is told."""
        m = self.machine
        for ref, content, site in {
            ref.address: (ref, content, site) for ref, content, site in optimizers
        }.values():
            step = self.frozen.get(ref.address)
            if step is None or ref.address in self.moving:
                continue
            names = parameter_names(m, {leaf & ~1 for leaf in content.owns})
            m.emit(OptimizerMisses(site, m.calls_of.get(site, ()), names, step, True, frozen=True))

    def _mistaken(
        self,
        optimizers: list[tuple[Ref, Optimizer, ast.AST]],
        reached: set[int],
        owned: set[int],
        forced: Container[int],
    ) -> None:
        """Emit the optimizers that step and have nothing to step with, or the same as another, while others have none."""
        m = self.machine
        left = {
            leaf & ~1
            for leaf in reached
            if leaf & ~1 not in owned and leaf & ~1 not in forced and self._trains(leaf)
        }
        protocol = m.judge.protocol if m.judge is not None else None
        if not left or protocol is None:
            return
        cut = {leaf & ~1 for info in m.cuts for leaf in info.leaves}
        sites = {ref.address: (ref, site) for ref, _, site in optimizers}
        seen: dict[frozenset[int], tuple[ast.AST, set[ast.AST]]] = {}
        for ref, site in sites.values():
            content = m.cells.get(ref.address)
            if type(content) is not Optimizer or not content.owns or ref.address not in protocol.stepped:
                continue
            own = frozenset(leaf & ~1 for leaf in content.owns)
            steps = [step for step in protocol.steps if step.leaves == content.owns]
            stepped = {
                protocol.sites[step.number].node for step in protocol.steps if step.optimizer == ref.address
            }
            twin, other_steps = seen.setdefault(own, (site, stepped))
            empty = bool(steps) and all(g.phases == CLEAR for step in steps for g in step.gradients)
            idle = empty and own.isdisjoint(cut) and own.isdisjoint(protocol.reads)
            idle = idle and not any(leaf & ~1 in own for leaf in reached) and all(map(self._trains, own))
            # Those that step in one place are never two: one is used in the other's stead.
            if idle or (twin is not site and stepped.isdisjoint(other_steps)):
                place = protocol.sites[steps[-1].number].node if idle else None
                calls = m.calls_of.get(site, ())
                other = None if idle else twin
                m.emit(OptimizerMisses(site, calls, parameter_names(m, left), place, False, idle, other))
                return

    def _left_out(self, optimizers: list[tuple[Ref, Optimizer, ast.AST]], owned: set[int]) -> None:
        """Emit the optimizer whose losses train a module of nothing but parameters of its own, and that has none of them.

        What has layers, or is a part of what has, may be a network that is only looked through; proxies and centers
        of losses are to be learnt.
        """
        m = self.machine
        if m.judge is None or not m.judge.flow.stepped:
            return
        protocol, flow = m.judge.protocol, m.judge.flow
        touched = owned | flow.read | flow.followers.keys() | {at & ~1 for at in protocol.by_hand}
        touched |= {at & ~1 for clear in protocol.clears for at in clear.leaves}
        for address, held in list(m.cells.items()):
            if type(address) is not int or type(held) is not Instance or not is_module(m, Ref(address)):
                continue
            inside = members(m, Ref(address))
            leaves = {leaf.address & ~1 for _, leaf in inside.parameters}
            if not leaves or len(inside.modules) > 1 or not leaves.isdisjoint(touched):
                continue
            if not all(
                self._trains(leaf) and leaf in protocol.fills and self._is_to_learn(leaf) for leaf in leaves
            ) or self._is_part_of_more(address, leaves, owned):
                continue
            numbers = {number for leaf in leaves for number in protocol.fills[leaf]}
            for ref, _, site in optimizers:
                steps = [step for step in protocol.steps if step.optimizer == ref.address]
                if any(numbers & g.backwards for step in steps for g in step.gradients):
                    place = m.site_of(min(leaves))
                    names = parameter_names(m, leaves)
                    m.emit(OptimizerMisses(site, m.calls_of.get(site, ()), names, place, False, outside=True))
                    return

    def _is_part_of_more(self, module: int, leaves: set[int], owned: set[int]) -> bool:
        """Whether a module stands in one with more parameters that no optimizer has."""
        m = self.machine
        for address, held in m.cells.items():
            if type(address) is not int or address == module or type(held) not in (Instance, Layer):
                continue
            if is_module(m, Ref(address)):
                around = {leaf.address & ~1 for _, leaf in members(m, Ref(address)).parameters}
                if leaves < around and not around - leaves <= owned:
                    return True
        return False

    def _is_to_learn(self, leaf: int) -> bool:
        """Whether a parameter begins with something that was drawn or filled, and nothing else moves it.

        What is written out is a mean or a kernel; what is changed by hand is an average.
        """
        cells = self.machine.cells
        state = cells.get(leaf)
        sources = [cells.get(at) for at in state.storage] if type(state) is Tensor else []
        moved = type(state) is Tensor and any(at & ~1 in self.moved for at in state.storage)
        return (
            bool(sources)
            and not moved
            and not any(
                type(source) is Tensor and source.origin is not None and source.origin.text in _WRITTEN_OUT
                for source in sources
            )
        )

    def _trains(self, leaf: int) -> bool:
        # What was made in a loop's last iteration is one of the older ones when the loop has ended.
        cells = self.machine.cells
        at = leaf if leaf in cells else leaf | 1
        state = cells.get(at)
        return type(state) is Tensor and state.parameter == YES and self._flag(at) == YES


def parameter_names(m: Machine, leaves: Iterable[int]) -> tuple[str, ...]:
    """The names of parameters, by the attribute or variable that holds their module; what has none is left out."""
    wanted, found = {leaf & ~1 for leaf in leaves}, dict[int, str]()
    for key, value in list(m.cells.items()) if wanted else ():
        if type(value) is not Ref or type(key) is not tuple or str(key[1]).startswith(("#", "[")):
            continue
        for path, leaf in members(m, value).parameters if is_module(m, value) else ():
            name = readable(f"{key[1]}.{path}")
            if leaf.address & ~1 in wanted and key[1] != "self":
                found[leaf.address & ~1] = max(found.get(leaf.address & ~1, ""), name, key=len)
    known = m.judge.leaf_names if m.judge is not None else {}
    names = [max(found.get(leaf, ""), known.get(leaf, ""), key=len) for leaf in wanted]
    return tuple(sorted(filter(None, names)))
