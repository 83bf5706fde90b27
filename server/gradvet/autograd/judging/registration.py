"""Parameters that a module uses and does not know of: in plain containers, as plain tensors, made in its forward."""

import ast
from dataclasses import dataclass, field

from gradvet.autograd.events_leaf import Unregistered
from gradvet.autograd.library.layers import is_module, members
from gradvet.autograd.library.leaves import MOVES
from gradvet.autograd.library.storages import version_of
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import GRAD, YES, Node, Tensor
from gradvet.autograd.memory.values import (
    Dict,
    Each,
    Instance,
    Layer,
    Optimizer,
    Ref,
    Sequence,
    Tuple,
    Union,
    Value,
    atoms,
    refs,
)
from gradvet.syntax.tree import walk

MOST_DEEP = 3


@dataclass(slots=True)
class Registration:
    """What the run tells of modules and their attributes, for a judgement at its end."""

    machine: Machine
    sites: dict[tuple[int, str], tuple[ast.AST, tuple[ast.AST, ...]]] = field(default_factory=dict)
    called: dict[int, ast.AST] = field(default_factory=dict)
    wanted: set[int] = field(default_factory=set)
    used: set[int] = field(default_factory=set)
    gone_on: set[int] = field(default_factory=set)

    def stored(self, site: ast.AST, holder: Ref, how: str) -> None:
        """An attribute of an object was set."""
        if isinstance(site, (ast.Assign, ast.AnnAssign)):
            self.sites[(holder.address & ~1, how)] = (site, self.machine.where())

    def module_called(self, ref: Ref, site: ast.AST) -> None:
        """A module is called while autograd may record."""
        if self.machine.mode & GRAD:
            self.called.setdefault(ref.address & ~1, site)

    def conclude(
        self, optimizers: list[tuple[Ref, Optimizer, ast.AST]], reached: set[int], wanted: set[int]
    ) -> None:
        """Emit what modules use and do not list."""
        m = self.machine
        owned = {leaf & ~1 for _, optimizer, _ in optimizers for leaf in optimizer.owns}
        reached = {leaf & ~1 for leaf in reached}
        instances = [
            (Ref(address), content)
            for address, content in list(m.cells.items())
            if type(address) is int and type(content) is Instance and m.classes[content.owner].is_module
        ]
        known = owned | {leaf & ~1 for ref, _ in instances for leaf in self._registered(ref)}
        nodes = [node for node in m.cells.values() if type(node) is Node]
        self.used = {leaf & ~1 for node in nodes for leaf in node.leaves}
        self.gone_on = {at & ~1 for node in nodes for at in node.inputs}
        self.wanted = wanted | self._listed(instances)
        told: set[ast.AST] = set()
        for ref, content in instances:
            trains = any(leaf & ~1 in owned for leaf in self._registered(ref))
            for name in m.attributes.get(ref.address & ~1, ()):
                value = m.cells.get((ref.address, name))
                place = self.sites.get((ref.address & ~1, name))
                if value is None or place is None or place[0] in told or name.startswith("#"):
                    continue
                found = self._in_container(value, known) or self._as_tensor(value, known)
                if found is None:
                    continue
                kind, container, leaves, use, certain = found
                told.add(place[0])
                owner, given = m.classes[content.owner].name, getattr(place[0], "value", None)
                trained = trains and bool(leaves) and leaves <= reached
                m.emit(Unregistered(*place, kind, container, name, owner, given, use, trained, certain))
        self._locals(known, told)

    def _registered(self, ref: Ref) -> list[int]:
        return [leaf.address for _, leaf in members(self.machine, ref).parameters]

    def _listed(self, instances: list[tuple[Ref, Instance]]) -> set[int]:
        """The leaves that objects have in lists of their own besides: by these they are handed out to be trained."""
        cells = self.machine.cells
        lists = [
            cells.get(getattr(cells.get((ref.address, name)), "address", -1))
            for ref, _ in instances
            for name in self.machine.attributes.get(ref.address & ~1, ())
        ]
        parts = [
            part
            for content in lists
            if type(content) is Sequence
            for part in (*(content.items or ()), content.rest)
        ]
        return {ref.address & ~1 for part in parts if part is not None for ref in refs(part)}

    # -- plain containers

    def _in_container(
        self, value: Value, known: set[int]
    ) -> tuple[str, str, set[int], ast.AST | None, bool] | None:
        """Modules or parameters in a list, tuple or dict, of which no module and no optimizer knows."""
        m = self.machine
        container, items = self._items(value)
        if not container or len(items) == 1:  # one thing in a list: that is how a module is hidden on purpose
            return None
        found: set[int] = set()
        uses: list[ast.AST] = []
        kinds = set()
        for item in items:
            for ref in refs(item):
                content = m.cells.get(ref.address)
                if type(content) is Tensor and content.parameter == YES:
                    kinds.add("parameters")
                    leaves = {ref.address}
                elif is_module(m, ref):
                    kinds.add("modules")
                    leaves = {leaf.address for _, leaf in members(m, ref).parameters}
                    uses += [self.called[ref.address & ~1]] if ref.address & ~1 in self.called else []
                else:
                    return None
                states = [m.cells.get(leaf) for leaf in leaves]
                if any(type(s) is not Tensor or s.assumes or s.requires_grad != YES for s in states):
                    return None
                found |= {leaf & ~1 for leaf in leaves}
        if len(kinds) != 1 or not found or found & known or not (uses or found <= self.used):
            return None
        return kinds.pop(), container, found, uses[0] if uses else None, True

    def _items(self, value: Value, depth: int = 0) -> tuple[str, list[Value]]:
        """The kind of a plain container, and what is in it, also in containers inside."""
        m = self.machine
        content = m.cells.get(getattr(value, "address", -1))
        items: list[Value] = []
        if type(value) is Tuple:
            container, items = "tuple", list(value.items)
        elif type(content) is Sequence and content.kind in ("list", "tuple"):
            container, items = (
                content.kind,
                [v for v in (*(content.items or ()), content.rest) if v is not None],
            )
            if content.rest is not None:
                items.append(content.rest)  # one element that stands for many
        elif type(content) is Dict and content.kind == "dict":
            container = "dict"
            items = [v for _, v in content.items] + ([content.rest] * 2 if content.rest is not None else [])
        else:
            return "", []
        flat: list[Value] = []
        for item in items:
            inner = self._items(item, depth + 1)[1] if depth < MOST_DEEP else []
            flat += inner or [item]
        return container, flat

    # -- tensors

    def _as_tensor(
        self, value: Value, known: set[int]
    ) -> tuple[str, str, set[int], ast.AST | None, bool] | None:
        """A tensor that requires grad and is no Parameter."""
        m = self.machine
        if type(value) not in (Ref, Union, Each):
            return None
        states = m.tensors(value)
        if not states or len(states) != len(atoms(value)):
            return None
        computed = self._made_of_leaf([s for _, s in states], known)
        if computed is not None:
            return "tensor", "", computed, None, True
        if any(s.assumes for _, s in states):
            return None
        if all(s.parameter & YES for _, s in states) or any(not s.requires_grad & YES for _, s in states):
            return None
        moved = [s for _, s in states if s.origin is not None and s.origin.text in MOVES]
        if moved:  # what is moved to what it was before is the leaf no more
            moved += [s for _, s in states if s.origin is not None and s.origin.text == "float()"]
        if len(states) == 1 and states[0][1].is_leaf == YES:
            if states[0][1].requires_grad != YES:
                return None
            address = states[0][0].address & ~1
            free = address not in known | self.wanted and address in self.used
            return ("tensor", "", {address}, None, True) if free else None
        leaves = {leaf & ~1 for _, s in states for leaf in s.leaves}
        source = [m.cells.get(leaf) for leaf in leaves]
        if not leaves or not all(type(s) is Tensor and s.parameter & YES for s in source):
            return None
        plain = [s for _, s in states if not s.parameter & YES]
        itself = leaves & {ref.address & ~1 for ref, s in states if s.parameter & YES}
        if itself and moved and len(moved) == len(plain):
            return "converted", "", leaves, None, False
        fresh = len(leaves) == 1 and not leaves & known and self._is_fresh(plain[0])
        return ("converted", "", leaves, None, True) if fresh else None

    def _made_of_leaf(self, states: list[Tensor], known: set[int]) -> set[int] | None:
        """The leaf, made in the very expression and held by nothing else, that a tensor was moved or computed from.

        Where the move has nothing to do it gives the leaf itself, and that is no Parameter either.
        """
        leaves = {leaf & ~1 for s in states for leaf in s.leaves}
        if len(leaves) != 1 or any(not s.requires_grad & YES or s.parameter & YES for s in states):
            return None
        leaf = self.machine.cells.get(min(leaves))
        outer = [s.origin for s in states if s.origin is not None and s.is_leaf != YES]
        if (
            type(leaf) is not Tensor
            or leaf.requires_grad != YES
            or leaf.origin is None
            or leaf.parameter & YES
        ):
            return None
        inside = any(part is leaf.origin.node for origin in outer for part in walk(origin.node))
        gone_on = any(at & ~1 in self.gone_on for s in states for at in s.nodes)
        return leaves if inside and gone_on and not leaves & (known | self.wanted) else None

    def _is_fresh(self, state: Tensor) -> bool:
        """Whether the Parameter that a tensor was computed from was made in the very expression."""
        origin = state.origin
        inner = origin.inputs[0] if origin is not None and len(origin.inputs) == 1 else None
        return (
            inner is not None
            and inner.text == "nn.Parameter"
            and any(part is inner.node for part in walk(origin.node))  # type: ignore[union-attr]
        )

    # -- modules made by a forward

    def _locals(self, known: set[int], told: set[ast.AST]) -> None:
        """Modules that a forward makes and calls: they have new weights each time."""
        m = self.machine
        made = {
            call
            for info in m.classes.values()
            if info.is_module
            for method in info.defines("forward")
            for call in walk(method)
            if isinstance(call, ast.Call)
        }
        for address, content in list(m.cells.items()):
            if type(address) is not int or type(content) is not Layer or not content.parameters:
                continue
            site = m.site_of(address)
            leaves = {leaf & ~1 for _, leaf in content.parameters}
            use = self.called.get(address & ~1)
            if site not in made or site in told or use is None or leaves & known or leaves & self.wanted:
                continue
            states = [m.cells.get(leaf) for _, leaf in content.parameters]
            if any(
                type(s) is not Tensor or s.requires_grad != YES or any(version_of(m, at) for at in s.storage)
                for s in states
            ):
                continue  # frozen, or given its values: a fixed filter
            told.add(site)
            place = site, m.calls_of.get(site, ())
            m.emit(Unregistered(*place, "local", "", "", "forward", None, use, trained=False, certain=True))
