"""Judgements that need more than one moment of the run: what was kept, consumed, reached, edited."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from gradvet.autograd.graph import held_tensors, node_key, reachable, spoiled_key
from gradvet.autograd.judging import hooks_placed
from gradvet.autograd.judging.averages import Average, entering, running_average
from gradvet.autograd.judging.calls import CallNotes
from gradvet.autograd.judging.cut_notes import CutNotes
from gradvet.autograd.judging.escapes import EscapeNotes
from gradvet.autograd.judging.evaluations import Evaluations
from gradvet.autograd.judging.flags import FlagNotes
from gradvet.autograd.judging.flow import Flow
from gradvet.autograd.judging.freezes import FreezeNotes
from gradvet.autograd.judging.functions import FunctionNotes
from gradvet.autograd.judging.leaf_notes import LeafNotes
from gradvet.autograd.judging.mode_left import ModeNotes
from gradvet.autograd.judging.number_attributes import NumberAttributes
from gradvet.autograd.judging.numpy_alias import NumpyNotes, target_of
from gradvet.autograd.judging.optimizer_notes import OptimizerNotes
from gradvet.autograd.judging.overwritten import OverwriteNotes
from gradvet.autograd.judging.protocol import Protocol
from gradvet.autograd.judging.recurrences import Recurrences
from gradvet.autograd.judging.registration import Registration
from gradvet.autograd.judging.returned import left_beside, left_with_graph
from gradvet.autograd.judging.snapshots import SnapshotNotes
from gradvet.autograd.judging.targets import Targets
from gradvet.autograd.judging.thrown_away import ThrownAway
from gradvet.autograd.judging.walks import Walks
from gradvet.autograd.library import unrecorded
from gradvet.autograd.library.evidence import remember
from gradvet.autograd.library.layers import is_module, members
from gradvet.autograd.library.storages import savers
from gradvet.autograd.machine import Loop, Machine
from gradvet.autograd.memory.domain import GRAD, MAYBE, NO, YES, Node, Origin, Tensor
from gradvet.autograd.memory.values import (
    TRUE,
    Dict,
    Instance,
    Layer,
    Opaque,
    Optimizer,
    Ref,
    Sequence,
    Union,
    Value,
    refs,
)
from gradvet.syntax.parse import Module

GROWING = ("+", "*", "=")
"""How something is put into a container: one element more, a key that is not known, an item that is set."""
ADDING = frozenset({"+", "-", "+=", "-=", "add()", "add_()"})
"""Ops by which a total is kept. State that a module carries from step to step is no total."""
WEIGHTING = frozenset({"*", "/", "*=", "/=", "mul()", "div()", "neg"})


@dataclass(slots=True)
class Place:
    """Where to speak of something that is kept: the node, the calls that led there, and the kept expression."""

    site: ast.AST
    calls: tuple[ast.AST, ...]
    value: ast.expr | None


@dataclass(slots=True)
class Kept:
    """A graph that outlived an iteration: a finding unless a later backward turns out to need it."""

    place: Place
    tensor: Tensor
    nodes: frozenset[int]
    holder: str
    holder_node: ast.AST | None
    freed: int
    how: str
    order: int
    attribute: str = ""
    trains: bool = True
    average: Average | None = None


@dataclass(slots=True)
class ModuleCall:
    """A call of a module from outside any module, with what it gave."""

    site: ast.AST
    calls: tuple[ast.AST, ...]
    tensor: Tensor
    nodes: frozenset[int]
    module: Ref
    training: Value
    mode: int
    function: ast.AST | None
    in_loop: bool
    own: bool


@dataclass(slots=True)
class Edit:
    """A change in place through a tensor that shares storage behind autograd's back."""

    site: ast.AST
    calls: tuple[ast.AST, ...]
    tensor: Tensor
    target: ast.expr | None
    how: str
    saved: tuple[ast.AST, ...]
    mode: int
    sources: tuple[Tensor, ...]


@dataclass(slots=True)
class DataRead:
    """A `.data`, with what is done to it."""

    node: ast.AST
    calls: tuple[ast.AST, ...]
    tensor: Tensor
    kind: str = "read"
    write: ast.AST | None = None
    saved: tuple[ast.AST, ...] = ()
    of_grad: bool = False
    forward: bool = False
    init: bool = False
    how: str = ""
    mode: int = 1
    target: ast.expr | None = None


