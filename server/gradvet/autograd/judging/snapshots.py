"""Snapshots of a model's parameters that share their storage: they go on changing with the model."""

import ast
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from gradvet.autograd.events_alias import SnapshotAliased
from gradvet.autograd.held import held_tensors
from gradvet.autograd.judging.above import function_of
from gradvet.autograd.library.layers import members
from gradvet.autograd.machine import Loop, Machine
from gradvet.autograd.memory.domain import YES, Alias, Tensor
from gradvet.autograd.memory.values import Array, Dict, Each, Optimizer, Ref, Sequence, Value, atoms, refs
from gradvet.syntax.parents import Parents
from gradvet.syntax.tree import walk

OF_STATE_DICT, OF_PARAMETER = 1, 2
_DEEP = 2


def stale_key(address: int) -> tuple[int, str]:
    """The cell that tells that the parameters behind a tensor have changed since it was taken."""
    return (address, "#stale")


@dataclass(slots=True)
class Grown:
    """A parameter's value was added to a container in a loop."""

    site: ast.AST
    calls: tuple[ast.AST, ...]
    made: ast.AST


@dataclass(slots=True)
class SnapshotNotes:
    """Which snapshots there are, which steps they have outlived, and who looks at them then."""

    machine: Machine
    taken: bool = False
    grown: dict[int, Grown] = field(default_factory=dict)
    gradients: dict[int, list[tuple[Grown, int, tuple[Loop, ...]]]] = field(default_factory=dict)
    """The gradients that were added to containers as they are, by address; where those lie, and in which loops."""
    cleared: dict[int, ast.AST] = field(default_factory=dict)
    """Where a gradient was set to zeros last."""
    steps: dict[int, ast.AST] = field(default_factory=dict)
    reads: dict[int, tuple[ast.AST, tuple[ast.AST, ...]]] = field(default_factory=dict)
    around: set[int] = field(default_factory=set)
    """What was only looked at with something else around it: `record` for `record["weights"]`."""
    handed: set[int] = field(default_factory=set)
    waiting: set[int] = field(default_factory=set)
    spent: bool = False
    ran_backward: bool = False
    elsewhere: ast.AST | None = None
    unseen: dict[int, ast.AST] = field(default_factory=dict)
    loads: dict[int, tuple[ast.AST, tuple[ast.AST, ...]]] = field(default_factory=dict)
    changed: set[int] = field(default_factory=set)
    same: dict[ast.AST, tuple[tuple[ast.AST, ...], str]] = field(default_factory=dict)
    shallow: dict[int, ast.AST] = field(default_factory=dict)
    """The shallow copies of modules, which have the parameters of what they were copied from."""
    tied: dict[int, ast.AST] = field(default_factory=dict)
    """By storage where a parameter was given the memory of another: `p.data = q.data`."""
    lent: dict[ast.AST, set[int]] = field(default_factory=dict)
    """The parameters that an assignment gives other memory."""
    causes: dict[ast.AST, tuple[ast.AST, str]] = field(default_factory=dict)
    apart: set[ast.AST] = field(default_factory=set)
    """Where a module also loads what is not its own."""
    shared: dict[ast.AST, tuple[tuple[ast.AST, ...], ast.AST | None]] = field(default_factory=dict)
    equals: dict[ast.AST, tuple[int, ast.AST, tuple[ast.AST, ...], str]] = field(default_factory=dict)

    @property
    def noticed(self) -> bool:
        """Whether there is anything to conclude."""
        return bool(self.loads or self.equals or self.same or self.shared or self.gradients)

    def stepped(self, leaves: frozenset[int], site: ast.AST) -> None:
        """An optimizer has changed these leaves; what was taken of them before is stale."""
        m = self.machine
        storage: set[int] = set()
        for leaf in leaves:
            state = m.cells.get(leaf)
            if type(state) is Tensor:
                storage |= state.storage
        self.changed |= storage
        for address, alias in self._taken_on(storage):
            kind = OF_STATE_DICT if self._is_of_state_dict(alias) else OF_PARAMETER
            m.rewritten = m.rewritten or self.taken
            m.store.set(stale_key(address), kind)
            if address & ~1 not in self.grown or self._is_kept(address):
                self.steps.setdefault(address & ~1, site)

    def _is_kept(self, address: int) -> bool:
        """Whether something still has what was added to a container: what was put together of it is another tensor."""
        judge = self.machine.judge
        return judge is None or judge.retention.is_held(Ref(address))

    def _taken_on(self, storage: AbstractSet[int]) -> list[tuple[int, Alias]]:
        """What was taken of the tensors on a storage, and how."""
        m = self.machine
        known = ((address, m.cells.get(address)) for address in m.store.sharing.on(storage))
        return [
            (address, content.alias)
            for address, content in known
            if isinstance(content, (Tensor, Array))
            and content.alias is not None
            and not content.storage.isdisjoint(storage)
        ]

    def reached(self, leaves: frozenset[int]) -> None:
        """A backward reached these leaves: the next step may change them."""
        self.ran_backward = True
        if self.spent:
            self.waiting, self.spent = set(), False
        self.waiting |= leaves

    def stepped_elsewhere(self, args: tuple[Value, ...], site: ast.AST) -> None:
        """`step()` of something unknown: of an optimizer that it is given, or of what backward has reached since."""
        owned = frozenset(self.waiting)
        self.spent = True
        if self.ran_backward:
            self.elsewhere = site
        for value in args:
            content = self.machine.cells.get(getattr(value, "address", -1))
            if type(content) is Optimizer:
                owned = content.owns
        self.stepped(owned, site)

    def _is_of_state_dict(self, alias: Alias) -> bool:
        while alias.kind != "state_dict":
            above = [self.machine.cells.get(source) for source in alias.source]
            found = [
                content.alias for content in above if type(content) is Tensor and content.alias is not None
            ]
            if not found:
                return False
            alias = found[0]
        return True

    def added(self, site: ast.AST, holder: Ref, value: Value) -> None:
        """A value was added to a container."""
        m = self.machine
        if not m.loops:
            return
        for ref, _ in held_tensors(m, value) if m.grads else ():
            if ref.address & ~1 in m.grads:
                read = (
                    part for part in walk(site) if isinstance(part, ast.Attribute) and part.attr == "grad"
                )
                grown = Grown(site, m.where(), next(read, site))
                self.gradients.setdefault(ref.address & ~1, []).append(
                    (grown, holder.address, tuple(m.loops))
                )
                cleared = self.cleared.get(ref.address & ~1)
                items = getattr(m.cells.get(holder.address), "items", None) or ()
                if cleared is not None and items.count(ref) > 1:
                    self.grown.setdefault(ref.address & ~1, grown)
                    self.steps.setdefault(ref.address & ~1, cleared)
        held = [(ref, state) for ref, state in held_tensors(m, value) if not self._in_state_dict(value)]
        arrays = [(ref, m.cells.get(ref.address)) for ref in refs(value)]
        for ref, content in (*held, *arrays):
            if not isinstance(content, (Tensor, Array)) or content.alias is None:
                continue
            if any(
                type(p := m.cells.get(place)) is Tensor and p.parameter == YES for place in content.storage
            ):
                self.taken = True
                self.grown.setdefault(ref.address & ~1, Grown(site, m.where(), content.alias.node))

    def dropped(self, gradients: Iterable[int]) -> None:
        """These gradients are gone: the next ones lie elsewhere."""
        for address in gradients:
            self.cleared.pop(address & ~1, None)
            self.gradients.pop(address & ~1, None)

    def zeroed(self, gradients: Iterable[int], site: ast.AST) -> None:
        """These gradients are zeros from now on, in the same memory: what earlier iterations have kept of them as well."""
        for address in gradients:
            self.cleared[address & ~1] = site
            for grown, holder, loops in self.gradients.get(address & ~1, ()):
                around = [loop for loop in self.machine.loops if loop in loops]
                if any(not {holder & ~1, address & ~1} & (loop.allocs | loop.born) for loop in around):
                    self.grown.setdefault(address & ~1, grown)
                    self.steps.setdefault(address & ~1, site)

    def _in_state_dict(self, value: Value) -> bool:
        """Whether a dict holds what a state dict gave: it is told of when it is read or loaded."""
        contents = [self.machine.cells.get(ref.address) for ref in refs(value)]
        return any(
            isinstance(content, (Dict, Sequence))
            and any(
                state.alias is not None and self._is_of_state_dict(state.alias)
                for _, state in held_tensors(self.machine, content.element)
            )
            for content in contents
            if content is not None and getattr(content, "element", None) is not None
        )

    def looked_at(self, node: ast.AST, value: Value) -> None:
        """A container is the value of an expression: whether it holds what is stale by now."""
        found = {ref.address: self._stale_in(ref, 0) for ref in refs(value)}
        later = max((address & ~1 for address, stale in found.items() if not stale), default=0)
        for address, stale in found.items():
            for at in stale if address > later else ():  # else a copy has taken its place
                if at & ~1 not in self.reads or at & ~1 in self.around:
                    self.reads[at & ~1] = (node, self.machine.where())
                    (self.around.discard if at == address else self.around.add)(at & ~1)

    def _stale_in(self, ref: Ref, depth: int) -> list[int]:
        """The innermost containers that hold stale tensors of a state dict."""
        content = self.machine.cells.get(ref.address)
        if not isinstance(content, (Dict, Sequence)) or depth > _DEEP:
            return []
        found = []
        for part in refs(content.element):
            if self.machine.cells.get(stale_key(part.address)) == OF_STATE_DICT:
                return [ref.address]
            found += self._stale_in(part, depth + 1)
        return found

    def compared(self, node: ast.AST, one: Value, other: Value) -> None:
        """Two values are compared, or their difference is taken: whether one is a snapshot of the other, and stale."""
        if one == other and self._has_changed(one) and _differ(node):
            self.same.setdefault(node, (self.machine.where(), "same"))
            return
        if not self._is_taken_of(node, one, other, "compared"):
            self._is_taken_of(node, other, one, "compared")

    def restored(self, node: ast.AST, target: Value, source: Value) -> None:
        """A parameter is set from a value: whether that is the parameter's own memory, which has changed since."""
        if isinstance(node, ast.Assign):
            self.lent.setdefault(node, set()).update(ref.address & ~1 for ref in refs(target))
        if isinstance(node, ast.Assign) and target != source:
            given, taken = self._places(target), self._places(source)
            if taken and not given & taken:
                self.tied.update(dict.fromkeys(taken, node))
            elif taken and taken <= given & self.changed and self._are_tied(node, taken):
                self.same.setdefault(node, (self.machine.where(), "tied"))
                return
        if target != source and self._is_taken_of(node, source, target, "restored"):
            return
        if self._told_of_itself(node, target, "written"):
            return
        places = self._places(target)
        parameters = [self.machine.cells.get(place) for place in places]
        if all(type(state) is Tensor and state.parameter == YES for state in parameters):
            own = {ref.address for value in (target, source) for ref in refs(value)}
            for address, alias in self._taken_on(places):
                if address not in own and not self._is_of_state_dict(alias):
                    self.machine.store.set(stale_key(address), OF_PARAMETER)
                    if address & ~1 not in self.grown or self._is_kept(address):
                        self.steps.setdefault(address & ~1, node)

    def _are_tied(self, node: ast.AST, places: frozenset[int]) -> bool:
        """Whether it was this very assignment that gave the memory of some parameters to others."""
        states = [self.machine.cells.get(place) for place in places]
        return all(self.tied.get(place) is node for place in places) and all(
            type(state) is Tensor and state.parameter == YES for state in states
        )

    def _trains(self, node: ast.AST) -> bool:
        """Whether an optimizer has what an assignment gives other memory: weights of one model are tied so."""
        judge = self.machine.judge
        return judge is not None and not self.lent.get(node, set()).isdisjoint(judge.flow.owned)

    def moved(self, node: ast.AST, target: Value) -> None:
        """Something was added to a tensor, or it was moved towards something: whether that is itself."""
        self._told_of_itself(node, target, "averaged")

    def _told_of_itself(self, node: ast.AST, target: Value, how: str) -> bool:
        """Note a call that gives a parameter its own value, which goes by another name there."""
        term = self._other_name(node, target)
        if term is None:
            return False
        self.same.setdefault(node, (self.machine.where(), how))
        cause = self._why_the_same(term, target)
        if cause is not None:
            self.causes.setdefault(node, cause)
        return True

    def _other_name(self, node: ast.AST, target: Value) -> ast.expr | None:
        """What a call writes into a parameter, where it is the same parameter by another name."""
        if not self._has_changed(target):
            return None
        match node:
            case ast.Call(func=ast.Attribute(value=own), args=[*given]):
                pass
            case ast.Assign(targets=[ast.Attribute(value=own)], value=only):
                given = [only]
            case _:
                return None
        places, written = self._places(target), _named(own)
        into = self.machine.states.get(written)
        if into is None or into.parameter != YES:
            return None  # an alias that is kept: the edit of it is told
        known = ast.dump(written)
        for term in (term for one in given for term in _terms(one)):
            state = self.machine.states.get(term)
            if (
                state is not None
                and state.parameter == YES
                and state.storage == places
                and ast.dump(term) != known
            ):
                return term
        return None

    def _why_the_same(self, term: ast.expr, target: Value) -> tuple[ast.AST, str] | None:
        """Where two parameters became one, or a list or dict of a model's parameters was taken for copies."""
        m, own = self.machine, self._places(target)
        for place, node in self.tied.items():
            if place in own:
                return node, ""
        for address, node in self.shallow.items():
            if any(ref.address in own for _, ref in members(m, Ref(address)).parameters):
                return node, "shared"
        word = (
            getattr(term.value, "id", getattr(term.value, "attr", ""))
            if isinstance(term, ast.Subscript)
            else ""
        )
        for key, value in m.cells.items() if word else ():
            if type(key) is tuple and key[1] == word and type(value) is Ref:
                content, site = m.cells.get(value.address), m.site_of(value.address)
                if isinstance(content, (Dict, Sequence)) and site is not None:
                    held = {ref.address for ref in refs(content.element)}
                    if own <= held:
                        return site, ""
        return None

    def _is_taken_of(self, node: ast.AST, snapshot: Value, against: Value, how: str) -> bool:
        """Note a snapshot that was taken of what it meets now, and is stale."""
        taken = self._stale_aliases(snapshot)
        if not taken or snapshot == against or self._places(snapshot) != self._places(against):
            return False
        for address, alias in taken:
            self.equals.setdefault(alias.node, (address, node, self.machine.where(), how))
        return True

    def _has_changed(self, value: Value) -> bool:
        """Whether a value is certainly one or more parameters that an optimizer has changed."""
        places = self._places(value) if type(value) in (Ref, Each) else frozenset()
        return bool(places) and places <= self.changed

    def _stale_aliases(self, value: Value) -> list[tuple[int, Alias]]:
        """The tensors and arrays that a value may be, when each was taken of a parameter that has changed since."""
        found = []
        for atom in atoms(value):
            for ref in refs(atom):
                content = self.machine.cells.get(ref.address)
                stale = self.machine.cells.get(stale_key(ref.address))
                if not isinstance(content, (Tensor, Array)) or content.alias is None or not stale:
                    return []
                found.append((ref.address & ~1, content.alias))
            if type(atom) not in (Ref, Each):
                return []
        return found

    def _places(self, value: Value) -> frozenset[int]:
        """The storage of what a value may be; nothing when some of it has none."""
        places: set[int] = set()
        for ref in refs(value):
            content = self.machine.cells.get(ref.address)
            if not isinstance(content, (Tensor, Array)):
                return frozenset()
            places |= content.storage
        return frozenset(places)

    def handed_over(self, values: tuple[Value, ...], depth: int = 0) -> None:
        """A call that is not followed was given these: it may fill a dictionary anew."""
        for value in values:
            for ref in refs(value):
                content = self.machine.cells.get(ref.address)
                if isinstance(content, Dict):
                    self.handed.add(ref.address & ~1)
                    if depth < _DEEP and content.element is not None:
                        self.handed_over((content.element,), depth + 1)

    def loaded(self, module: Value, state: Value, site: ast.AST) -> None:
        """`load_state_dict(state)`: nothing happens when all of it is the module's own storage."""
        m = self.machine
        # What may be one of several modules, and what may lie in one of several places, may well be another's.
        places = (
            m.cells[ref.address].storage for _, ref in members(m, module).parameters if not ref.address & 1
        )
        own = frozenset[int]().union(*(place for place in places if len(place) == 1))
        own_in = {ref.address: self._is_all_of(ref, own) for ref in refs(state)}
        later = max((address & ~1 for address, same in own_in.items() if not same), default=0)
        if not all(own_in.values()):
            self.apart.add(site)
        for ref in refs(state):
            if ref.address > later and own_in[ref.address]:  # else a copy has taken its place
                made = m.site_of(ref.address)
                if made is not None and made in walk(
                    site
                ):  # it was taken for this: of another model with the same parameters
                    copied = self.shallow.get(module.address & ~1) if type(module) is Ref else None
                    self.shared.setdefault(site, (m.where(), copied))
                    continue
                self.loads.setdefault(ref.address & ~1, (site, m.where()))
                if self.elsewhere is not None:
                    self.unseen.setdefault(ref.address & ~1, self.elsewhere)

    def _is_all_of(self, ref: Ref, own: frozenset[int]) -> bool:
        """Whether a dict holds what a state dict gave, and all of that lies in these places."""
        content = self.machine.cells.get(ref.address)
        if type(content) is not Dict or content.rest is not None or not content.items:
            return False
        held = [held for _, value in content.items for _, held in held_tensors(self.machine, value)]
        return len(held) == len(content.items) and all(
            t.alias is not None and self._is_of_state_dict(t.alias) and t.storage <= own for t in held
        )

    def conclude(self, parents: Parents, edited: set[ast.AST]) -> None:
        """Tell the snapshots that were used as if they were copies; those that were `edited` are told where they are."""
        m = self.machine
        told: set[ast.AST] = set()
        for address in (*self.loads, *self.reads):
            site = self._filled_by(address)
            loaded = self.loads.get(address)
            read = loaded or self.reads[address]
            if site is None or site in told or _only_keys(read[0], parents):
                continue
            if loaded is None and address in self.around and _is_entry(read[0], parents):
                continue
            step = self._step(address) or self.unseen.get(address)
            if address in self.handed:
                continue
            calls = m.calls_of.get(site, ())
            if step is None and (calls[:1] == read[1][:1] or not _is_kept(site, read[0], loaded, parents)):
                continue  # what happens between the two within one call was seen
            told.add(site)
            m.emit(SnapshotAliased(site, calls, "state_dict", site, step, read[0], loaded is not None))
        for site, (address, node, calls, how) in self.equals.items():
            if how == "restored" and site in edited:
                continue
            if not any(site in walk(one) for one in told):
                told.add(site)
                step = self.steps.get(address)
                m.emit(SnapshotAliased(site, calls, how, site, step, node, loaded=False))
        for node, (calls, kind) in self.same.items():
            cause, instead = self.causes.get(node, (node, ""))
            if cause in told or self._trains(node):
                continue
            told.add(cause)
            if cause is node:
                m.emit(SnapshotAliased(node, calls, kind, node, None, None, loaded=False))
            else:
                above = m.calls_of.get(cause, ())
                m.emit(SnapshotAliased(cause, above, instead or kind, cause, None, node, loaded=False))
        for load, (calls, copy) in self.shared.items():
            if load in self.apart:
                continue  # of several modules that it may be, others have parameters of their own
            if copy is None:
                m.emit(SnapshotAliased(load, calls, "shared", load, None, load, loaded=True))
            elif copy not in told:
                m.emit(
                    SnapshotAliased(copy, m.calls_of.get(copy, ()), "shared", copy, None, load, loaded=True)
                )
        for address, grown in self.grown.items():
            step = self.steps.get(address)
            if step is not None and grown.site not in told:
                told.add(grown.site)
                m.emit(
                    SnapshotAliased(grown.site, grown.calls, "element", grown.made, step, None, loaded=False)
                )

    def _filled_by(self, address: int) -> ast.AST | None:
        """Where a dict of parameters was made; of one that was made empty, where what is in it comes from."""
        site = self.machine.site_of(address)
        match site:
            case ast.Dict(keys=[]) | ast.Call(args=[], keywords=[], func=ast.Name()):
                content = self.machine.cells.get(address) or self.machine.cells.get(address | 1)
                aliases = [
                    state.alias
                    for _, state in held_tensors(self.machine, getattr(content, "element", None))
                    if state.alias is not None and state.alias.kind == "state_dict"
                ]
                return aliases[0].node if aliases else site
        return site

    def _step(self, address: int) -> ast.AST | None:
        """Where the parameters behind a container's tensors were changed."""
        for at in (address, address | 1):
            content: Any = self.machine.cells.get(at)
            if isinstance(content, (Dict, Sequence)):
                for part in refs(content.element):
                    if part.address & ~1 in self.steps:
                        return self.steps[part.address & ~1]
        return None


