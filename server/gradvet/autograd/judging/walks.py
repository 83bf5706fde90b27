"""What backward passes meet on their way: saved tensors that were changed since, and nodes freed before."""

import ast
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from gradvet.autograd.events import (
    CloneOutdated,
    CycleMade,
    GradientChanged,
    GraphFreed,
    LeafChanged,
    SavedChanged,
    StateCarried,
    ViewChanged,
)
from gradvet.autograd.graph import changed_key, node_key, reachable, surely_reached
from gradvet.autograd.held import held_tensors
from gradvet.autograd.judging.retains import RetainNotes
from gradvet.autograd.judging.retention import holder_words
from gradvet.autograd.judging.twice import Twice
from gradvet.autograd.knowledge.lookup import load
from gradvet.autograd.library.optimizers import extends_one
from gradvet.autograd.library.results import ALONE
from gradvet.autograd.library.storages import counts_with_source, saving
from gradvet.autograd.library.tensor_methods import in_forward
from gradvet.autograd.machine import Loop, Machine
from gradvet.autograd.memory.domain import GRAD, MAYBE, NO, YES, Node, Tensor
from gradvet.autograd.memory.values import NONE, Dict, Each, Ref, Sequence, Tuple, Union, Value, refs

Calls = tuple[ast.AST, ...]
ADDING = frozenset({"+", "+=", "add()", "add_()", "-", "-="})
MOST_ITEMS = 6


@dataclass(frozen=True, slots=True)
class Change:
    """A change in place: by an edit, or by an optimizer's step."""

    site: ast.AST
    calls: Calls
    tensor: Tensor
    target: ast.expr | None
    how: str
    maker: ast.AST | None
    alone: bool


@dataclass(frozen=True, slots=True)
class Visit:
    """A backward pass, by where it was run."""

    site: ast.AST
    calls: Calls


@dataclass(frozen=True, slots=True)
class Carrier:
    """What holds a graph from one iteration of a loop to the next: a name in a scope, or an attribute.

    `written` is where it was put into what the name holds, which was made before the loop.
    """

    key: tuple[int, str]
    loop: Loop
    node: ast.AST | None
    parts: int
    written: tuple[ast.AST, Calls] | None = None