@dataclass(slots=True)
class Store:
    """Something was put into an object that may outlive the iteration."""

    site: ast.AST
    calls: tuple[ast.AST, ...]
    holder: Ref
    value: Value
    how: str
    frames: tuple[int, ...]
    forward: bool


MOST_NAMED_OPTIMIZERS = 50
"""For the parameters of those that come later, no names are looked for."""


@dataclass(slots=True)
class Judge:
    """Collects what the machine tells it, and gives the verdicts at the end."""

    machine: Machine
    kept: list[Kept] = field(default_factory=list)
    modules: list[ModuleCall] = field(default_factory=list)
    edits: list[Edit] = field(default_factory=list)
    data: dict[tuple[ast.AST, tuple[ast.AST, ...]], DataRead] = field(default_factory=dict)
    optimizers: list[tuple[Ref, Optimizer, ast.AST]] = field(default_factory=list)
    used_nodes: dict[int, int] = field(default_factory=dict)
    surely_used: set[int] = field(default_factory=set)
    reached_leaves: set[int] = field(default_factory=set)
    escaped_nodes: set[int] = field(default_factory=set)
    roots: set[int] = field(default_factory=set)
    dead: dict[int, ast.AST] = field(default_factory=dict)
    constant_roots: dict[ast.AST, frozenset[int]] = field(default_factory=dict)
    under: dict[ast.AST, set[int]] = field(default_factory=dict)
    cuts_of: dict[ast.AST, set[int]] = field(default_factory=dict)
    losses_of: dict[int, dict[ast.AST, None]] = field(default_factory=dict)
    pending: dict[ast.AST, None] = field(default_factory=dict)
    stepping: bool = False
    elements: dict[int, tuple[Store, Ref]] = field(default_factory=dict)
    entries: set[object] | None = None
    leaf_names: dict[int, str] = field(default_factory=dict)
    spoilers: list[Any] = field(default_factory=list)
    changed: set[int] = field(default_factory=set)
    cut_notes: CutNotes = field(default_factory=CutNotes)
    eval_sites: dict[int, dict[ast.AST, None]] = field(default_factory=dict)
    order: int = 0
    flags: FlagNotes = field(init=False)
    calls: CallNotes = field(init=False)
    arrays: NumpyNotes = field(init=False)
    leaves: LeafNotes = field(init=False)
    registration: Registration = field(init=False)
    given: OptimizerNotes = field(init=False)
    walks: Walks = field(init=False)
    snapshots: SnapshotNotes = field(init=False)
    modes: ModeNotes = field(init=False)
    functions: FunctionNotes = field(init=False)
    freezes: FreezeNotes = field(init=False)
    overwritten: OverwriteNotes = field(init=False)
    escapes: EscapeNotes = field(init=False)
    flow: Flow = field(init=False)
    targets: Targets = field(init=False)
    protocol: Protocol = field(init=False)
    numbers: NumberAttributes = field(init=False)
    evaluations: Evaluations = field(init=False)
    recurrences: Recurrences = field(init=False)

    thrown_away: ThrownAway = field(init=False)

    def __post_init__(self) -> None:
        """The notes of one topic each lie in a part of their own."""
        self.flags = FlagNotes(self.machine)
        self.calls = CallNotes(self.machine)
        self.arrays = NumpyNotes(self.machine)
        self.walks = Walks(self.machine)
        self.functions = FunctionNotes(self.machine)
        self.freezes = FreezeNotes(self.machine)
        self.overwritten = OverwriteNotes(self.machine)
        self.leaves = LeafNotes(self.machine)
        self.registration = Registration(self.machine)
        self.given = OptimizerNotes(self.machine)
        self.snapshots = SnapshotNotes(self.machine)
        self.modes = ModeNotes(self.machine)
        self.escapes = EscapeNotes(self.machine)
        self.flow = Flow(self.machine)
        self.targets = Targets(self.flow)
        self.protocol = Protocol(self.machine)
        self.numbers = NumberAttributes(self.machine)
        self.evaluations = Evaluations(self.machine)
        self.recurrences = Recurrences(self.machine)

        self.thrown_away = ThrownAway(self.machine)

    def conclude_topics(self, module: Module) -> None:
        """The notes that lie in parts of their own become events."""
        self.freezes.conclude()
        self.overwritten.conclude()
        self.calls.conclude(module)
        self.walks.conclude(self.escaped_nodes)
        self.modes.conclude()
        self.targets.conclude()
        self.protocol.conclude()
        self.recurrences.conclude(self.used_nodes)
        if not self.machine.cut_short:
            self.given.conclude(self.optimizers, self.reached_leaves, self.cut_notes.forced)
            self.registration.conclude(self.optimizers, self.reached_leaves, self.cut_notes.wanted)
        if self.escapes.stops or self.escapes.made:
            self.escapes.conclude(module.parents)
        if self.machine.rewritten or self.snapshots.noticed:
            self.arrays.conclude(module.parents)
            edited = {edit.tensor.alias.node for edit in self.edits if edit.tensor.alias is not None}
            self.snapshots.conclude(module.parents, edited)

    def looked_at(self, node: ast.AST, value: Value) -> None:
        """A value was read after something was changed behind its back."""
        for ref in refs(value):
            content = self.machine.cells.get(ref.address)
            if isinstance(content, (Dict, Sequence)):
                self.snapshots.looked_at(node, ref)
            else:
                storage = getattr(content, "storage", None) or frozenset({ref.address})
                self.arrays.looked_at(node, ref.address, storage, content)

    def noticed(self) -> bool:
        """Whether there is anything to judge."""
        return bool(
            self.kept
            or self.modules
            or self.edits
            or self.data
            or self.losses_of
            or self.evaluations.found
            or self.dead
            or self.constant_roots
            or self.cut_notes.roots
            or self.cut_notes.raising
            or self.cut_notes.copied
        )

    # -- told by the machine

    def stored(self, site: ast.AST, holder: Ref, value: Value, how: str) -> None:
        """`value` was put into `holder`; `how` is one of GROWING, or the name of an attribute."""
        m = self.machine
        if how == "+":
            self.snapshots.added(site, value)
        content = m.cells.get(holder.address)
        if how == "requires_grad" and value == TRUE:
            self.cut_notes.flagged[holder.address & ~1] = site
        if how not in GROWING and how:
            self.walks.attribute_set(site, holder, how)
            self.registration.stored(site, holder, how)
        if (
            type(content) is Instance
            and m.classes[content.owner].is_module
            and m.frames[-1].receiver != holder
        ) and type(m.cells.get(getattr(value, "address", -1))) in (Instance, Layer):
            self.changed.add(value.address & ~1)  # a part was swapped from outside: a new head
        if not m.loops or not _may_hold(m, value):
            return
        forward = getattr(m.frames[-1].node, "name", "") == "forward" and m.frames[-1].receiver == holder
        number = how not in GROWING and self.numbers.holds(holder, how, site)
        if how not in GROWING and not (forward or number):
            return
        frames = tuple(frame.context for frame in m.frames)
        if how == "+":
            element = Store(site, m.where(), holder, value, how, frames, forward)
            for ref, state in held_tensors(m, value):
                for node in state.nodes:
                    self.elements[node] = (element, ref)
        for loop in m.loops:
            if holder.address not in loop.allocs:
                loop.stores.append(Store(site, m.where(), holder, value, how, frames, forward))

    def returned(self, value: ast.expr) -> None:
        """A function returns what this expression gives."""
        for part, state in left_with_graph(self.machine, value):
            if self._freed(state.nodes) == YES:
                self._keep(state, Place(part, self.machine.where(), part), "", None, "returned")
        for part in left_beside(value) if self.machine.mode == GRAD else ():
            if part not in self.machine.states or self.machine.states[part].requires_grad == MAYBE:
                origin = Origin(part, "a term of the sum that is returned beside it")
                state = Tensor(YES, origin=origin, assumes=frozenset({"the sum requires grad"}))
                self._keep(state, Place(part, self.machine.where(), part), "", None, "beside", freed=YES)

    def consumed(self, nodes: dict[int, Node], sure: Iterable[int]) -> None:
        """A backward visited these nodes, and some of them whatever path the program took."""
        self.order += 1
        for address in nodes:
            self.used_nodes[address] = self.order
        self.surely_used.update(sure)
        for loop in self.machine.loops:
            loop.trains = True

    def reached(self, leaves: frozenset[int], cuts: frozenset[int], site: ast.AST) -> None:
        """A backward reached these leaves, and these cuts lie on its way."""
        self.reached_leaves |= leaves
        self.snapshots.reached(leaves)
        if self.stepping:
            self.pending, self.stepping = {}, False
        self.pending[site] = None
        self.cuts_of.setdefault(site, set()).update(cuts)
        self.cut_notes.leaves_of.setdefault(site, set()).update(leaves)

    def walked(self, site: ast.AST, root: Tensor, *, certain: bool) -> None:
        """A backward runs from a root; the graph is still as it was built."""
        self.freezes.used()
        self.targets.look(self.flow.backward(site, root))
        self.protocol.backward(site, root, certain=certain)
        self.calls.backward_from(site, root)

    def written(self, site: ast.AST, state: Tensor, operands: list[Tensor], words: str) -> None:
        """A tensor was changed in place, from these."""
        unrecorded.edited(self.machine, site, state, target_of(site))
        self.flow.edited(site, state, operands, whole=words in ("copy_()", "[...] ="))
        self.protocol.edited(site, state, words)

    def called_under(self, place: ast.AST | None, ref: Ref, site: ast.AST) -> None:
        """A module was called where this `with` or decorator has turned grad mode off."""
        self.registration.module_called(ref, site)
        if place is not None:
            self.under.setdefault(place, set()).add(ref.address & ~1)

    def ineffective(self, dead: frozenset[int], site: ast.AST) -> None:
        """A backward was run of a loss to which terms were added that these cuts make constants."""
        for cut in dead:
            self.dead.setdefault(cut, site)

    def stepped(self, ref: Ref, content: Optimizer, site: ast.AST, *, scaler: bool = False) -> None:
        """An optimizer made a step."""
        self.freezes.used()
        self.snapshots.stepped(content.owns, site)
        self.flow.step(content)
        self.protocol.step(ref, content, site, scaler=scaler)
        self.stepping = True
        for owned in content.owns:
            self.losses_of.setdefault(owned, {}).update(self.pending)

    def optimizer_made(self, ref: Ref, content: Optimizer, site: ast.AST) -> None:
        """An optimizer was made."""
        self.freezes.used()
        self.optimizers.append((ref, content, site))
        self.flow.owns(content)
        self.protocol.made(ref, content)
        if len(self.optimizers) > MOST_NAMED_OPTIMIZERS:
            return
        self.given.made(content, site)
        m = self.machine
        named = [(key, value) for key, value in m.cells.items() if type(value) is Ref and type(key) is tuple]
        for key, value in named:
            if str(key[1]).startswith("#") or not is_module(m, value):
                continue
            for path, leaf in members(m, value).parameters:
                name = f"{key[1]}.{path}"
                if key[1] != "self" and len(name) > len(self.leaf_names.get(leaf.address, "")):
                    self.leaf_names[leaf.address] = name

    def evaluated(self, receiver: Value, site: ast.AST) -> None:
        """`eval()` was called on a module."""
        for address in _addresses(receiver):
            self.eval_sites.setdefault(address & ~1, {})[site] = None

    def module_called(self, ref: Ref, site: ast.AST, result: Value) -> None:
        """A module was called; only calls from outside other modules are of interest."""
        self.freezes.used()
        m = self.machine
        self.flow.called(ref, site, result)
        frame = m.frames[-1]
        if any(getattr(f.node, "name", "") == "forward" for f in m.frames):
            return
        if m.mode == GRAD and m.mode_nodes:
            return  # somebody turned grad mode on for it
        held = held_tensors(m, result)
        graphs = [state for _, state in held if state.requires_grad == YES and state.nodes]
        if not graphs:
            return
        nodes = frozenset[int]().union(*(state.nodes for state in graphs))
        self.modules.append(
            ModuleCall(
                site,
                m.where(),
                graphs[0],
                nodes,
                ref,
                m.cells.get((ref.address, "training")),
                m.mode,
                frame.node,
                bool(m.loops),
                frame.receiver == ref,
            )
        )

    def edited(self, site: ast.AST, state: Tensor, target: ast.expr | None, how: str) -> None:
        """A tensor was changed in place."""
        m = self.machine
        self.arrays.tensor_edited(site, state, target)
        alias = state.alias
        if alias is None:
            return
        sources = tuple(content for at in alias.source if type(content := m.cells.get(at)) is Tensor)
        edit = Edit(site, m.where(), state, target, how, (), m.mode, sources)
        self.edits.append(edit)
        if alias.kind != "data":
            self.spoil(edit, state)
        else:
            for read in self.data.values():
                if read.node is alias.node:
                    self.spoil(read, state)
                    read.mode = m.mode
                    if read.kind == "read":
                        read.kind, read.write, read.how, read.target = "written", site, how, target
                        read.calls = m.where()
                        read.forward = read.forward and _only_computes(m)

    def spoil(self, edit: Any, state: Tensor) -> None:
        """Mark the nodes that saved what is edited; a backward that reaches one of them will tell."""
        m = self.machine
        found = savers(m, state)
        if not found:
            return
        bit = 1 << len(self.spoilers)
        self.spoilers.append(edit)
        for address in found:
            before = m.cells.get(spoiled_key(address), 0)
            m.store.set(spoiled_key(address), before | bit)

    def needed_spoiled(self, bits: int, node: Node) -> None:
        """A backward reached a node that had saved what was edited since."""
        for number, edit in enumerate(self.spoilers):
            if bits >> number & 1 and node.node not in edit.saved:
                edit.saved = (*edit.saved, node.node)

    def data_read(self, node: ast.AST, value: Value, state: Tensor) -> None:
        """`.data` was read."""
        m = self.machine
        key = (node, m.where())
        if key not in self.data:
            of_grad = any(address in m.grads for address in _addresses(value))
            self.data[key] = DataRead(node, m.where(), state, of_grad=of_grad, forward=_only_computes(m))

    def data_assigned(self, node: ast.AST, value: Value, state: Tensor, new: Tensor | None) -> None:
        """`.data = …`."""
        m = self.machine
        of_grad = any(address in m.grads for address in _addresses(value))
        read = DataRead(
            node, m.where(), state, "assigned", node, (), of_grad, forward=_only_computes(m), mode=m.mode
        )
        self.data[(node, m.where())] = read
        self.spoil(read, state)
        self.protocol.edited(node, state, ".data =")
        if new is not None:
            self.flow.edited(node, state, [new], whole=True)

    def escaped(self, value: Value) -> None:
        """A value was handed to a caller that is not in this file: it may run a backward over it."""
        m = self.machine
        for _, state in held_tensors(m, value):
            self.escaped_nodes |= set(reachable(m, state.nodes))

    # -- the end of a loop's iteration

    def end_of_pass(self, loop: Loop) -> None:
        """Look for graphs of this iteration that something older holds."""
        m = self.machine
        remember(m)
        stores, loop.stores = loop.stores, []
        if loop.trains:
            self.walks.end_of_pass(loop, loop.node)
        for store in stores:
            if store.holder.address in loop.allocs:
                continue
            if store.how not in GROWING:
                self._attribute(store)
                continue
            if m.cells.get(store.holder.address) is None:
                continue
            if (
                not loop.trains
                and (store.how == "=" or m.context_of(store.holder.address) == loop.context)
                and loop.node is not None
            ):
                continue  # what an inference loop collects for its own function: not for ever
            inside = {ref for ref, _ in held_tensors(m, store.holder)}
            for ref, state in held_tensors(m, store.value):
                if state.has_graph and state.nodes and ref in inside:
                    self._keep(
                        state, self._place(store, ref), holder_words(store.site)[0], store.holder, "grow"
                    )
        if loop.number > 1:
            self._chains(loop)
            if m.hooks.placed and loop.node is not None:
                hooks_placed.end_of_pass(m, loop)

    def _freed(self, nodes: frozenset[int]) -> int:
        found = reachable(self.machine, nodes).values()
        keepers = [node for node in found if node.keeps & YES and node.freed != YES]
        if not keepers:
            return YES if any(node.freed == YES for node in found) else NO
        return NO if any(node.freed == NO for node in keepers) else MAYBE

    def _keep(
        self,
        state: Tensor,
        place: Place,
        words: str,
        holder: Ref | None,
        how: str,
        attribute: str = "",
        freed: int = 0,
    ) -> None:
        self.order += 1
        made = self.machine.site_of(holder.address) if holder is not None else None
        known = freed or self._freed(state.nodes)
        self.kept.append(Kept(place, state, state.nodes, words, made, known, how, self.order, attribute))

    def _place(self, store: Store, ref: Ref) -> Place:
        """The place where what is kept could do without its graph: where it is stored, or where it was handed over."""
        m = self.machine
        earlier = self._gathered(ref)
        if earlier is not None:
            return self._place(*earlier)
        value = holder_words(store.site)[1]
        site, calls = store.site, store.calls
        value = self._entry(value, ref)
        born = m.context_of(ref.address)
        for depth in range(len(store.frames) - 1, 0, -1):
            if not calls or m.within(born, store.frames[depth]):
                break
            argument = self._argument(calls[-1], ref)
            if argument is None:
                break
            site, calls, value = calls[-1], calls[:-1], self._entry(argument, ref)
        origin = getattr(m.cells.get(ref.address), "origin", None)
        if (
            origin is not None
            and origin.text == "clone()"
            and isinstance(origin.node, ast.Call)
            and isinstance(origin.node.func, ast.Attribute)
        ):
            return Place(origin.node, m.calls_of.get(origin.node, ()), origin.node.func.value)
        literal = self._literal(store.value, ref)
        if literal is not None and site is store.site:
            return Place(literal, calls, literal)
        return Place(site, calls, value)

    def _gathered(self, ref: Ref) -> tuple[Store, Ref] | None:
        """Where the elements were put that a stack or cat has gathered: they could have done without their graph."""
        state = self.machine.cells.get(ref.address)
        if type(state) is not Tensor or state.origin is None or state.origin.text not in ("stack()", "cat()"):
            return None
        for address in state.nodes:
            node = self.machine.cells.get(node_key(address))
            for inner in node.inputs if type(node) is Node else ():
                found = self.elements.get(inner) or self.elements.get(inner ^ 1)
                if found is not None:
                    return found
        return None

    def _argument(self, call: ast.AST, ref: Ref) -> ast.expr | None:
        """The argument of a call that is just this tensor."""
        for _, value, node in self._arguments(call):
            if value is not None and _is(value, ref) and not isinstance(node, ast.Starred):
                return node
        return None

    def _arguments(self, call: ast.AST) -> Iterator[tuple[str, Value | None, ast.expr]]:
        """Parameter, value and expression of what a call passed, for the last few times that it ran."""
        if not isinstance(call, ast.Call):
            return
        for values, keywords, parameters in self.machine.passed.get(call, ()):
            named = [*parameters.parameters, *parameters.keyword_only]
            extra = max(len(values) - len(call.args), 0)  # a method's receiver comes first
            places = [*parameters.parameters[extra:], *[parameters.star or ""] * len(call.args)]
            yield from zip(places, values[extra:], call.args, strict=False)
            for keyword in call.keywords:
                name = keyword.arg or ""
                yield name if name in named else parameters.stars or "", keywords.get(name), keyword.value

    def _entry(self, value: ast.expr | None, ref: Ref) -> ast.expr | None:
        """Of a tuple or list that is stored, the one element that holds the graph."""
        if not isinstance(value, (ast.Tuple, ast.List, ast.Dict)):
            return value
        parts = value.values if isinstance(value, ast.Dict) else value.elts
        states = self.machine.states
        holding = [part for part in parts if part in states and states[part].requires_grad & YES]
        return holding[0] if len(holding) == 1 else value

    def _literal(self, value: Value, ref: Ref) -> ast.expr | None:
        """The entry of a dict literal made elsewhere that only repeats a name: the name's owner can keep the graph."""
        m = self.machine
        for address in _addresses(value):
            site = m.site_of(address)
            if isinstance(site, ast.Dict):
                if any(isinstance(key, ast.Constant) and self._is_needed(key.value) for key in site.keys):
                    return None  # the dict itself is where the loss is taken from
                for part in site.values:
                    state = m.states.get(part)
                    if (
                        not isinstance(part, (ast.Name, ast.Attribute))
                        or state is None
                        or not state.requires_grad & YES
                    ):
                        continue
                    return part
        return None

    def _is_needed(self, key: object) -> bool:
        """Whether an entry of this name is taken out to be returned, computed with or run backward from."""
        if self.entries is None:
            self.entries = set()
            for node in ast.walk(self.machine.tree):
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.Subscript) and isinstance(child.slice, ast.Constant):
                        backward = isinstance(node, ast.Attribute) and node.attr == "backward"
                        if backward or isinstance(node, (ast.Return, ast.BinOp, ast.Assign, ast.AugAssign)):
                            self.entries.add(child.slice.value)
        return key in self.entries

    def _attribute(self, store: Store) -> None:
        """An attribute that still holds a graph when the iteration is over: set by a forward, or a number elsewhere."""
        m = self.machine
        value = m.cells.get((store.holder.address, store.how))
        if value is None:
            return
        how = "kept" if store.forward else "number"
        for ref, state in held_tensors(m, store.value):
            if not (state.has_graph and state.nodes and _is(value, ref)):
                continue
            if how == "number" or self._freed(state.nodes) == YES:
                words, kept = holder_words(store.site)
                place = Place(store.site, store.calls, kept)
                self._keep(state, place, words, store.holder, how, store.how)

    def _chains(self, loop: Loop) -> None:
        """A result that leads to the same result of the iteration before: a graph that grows for ever."""
        m = self.machine
        seen: set[int] = set()
        for key, value in m.store.delta(loop.base).items():
            if value is None or (type(key) is tuple and str(key[1]).startswith("#")):
                continue
            if type(key) is int:
                states = [value] if type(value) is Tensor and key not in loop.allocs else []
            elif type(key) is tuple and key[0] not in loop.allocs:
                held = held_tensors(m, value) if type(value) is not int else []
                states = [state for _, state in held]
                self._rebuilt(loop, value, held)
            else:
                states = []
            for state in states:
                if state.requires_grad == YES and state.nodes and not state.nodes <= seen:
                    seen |= state.nodes
                    self._chain(loop, state)

    def _rebuilt(self, loop: Loop, value: Value, held: list[tuple[Ref, Tensor]]) -> None:
        """A tuple or list that is made anew from the old one and one more: it grows as well."""
        m = self.machine
        if not loop.trains or type(m.cells.get(getattr(value, "address", -1))) is not Sequence:
            return
        site = next((s for at in _addresses(value) if (s := m.site_of(at)) is not None), None)
        if not isinstance(site, (ast.Tuple, ast.List, ast.BinOp)):
            return
        older = {ref.address for ref, _ in held if ref.address & 1}
        for ref, state in held:
            if ref.address in loop.allocs and ref.address + 1 in older and state.has_graph and state.nodes:
                self._keep(state, Place(site, m.calls_of.get(site, ()), None), "", None, "rebuilt")

    def _chain(self, loop: Loop, state: Tensor) -> None:
        m = self.machine
        for start in state.nodes:
            node = m.cells.get(node_key(start))
            if type(node) is not Node or start & 1 or start not in loop.allocs:
                continue
            average = running_average(m, loop.allocs, start)
            if average is not None:
                self._average(loop, state, average)
                continue
            if node.name not in ADDING or node.freed & YES:
                continue  # no chain; or one that itself takes part in a backward: state that is carried over
            behind = reachable(m, node.inputs)
            if start + 1 not in behind:
                continue
            if not loop.trains and not self._evaluates(loop):
                continue
            if any(self._feeds_back(at, start + 1) for at in node.inputs - {start} if not at & 1):
                continue  # what is added depends on the total itself: state, not a total
            fresh = {
                at: n
                for at, n in behind.items()
                if at in loop.allocs and not at & 1 and n.node is not node.node
            }
            freed = NO
            if any(n.freed == YES for n in fresh.values()):
                freed = YES
            elif any(n.freed & YES for n in fresh.values()):
                freed = MAYBE
            calls = m.calls_of.get(node.node, ())
            site: ast.AST = node.node
            words, value = "", None
            handed = self._handed_over(site, calls)
            while calls and handed:
                argument = self._chained_argument(calls[-1], fresh, start, handed)
                if argument is None:
                    break
                words = words or holder_words(site)[0]
                site, calls, value = calls[-1], calls[:-1], argument
                handed = {n.id for n in ast.walk(argument) if isinstance(n, ast.Name)}
            self._keep(
                state._replace(nodes=frozenset({start})),
                Place(site, calls, value),
                words,
                None,
                "chain",
                freed=freed,
            )
            self.kept[-1].trains = loop.trains

    def _average(self, loop: Loop, state: Tensor, average: Average) -> None:
        """A running average whose graph goes back to the first iteration."""
        m = self.machine
        if not loop.trains and not self._evaluates(loop):
            return
        made = average.node.node
        calls = m.calls_of.get(made, ())
        fresh = reachable(m, frozenset(average.new))
        place = Place(made, calls, None)
        new = entering(m, made, average)
        handed = {n.id for n in ast.walk(new) if isinstance(n, ast.Name)} if new is not None else set()
        while place.calls and handed:
            argument = self._chained_argument(place.calls[-1], fresh, average.address, handed)
            if argument is None:
                break
            place = Place(place.calls[-1], place.calls[:-1], argument)
            handed = {n.id for n in ast.walk(argument) if isinstance(n, ast.Name)}
        state = state._replace(nodes=frozenset({average.address}))
        self._keep(state, place, "", None, "average", freed=average.freed)
        self.kept[-1].trains = loop.trains
        self.kept[-1].average = average

    def _evaluates(self, loop: Loop) -> bool:
        """Whether a module was called in the loop: then what it adds up is a measure of its results."""
        return any(call.nodes & loop.allocs for call in self.modules)

    def _feeds_back(self, at: int, total: int) -> bool:
        """Whether a term leads to the total of the iteration before; a total that is only weighted does not count."""
        m = self.machine
        if total not in reachable(m, frozenset({at})):
            return False
        node = m.cells.get(node_key(at))
        return not (type(node) is Node and node.name in WEIGHTING and node.inputs <= {total})

    def _handed_over(self, site: ast.AST, calls: tuple[ast.AST, ...]) -> set[str]:
        """The names in what is added to an attribute: a meter adds what it is given."""
        names: set[str] = set()
        if isinstance(site, ast.AugAssign) and _is_of_self(site.target):
            names = {n.id for n in ast.walk(site.value) if isinstance(n, ast.Name)}
        elif isinstance(site, ast.BinOp) and calls:
            statement = next(
                (s for s in ast.walk(self.machine.tree) if isinstance(s, ast.Assign) and s.value is site),
                None,
            )
            if statement is not None and _is_of_self(statement.targets[0]):
                names = {n.id for n in ast.walk(site) if isinstance(n, ast.Name)}
        for loop in ast.walk(self.machine.tree) if names else ():
            # `for name, value in values.items()`: what is added came in through `values`
            if isinstance(loop, ast.For) and any(n is site for n in ast.walk(loop)):
                bound = {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)}
                if bound & names:
                    names |= {n.id for n in ast.walk(loop.iter) if isinstance(n, ast.Name)}
        return names

    def _chained_argument(
        self, call: ast.AST, fresh: dict[int, Node], start: int, names: set[str]
    ) -> ast.expr | None:
        """The argument of a call by which this iteration's graph came into a chain."""
        for name, value, node in self._arguments(call):
            if name not in names or value is None:
                continue
            for _, state in self.machine.tensors(value):
                if state.nodes & fresh.keys() and start not in state.nodes and start + 1 not in state.nodes:
                    return node
        return None