def _named(node: ast.expr) -> ast.expr:
    """What an expression is the value of: `p` in `p.data`, `p.detach()` and `p.mul_(0.9)`."""
    while True:
        match node:
            case (
                ast.Attribute(value=inner, attr="data")
                | ast.Call(func=ast.Attribute(value=inner, attr="detach"))
            ):
                node = inner
            case ast.Call(func=ast.Attribute(value=inner, attr=name)) if name.endswith("_"):
                node = inner
            case _:
                return node


def _terms(node: ast.expr) -> Iterator[ast.expr]:
    """What sums and weights are made of."""
    match node:
        case ast.BinOp(left=left, right=right):
            yield from _terms(left)
            yield from _terms(right)
        case _:
            yield _named(node)


def _differ(node: ast.AST) -> bool:
    """Whether what is compared goes by two names: nobody means to compare `w` with `w`."""
    match node:
        case ast.BinOp(left=one, right=other) | ast.Compare(left=one, comparators=[other]):
            pass
        case ast.Call(args=[one, other, *_]) | ast.Call(func=ast.Attribute(value=one), args=[other]):
            pass
        case _:
            return False
    return ast.dump(one) != ast.dump(other)


def _is_entry(node: ast.AST, parents: Parents) -> bool:
    """Whether no more than an entry of something is looked at."""
    parent = parents.get(node)
    return isinstance(parent, ast.Subscript) and parent.value is node


def _only_keys(node: ast.AST, parents: Parents) -> bool:
    """Whether only the names are looked at, or whether there is something at all."""
    parent = parents.get(node)
    match parent:
        case ast.Attribute(attr="keys") | ast.Compare() | ast.If() | ast.BoolOp() | ast.UnaryOp():
            return True
        case ast.Call(ast.Name("len" | "print" | "set" | "list" | "sorted" | "bool")):
            return True
        case ast.For(target=ast.Name()):
            return True
    return False


def _is_kept(site: ast.AST, read: ast.AST, loaded: object, parents: Parents) -> bool:
    """Whether a snapshot was kept on an object by one function, to be loaded from there by another."""
    if loaded is None or not isinstance(read, ast.Call) or not read.args:
        return False
    kept = isinstance(read.args[0], (ast.Attribute, ast.Subscript))
    return kept and function_of(site, parents) is not function_of(read, parents)