@dataclass(slots=True)
class Walks:
    """Told of changes and of backward passes as they happen; each pass is judged at once."""

    machine: Machine
    changes: list[Change] = field(default_factory=list)
    numbers: dict[tuple[ast.AST, Calls], int] = field(default_factory=dict)
    freed_by: dict[int, Visit] = field(default_factory=dict)
    carriers: dict[int, list[Carrier]] = field(default_factory=dict)
    attributes: dict[tuple[int, str], tuple[ast.AST, Calls]] = field(default_factory=dict)
    items: dict[int, tuple[ast.AST, Calls, tuple[Loop, ...]]] = field(default_factory=dict)
    told: set[object] = field(default_factory=set)
    reads: dict[ast.AST, set[str]] = field(default_factory=dict)
    saved_by: dict[int, set[int]] = field(default_factory=dict)
    apart: dict[int, frozenset[int]] = field(default_factory=dict)
    """By node the storages that it saved through `.data` alone, which counts its changes by itself."""
    revived: dict[int, tuple[Carrier, ...]] = field(default_factory=dict)
    perhaps: int = 0
    clones: dict[int, set[int]] = field(default_factory=dict)
    given: dict[int, str] = field(default_factory=dict)
    created: dict[ast.AST, tuple[Calls, Tensor]] = field(default_factory=dict)
    together: set[int] | None = None
    retains: RetainNotes = field(init=False)
    twice: Twice = field(init=False)

    def __post_init__(self) -> None:
        """What is retained is noted apart, and so is what is differentiated twice."""
        self.retains = RetainNotes(self.machine)
        self.twice = Twice(self.machine)

    # -- changes

    def changed(
        self,
        site: ast.AST,
        value: Value,
        state: Tensor,
        target: ast.expr | None,
        how: str,
        maker: ast.AST | None = None,
        *,
        certain: bool = True,
    ) -> None:
        """A tensor is about to be changed in place; through `.data` and numpy nobody counts it.

        Nodes that saved it are spoiled from then on; for sure when it is certain which tensor is changed.
        """
        m = self.machine
        roles = {self.given.get(storage & ~1, "") for storage in state.storage}
        if len(roles) == 1 and "" not in roles and not self.perhaps:
            (role,) = roles
            m.emit(GradientChanged(site, m.where(), state, target, how, role, self._returned(site)))
        if not counts_with_source(state):
            return
        one = len(state.storage) == 1 or type(value) is Each
        sure = YES if certain and one and not self.perhaps else MAYBE
        bit = 0
        for leaf in state.leaves if self.clones and state.is_leaf == YES else ():
            self._outdate(leaf, sure)
        for storage in state.storage:
            for address, node in saving(m, storage):
                if YES in {node.spoiled, node.freed} or storage in self.apart.get(address & ~1, ()):
                    continue
                bit = bit or self._number(site, value, state, target, how, maker)
                spoiled = sure if not storage & 1 else MAYBE
                m.store.set(node_key(address), node._replace(spoiled=spoiled | (node.spoiled & YES)))
                m.store.set(changed_key(address), m.cells.get(changed_key(address), 0) | bit)

    def _outdate(self, leaf: int, sure: int) -> None:
        """What was cloned from a leaf is what the leaf was, from now on."""
        m = self.machine
        for at in self.clones.get(leaf & ~1, ()):
            for address in (at, at | 1):
                node = m.cells.get(node_key(address))
                if type(node) is Node and leaf in node.leaves and node.spoiled != YES:
                    one = sure if len(node.leaves) == 1 else MAYBE
                    m.store.set(node_key(address), node._replace(spoiled=one | (node.spoiled & YES)))

    def _returned(self, site: ast.AST) -> bool:
        """Whether the function that is being run returns just this."""
        function = self.machine.frames[-1].node
        if isinstance(function, ast.Lambda):
            return function.body is site
        return any(isinstance(node, ast.Return) and node.value is site for node in ast.walk(function))

    def _number(
        self,
        site: ast.AST,
        value: Value,
        state: Tensor,
        target: ast.expr | None,
        how: str,
        maker: ast.AST | None,
    ) -> int:
        """The bit that stands for a change."""
        key = (site, self.machine.where())
        if key not in self.numbers:
            self.numbers[key] = len(self.changes)
            alone = type(value) is Ref and how != "step()" and self._alone(state)
            self.changes.append(Change(site, key[1], state, target, how, maker, alone))
        return 1 << self.numbers[key]

    def _alone(self, state: Tensor) -> bool:
        """Whether at most one name, attribute or container holds a tensor or what shares its storage."""
        cells = self.machine.cells
        self.machine.charge(len(cells))
        known = ((at, cells.get(at)) for at in self.machine.store.sharing.on(state.storage))
        sharing = {at for at, t in known if type(t) is Tensor and t.storage & state.storage}
        holders = 0
        for key, value in cells.items():
            kind = type(value)
            if kind is Ref or kind is Union or kind is Each:
                if type(key) is not tuple or str(key[1]).startswith("#"):
                    continue
                parts: tuple[Value, ...] = (value,)
            elif kind is Sequence:
                parts = tuple(part for part in (*(value.items or ()), value.rest) if part is not None)
            elif kind is Dict:
                parts = tuple(part for _, part in value.items)
            else:
                continue
            holders += any(ref.address in sharing for part in parts for ref in refs(part))
            if holders > 1:
                return False
        return True

    def leaf_changed(
        self, site: ast.AST, state: Tensor, leaf: Tensor, target: ast.expr | None, how: str, *, asks: bool
    ) -> None:
        """A leaf that requires grad, or a view of one, is changed in place while autograd records."""
        m = self.machine
        again = (target, "leaf") in self.told  # `w.mul_(a).add_(b)`: it is told of the first
        self.told.add((site, "leaf"))
        if again or self.perhaps or (m.alone and not self._records()):
            return
        assumes = state.assumes | ALONE if m.alone else state.assumes
        state_here = state._replace(assumes=assumes)
        m.emit(LeafChanged(site, m.where(), state_here, leaf, target, how, leaf is not state, asks))

    def view_changed(self, site: ast.AST, state: Tensor, target: ast.expr | None, how: str) -> None:
        """A view that must not be changed in place is."""
        m = self.machine
        again = (target, "view") in self.told
        self.told.add((site, "view"))
        if not again and not self.perhaps:
            m.emit(ViewChanged(site, m.where(), state, target, how))

    def _records(self) -> bool:
        """Whether a function with callers elsewhere surely records: it is a forward, runs a backward, or is a step.

        Whoever calls `step()` of an optimizer leaves grad mode on.
        """
        m = self.machine
        outer = m.frames[1] if len(m.frames) > 1 else m.frames[0]
        owner = m.classes.get(outer.owner)
        if owner is not None and getattr(outer.node, "name", "") == "step" and extends_one(owner):
            return True
        return in_forward(m) or any("backward" in frame.info.attributes for frame in m.frames[1:])

    # -- what is carried from iteration to iteration

    def item_set(self, site: ast.AST, holder: Ref) -> None:
        """Remember where an item of a list or dict was last set, and in which loops."""
        if type(self.machine.cells.get(holder.address)) in (Dict, Sequence):
            self.items[holder.address & ~1] = (site, self.machine.where(), tuple(self.machine.loops))

    def attribute_set(self, site: ast.AST, holder: Ref, name: str) -> None:
        """Remember where an attribute was last set."""
        self.attributes[(holder.address & ~1, name)] = (site, self.machine.where())

    def end_of_pass(self, loop: Loop, node: ast.AST | None, born: set[int] | None = None) -> None:
        """Note what holds graphs of this iteration that the next one will see.

        `born` are the nodes made in it, when they are not to be renamed as the loop's own are.
        """
        m = self.machine
        fresh = loop.allocs if born is None else born
        self.retains.end_of_pass(fresh)
        for key, value in m.store.delta(loop.base).items():
            if type(key) is int and type(value) is Tensor and key & ~1 not in loop.allocs and value.has_graph:
                self._written(key, value, loop, node, fresh)
            if type(key) is int and type(value) in (Dict, Sequence) and key & ~1 not in loop.allocs:
                self._put_into(key, value, loop, node, fresh)
            if type(key) is not tuple or key[1].startswith("#") or key[1] == "grad":
                continue
            if type(value) not in (Ref, Tuple) or key[0] in loop.allocs or not self._lives_on(key, node):
                continue
            if m.is_part(key[0], key[1], value):
                continue
            for _, state in held_tensors(m, value)[:MOST_ITEMS]:
                for at in [at for at in state.nodes if at & ~1 in fresh] if state.has_graph else ():
                    later = at if born is not None else at | 1
                    parts = len(value.items) if type(value) is Tuple else 0
                    self.carriers.setdefault(later, []).append(Carrier(key, loop, node, parts))

    def _written(
        self, address: int, state: Tensor, loop: Loop, node: ast.AST | None, fresh: set[int]
    ) -> None:
        """A tensor from before the loop holds graphs of this iteration, which were written into it."""
        m = self.machine
        nodes: dict[int, Any] = {at: m.cells.get(node_key(at)) for at in state.nodes if at & ~1 in fresh}
        if not nodes or not all(type(n) is Node and n.name.endswith(("_()", "=")) for n in nodes.values()):
            return
        m.charge(len(m.cells))
        for key, value in m.cells.items():
            if type(key) is tuple and value == Ref(address) and "#" not in key[1]:
                for at, made in nodes.items():
                    place = made.node, m.calls_of.get(made.node, ())
                    self.carriers.setdefault(at | 1, []).append(Carrier(key, loop, node, 0, place))
                return

    def _put_into(
        self, address: int, content: Dict | Sequence, loop: Loop, node: ast.AST | None, fresh: set[int]
    ) -> None:
        """A list or dict from before the loop has items with graphs of this iteration."""
        place = self.items.get(address & ~1)
        known = content.items or ()
        items = [item for _, item in known] if type(content) is Dict else known
        held = [state for item in items for _, state in held_tensors(self.machine, item)[:MOST_ITEMS]]
        nodes = {at for state in held if state.has_graph for at in state.nodes if at & ~1 in fresh}
        if place is not None and loop in place[2]:
            for at in nodes:
                carrier = Carrier((address, "[]"), loop, node, 0, place[:2])
                self.carriers.setdefault(at | 1, []).append(carrier)

    def _lives_on(self, key: tuple[int, str], loop: ast.AST | None) -> bool:
        """Whether the next iteration can see what a cell holds: an attribute, or a name that it reads before it binds it."""
        m = self.machine
        scope, name = key
        if name in m.attributes.get(scope & ~1, ()):
            return True
        if scope == m.frames[-1].scope:
            return loop is None or name in self._read_first(loop)
        return scope == m.global_scope

    def _read_first(self, loop: ast.AST) -> set[str]:
        """The names that the body of a loop reads before it gives them a new value."""
        known = self.reads.get(loop)
        if known is None:
            known = self.reads[loop] = _read_first(loop)
        return known

    def _carrier(self, at: int) -> list[Carrier]:
        """What carried a node here from an earlier iteration of a loop that is still running."""
        m = self.machine
        running = [*m.loops, *(loop for frame in m.frames for loop in frame.loops)]
        return [c for c in self.carriers.get(at, ()) if any(c.loop is loop for loop in running)]

    def made(self, address: int, node: Node) -> None:
        """A node was made. When its input has a graph that was freed, a backward through it will raise.

        It is noted here, since one address stands for all steps of an earlier iteration, and later
        it is not known any more which of them are freed.
        """
        self.retains.made(address, node)
        if node.name == "clone()" and not node.inputs:
            for leaf in node.leaves:
                self.clones.setdefault(leaf & ~1, set()).add(address & ~1)
        for storage in node.saved:
            self.saved_by.setdefault(storage & ~1, set()).add(address & ~1)
        queue = list(node.sure) if self.carriers and self.freed_by else []
        carried: list[Carrier] = []
        for at in queue[:MOST_ITEMS]:
            before = self.machine.cells.get(node_key(at))
            if type(before) is Node and before.freed != NO and self._is_gone(at):
                carried += self._carrier(at)
        if carried:
            self.revived[address & ~1] = tuple(carried)

    def _is_gone(self, address: int) -> bool:
        """Whether a backward from a node surely comes to one that was freed, in a few steps."""
        queue = [address]
        for at in queue:
            node = self.machine.cells.get(node_key(at))
            if type(node) is Node:
                if node.gone == YES and node.keeps == YES:
                    return True
                if len(queue) < MOST_ITEMS:
                    queue += node.sure
        return False

    # -- backward passes

    @contextmanager
    def one_pass(self) -> Iterator[None]:
        """What runs here is one backward from several roots: what it frees it has not freed before."""
        self.together = set()
        try:
            yield
        finally:
            self.together = None

    def passed(
        self, site: ast.AST, root: Tensor, found: dict[int, Node], sure: list[int], *, keeps: bool
    ) -> None:
        """A backward pass from `root` goes surely through these nodes, nearest first; they are not freed yet."""
        self.retains.passed(site, root, keeps=keeps)
        self.twice.passed(site, root, found, sure)
        ours = self.together if self.together is not None else frozenset[int]()
        gone = [at for at in sure if found[at].gone == found[at].keeps == YES and at not in ours]
        fed = next((self.revived[at & ~1] for at in found if at & ~1 in self.revived), ()) if sure else ()
        if gone:
            self._freed(site, root, found, sure, gone)
        elif fed:
            self._tell_carried(site, root, list(fed), kept=False)
        else:
            self._saved(site, root, sure, found)
            if keeps:
                self._kept(site, root, found, sure)
        if not keeps:
            if self.together is not None:
                self.together.update(at for at in found if found[at].gone == NO)
            visit = Visit(site, self.machine.where())
            for at in sure:
                self.freed_by[at & ~1] = visit
            for at in found:
                self.revived.pop(at & ~1, None)

    def conclude(self, escaped: set[int]) -> None:
        """Tell what only the end of the run shows."""
        m = self.machine
        self.retains.conclude(escaped)
        for site, (calls, root) in self.created.items():
            gradients = [m.cells.get((at, "grad")) for leaf in root.leaves for at in (leaf & ~1, leaf | 1)]
            # One that was cleared since, and came anew from a backward without a graph, holds nothing.
            if any(
                state.requires_grad & YES
                for gradient in gradients
                for _, state in m.tensors(gradient or NONE)
            ):
                m.emit(CycleMade(site, calls, root))

    def returned(self, site: ast.AST, value: Value) -> None:
        """The forward of a module that nothing in the file calls has given this to whoever trains it."""
        m = self.machine
        first = value.items[0] if type(value) is Tuple and value.items else value
        state = m.tensor(first)
        if state is None or type(first) is not Ref or state.requires_grad != YES or m.mode != GRAD:
            return
        found = reachable(m, state.nodes)
        self._saved(None, state, surely_reached(m, found, state), found)
        m.judge.masked.look((at & ~1 for at in found), None)

    def _saved(self, site: ast.AST | None, root: Tensor, sure: list[int], found: dict[int, Node]) -> None:
        m = self.machine
        for at in sure:
            node = found[at]
            if node.spoiled != YES:
                continue
            if node.name == "clone()" and site is not None and node.node not in self.told:
                self.told.add(node.node)
                m.emit(CloneOutdated(node.node, m.calls_to(at), root, site))
            if node.freed != NO:
                continue
            bits = m.cells.get(changed_key(at), 0)
            change = next((c for number, c in enumerate(self.changes) if bits >> number & 1), None)
            if change is not None and (change.site, change.how == "step()") not in self.told:
                self.told.add((change.site, change.how == "step()"))
                self._tell_changed(change, at, site, root)

    def _tell_changed(self, change: Change, at: int, site: ast.AST | None, root: Tensor) -> None:
        m = self.machine
        place, calls = change.site, change.calls
        if change.how == "step()":
            place, calls = _in_frame_of(m.where(), place, calls)
        m.emit(
            SavedChanged(
                place,
                calls,
                root,
                change.tensor,
                change.target,
                change.how,
                self._seen_from(change.calls, at),
                site,
                change.maker,
                change.alone,
                load().method(change.how.removesuffix("_()")) is not None,
            )
        )

    def _seen_from(self, calls: Calls, address: int) -> ast.AST:
        """Where a node was made, as the function that these calls led to sees it: the op, or the call that led there."""
        m = self.machine
        return _in_frame_of(calls, m.cells[node_key(address)].node, m.calls_to(address))[0]

    def _freed(
        self, site: ast.AST, root: Tensor, found: dict[int, Node], sure: list[int], gone: list[int]
    ) -> None:
        m = self.machine
        carried = self._entries(root, found, gone)
        if carried and not self._adds_up(root, found, carried):
            self._tell_carried(site, root, carried, kept=False)
            return
        before = self.freed_by.get(gone[0] & ~1)
        if before is None or (site, "freed") in self.told:
            return
        self.told.add((site, "freed"))
        whole = any(found[at].gone == YES for at in sure if at in root.nodes)
        m.emit(
            GraphFreed(
                site,
                m.where(),
                root,
                _in_frame_of(m.where(), before.site, before.calls)[0],
                self._seen_from(m.where(), gone[0]),
                whole,
                before.site is site,
                bool(carried),
            )
        )

    def _kept(self, site: ast.AST, root: Tensor, found: dict[int, Node], sure: list[int]) -> None:
        """A pass that keeps its graph and goes through that of the iteration before: it grows with each of them.

        With `create_graph` it is wanted: an inner loop is unrolled, and a gradient flows through all its steps.
        """
        named = {k.arg for k in site.keywords} if isinstance(site, ast.Call) else set()
        if "retain_graph" in named and "create_graph" not in named:
            carried = self._entries(root, found, [at for at in sure if found[at].keeps == YES])
            if carried and not self._adds_up(root, found, carried):
                self._tell_carried(site, root, carried, kept=True)

    def _entries(self, root: Tensor, found: dict[int, Node], behind: list[int]) -> list[Carrier]:
        """The carriers of an earlier iteration's graph by which a pass comes to some of these nodes."""
        wanted = set(behind)
        entered: dict[int, list[Carrier]] = {}
        carried: dict[int, Carrier] = {}
        for at in surely_reached(self.machine, found, root):
            if at not in entered:
                entered[at] = self._carrier(at)
            if at in wanted:
                carried |= {id(carrier): carrier for carrier in entered[at]}
            for inner in found[at].sure:
                entered.setdefault(inner, entered[at] or self._carrier(inner))
        return list(carried.values())

    def _adds_up(self, root: Tensor, found: dict[int, Node], carried: list[Carrier]) -> bool:
        """Whether what is carried is a total that a backward is run from, and no state."""
        total = {at for carrier in carried for at, all_ in self.carriers.items() if carrier in all_}
        queue = [at for at in root.nodes if at in found]
        seen: set[int] = set()
        while queue:
            at = queue.pop()
            if at in total:
                return True
            if at not in seen and found[at].name in ADDING:
                seen.add(at)
                queue += [inner for inner in found[at].inputs if inner in found]
        return False

    def _tell_carried(self, site: ast.AST, root: Tensor, carried: list[Carrier], *, kept: bool) -> None:
        m = self.machine
        keys = {(c.key[0] & ~1, c.key[1]): c for c in carried}
        if any((key, "carried") in self.told for key in keys):
            return
        self.told |= {(key, "carried") for key in keys}
        written = next((c for c in carried if c.written is not None), None)
        if written is not None and written.written is not None:
            place, calls = written.written
            m.emit(StateCarried(place, calls, root, (holder_words(place)[0],), site, (), (), kept))
            return
        at_attribute = [self.attributes[key] for key in keys if key in self.attributes]
        if at_attribute:
            place, calls = at_attribute[0]
            target = place.targets[0] if isinstance(place, ast.Assign) else None
            words = ast.unparse(target) if target is not None else f"self.{next(iter(keys))[1]}"
            m.emit(StateCarried(place, calls, root, (words,), site, (), (), kept))
            return
        if any(c.node is not None and _detach_dropped(c.node, key[1]) for key, c in keys.items()):
            return  # that the result of `detach()` is dropped is told already
        bound = {key[1]: _last_binding(c.node, key[1]) for key, c in keys.items() if c.node is not None}
        places = {name: place for name, place in bound.items() if place is not None}
        ordered = sorted(places, key=lambda name: (places[name].lineno, places[name].col_offset))
        parts = {key[1]: c.parts for key, c in keys.items()}
        names = tuple(ordered) or tuple(parts)
        shown = places[ordered[0]] if ordered else site
        bindings = tuple(places[name] for name in ordered) if _stands_in(site, keys.values()) else ()
        if kept:
            shown = site
        m.emit(
            StateCarried(shown, m.where(), root, names, site, bindings, tuple(parts[n] for n in names), kept)
        )