def _only_computes(m: Machine) -> bool:
    """Whether a module's forward is run, and nothing in it trains: some explainers train in a method of that name."""
    names = [getattr(frame.node, "name", "") for frame in m.frames]
    if "forward" not in names:
        return False
    return not any("backward" in frame.info.attributes for frame in m.frames[names.index("forward") :])


def _may_hold(m: Machine, value: Value) -> bool:
    """Whether a value holds a tensor, or is something of which a backward may still tell that it is one."""
    return bool(held_tensors(m, value)) or any(
        type(m.cells.get(ref.address)) is Opaque for ref in refs(value)
    )


def _is_of_self(target: ast.expr) -> bool:
    """Whether a target is, or lies in, an attribute: `self.total`, `self.totals[name]`."""
    while isinstance(target, ast.Subscript):
        target = target.value
    return isinstance(target, ast.Attribute)


def _is(value: Value, ref: Ref) -> bool:
    return value == ref or (type(value) is Union and ref in value.atoms)


def _addresses(value: Value) -> list[int]:
    return [ref.address for ref in refs(value)]


def holder_words(site: ast.AST) -> tuple[str, ast.expr | None]:
    """What keeps the value, in the user's words, and the expression that is kept."""
    match site:
        case ast.Call(func=ast.Attribute(value=holder), args=[*_, value]):
            return ast.unparse(holder), value
        case ast.AugAssign(target=target, value=value):
            return ast.unparse(target), value
        case ast.Assign(targets=[ast.Subscript(value=holder)], value=value):
            return ast.unparse(holder), value
        case ast.Assign(targets=[target], value=value):
            return ast.unparse(target), value
    return "", None