def _in_frame_of(calls: Calls, site: ast.AST, made: Calls) -> tuple[ast.AST, Calls]:
    """A place as the function sees it to which `calls` led: itself, or the call in that function that led to it."""
    common = 0
    while common < min(len(calls), len(made)) and calls[common] is made[common]:
        common += 1
    return (made[common], made[:common]) if common < len(made) else (site, made)


def _detach_dropped(loop: ast.AST, name: str) -> bool:
    """Whether a loop holds the statement `name.detach()`."""
    for node in ast.walk(loop):
        match node:
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=own), attr="detach"))):
                if own == name:
                    return True
    return False


def _stands_in(site: ast.AST, carried: Iterable[Carrier]) -> bool:
    """Whether a call is a statement of the very loop that carries, so that a line can follow it."""
    return all(
        any(isinstance(step, ast.Expr) and step.value is site for step in getattr(c.node, "body", ()))
        for c in carried
    )


def _last_binding(loop: ast.AST, name: str) -> ast.Name | None:
    """The last place in a loop where a name is bound."""
    found = [
        node
        for node in ast.walk(loop)
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
    ]
    return max(found, key=lambda node: (node.lineno, node.col_offset), default=None)


def _read_first(loop: ast.AST) -> set[str]:
    """The names that a loop reads before it binds them, in the order of the source; what is assigned is read first."""
    bound: dict[str, tuple[int, int]] = {}
    read: dict[str, tuple[int, int]] = {}
    for node in ast.walk(loop):
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            targets: list[ast.expr] = node.targets if isinstance(node, ast.Assign) else [node.target]
            end = (node.end_lineno or node.lineno, node.end_col_offset or 0)
            for part in (part for target in targets for part in ast.walk(target)):
                if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                    bound[part.id] = min(bound.get(part.id, end), end)
                    if isinstance(node, ast.AugAssign):
                        read.setdefault(part.id, (0, 0))
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            here = (node.lineno, node.col_offset)
            read[node.id] = min(read.get(node.id, here), here)
    passed = [node for node in ast.walk(getattr(loop, "target", ast.Pass())) if isinstance(node, ast.Name)]
    own = {node.id for node in passed}
    return {name for name, at in read.items() if name not in own and at < bound.get(name, (10**9, 0))}
