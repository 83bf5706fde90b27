"""Judgements that need more than one moment of the run: what was kept, consumed, reached, edited."""

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from gradvet.autograd.graph import reachable, spoiled_key
from gradvet.autograd.held import held_tensors
from gradvet.autograd.judging import hooks_placed
from gradvet.autograd.judging.calls import CallNotes
from gradvet.autograd.judging.chains import Chains
from gradvet.autograd.judging.cut_notes import CutNotes
from gradvet.autograd.judging.doubles import Doubles
from gradvet.autograd.judging.escapes import EscapeNotes
from gradvet.autograd.judging.evaluations import Evaluations
from gradvet.autograd.judging.flags import FlagNotes
from gradvet.autograd.judging.flow import Flow
from gradvet.autograd.judging.freezes import FreezeNotes
from gradvet.autograd.judging.functions import FunctionNotes
from gradvet.autograd.judging.kept_gradients import KeptGradients
from gradvet.autograd.judging.leaf_notes import LeafNotes
from gradvet.autograd.judging.masked import Masked
from gradvet.autograd.judging.mode_left import ModeNotes
from gradvet.autograd.judging.number_attributes import NumberAttributes
from gradvet.autograd.judging.numpy_alias import NumpyNotes, target_of
from gradvet.autograd.judging.open_adversaries import OpenAdversaries
from gradvet.autograd.judging.open_weights import OpenWeights
from gradvet.autograd.judging.optimizer_notes import OptimizerNotes
from gradvet.autograd.judging.overwritten import OverwriteNotes
from gradvet.autograd.judging.protocol import Protocol
from gradvet.autograd.judging.recurrences import Recurrences
from gradvet.autograd.judging.registration import Registration
from gradvet.autograd.judging.retention import (
    GROWING,
    Place,
    Retention,
    Store,
    addresses,
)
from gradvet.autograd.judging.returned import left_beside, left_beside_cuts, left_with_graph
from gradvet.autograd.judging.snapshots import SnapshotNotes
from gradvet.autograd.judging.step_verdicts import StepVerdicts
from gradvet.autograd.judging.targets import Targets
from gradvet.autograd.judging.thrown_away import ThrownAway
from gradvet.autograd.judging.walks import Walks
from gradvet.autograd.library import unrecorded
from gradvet.autograd.library.evidence import remember
from gradvet.autograd.library.layers import BUFFERS, is_module, members
from gradvet.autograd.library.open_modules import readable
from gradvet.autograd.library.storages import savers
from gradvet.autograd.library.tensor_methods import in_forward
from gradvet.autograd.machine import Loop, Machine
from gradvet.autograd.memory.domain import GRAD, YES, Node, Origin, Tensor
from gradvet.autograd.memory.values import (
    FALSE,
    TRUE,
    Dict,
    Instance,
    Layer,
    Opaque,
    Optimizer,
    Ref,
    Sequence,
    Value,
    refs,
)
from gradvet.syntax.parse import Module


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


MOST_NAMED_OPTIMIZERS = 50
"""For the parameters of those that come later, no names are looked for."""


@dataclass(slots=True)
class Judge:
    """Collects what the machine tells it, and gives the verdicts at the end."""

    machine: Machine
    modules: list[ModuleCall] = field(default_factory=list)
    inner: list[ModuleCall] = field(default_factory=list)
    """The calls of what is in eval mode, in forwards of other modules."""
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
    leaf_names: dict[int, str] = field(default_factory=dict)
    spoilers: list[Any] = field(default_factory=list)
    changed: set[int] = field(default_factory=set)
    cut_notes: CutNotes = field(default_factory=CutNotes)
    eval_sites: dict[int, dict[ast.AST, None]] = field(default_factory=dict)
    eval_parts: dict[int, dict[ast.AST, None]] = field(default_factory=dict)
    in_forwards: set[ast.AST] = field(default_factory=set)
    order: int = 0
    containers: int = 0
    """How many modules of torch are being run: what they call is a part of them."""
    flags: FlagNotes = field(init=False)
    calls: CallNotes = field(init=False)
    arrays: NumpyNotes = field(init=False)
    leaves: LeafNotes = field(init=False)
    registration: Registration = field(init=False)
    given: OptimizerNotes = field(init=False)
    walks: Walks = field(init=False)
    snapshots: SnapshotNotes = field(init=False)
    kept_gradients: KeptGradients = field(init=False)
    open_weights: OpenWeights = field(init=False)
    modes: ModeNotes = field(init=False)
    functions: FunctionNotes = field(init=False)
    freezes: FreezeNotes = field(init=False)
    overwritten: OverwriteNotes = field(init=False)
    escapes: EscapeNotes = field(init=False)
    flow: Flow = field(init=False)
    targets: Targets = field(init=False)
    masked: Masked = field(init=False)
    protocol: Protocol = field(init=False)
    adversaries: OpenAdversaries = field(init=False)
    numbers: NumberAttributes = field(init=False)
    evaluations: Evaluations = field(init=False)
    recurrences: Recurrences = field(init=False)
    retention: Retention = field(init=False)
    chains: Chains = field(init=False)
    thrown_away: ThrownAway = field(init=False)
    doubles: Doubles = field(init=False)

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
        self.kept_gradients = KeptGradients(self.machine)
        self.open_weights = OpenWeights(self.machine)
        self.modes = ModeNotes(self.machine)
        self.escapes = EscapeNotes(self.machine)
        self.flow = Flow(self.machine)
        self.targets = Targets(self.flow)
        self.masked = Masked(self.flow)
        self.protocol = Protocol(self.machine)
        self.adversaries = OpenAdversaries(self.machine)
        self.numbers = NumberAttributes(self.machine)
        self.evaluations = Evaluations(self.machine)
        self.recurrences = Recurrences(self.machine)
        self.retention = Retention(self.machine)
        self.chains = Chains(self.machine, self.retention)
        self.thrown_away = ThrownAway(self.machine)
        self.doubles = Doubles(self.machine)

    def conclude_topics(self, module: Module) -> None:
        """The notes that lie in parts of their own become events."""
        self.freezes.conclude(module.parents)
        if self.leaves.missing:
            self.leaves.conclude(module.parents)
        self.overwritten.conclude()
        self.calls.conclude(module)
        self.walks.conclude(self.escaped_nodes)
        self.modes.conclude()
        self.targets.conclude()
        self.open_weights.conclude()
        StepVerdicts(self.machine, self.protocol).conclude()
        self.recurrences.conclude(self.used_nodes)
        if not self.machine.cut_short:
            self.given.conclude(self.optimizers, self.reached_leaves, self.cut_notes.forced)
            self.registration.conclude(self.optimizers, self.reached_leaves, self.cut_notes.wanted)
        if self.escapes.stops or self.escapes.made:
            self.escapes.conclude(module.parents)
        if self.kept_gradients.met:
            self.kept_gradients.conclude(module.parents)
        if self.machine.rewritten or self.snapshots.noticed:
            self.arrays.conclude(module.parents)
            edited = {edit.tensor.alias.node for edit in self.edits if edit.tensor.alias is not None}
            self.snapshots.conclude(module.parents, edited)

    def looked_at(self, node: ast.AST, value: Value) -> None:
        """A value was read after something was changed behind its back."""
        contents = {ref: self.machine.cells.get(ref.address) for ref in refs(value)}
        if any(isinstance(content, (Dict, Sequence)) for content in contents.values()):
            self.snapshots.looked_at(node, value)
        for ref, content in contents.items():
            if not isinstance(content, (Dict, Sequence)):
                storage = getattr(content, "storage", None) or frozenset({ref.address})
                self.arrays.looked_at(node, ref.address, storage, content)

    def noticed(self) -> bool:
        """Whether there is anything to judge."""
        return bool(
            self.retention.kept
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
            self.snapshots.added(site, holder, value)
            hooks_placed.added(m, site, holder)
        content = m.cells.get(holder.address)
        if how == "requires_grad" and value == TRUE:
            self.cut_notes.flagged[holder.address & ~1] = site
        if how in ("", "=", "*"):
            self.walks.item_set(site, holder)
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
        if how not in GROWING and not (forward or self.numbers.holds(holder, how, site)):
            return
        frames = tuple(frame.context for frame in m.frames)
        if how == "+":
            element = Store(site, m.where(), holder, value, how, frames, forward)
            for ref, state in held_tensors(m, value):
                for node in state.nodes:
                    self.retention.elements[node] = (element, ref)
        store = Store(site, m.where(), holder, value, how, frames, forward)
        for loop in m.loops:
            if holder.address not in loop.allocs:
                loop.stores.append(store)

    def returned(self, value: ast.expr) -> None:
        """A function returns what this expression gives."""
        m = self.machine
        kept = set()
        for part, state in left_with_graph(m, value):
            if self.retention.freed(state.nodes) == YES:
                kept.add(part)
                self.retention.keep(state, Place(part, m.where(), part), "", None, "returned")
        if m.mode != GRAD:
            return
        for part in (*left_beside(value), *left_beside_cuts(value, m.frames[-1].node)):
            known = m.states.get(part)
            if part not in kept and (known is None or known.requires_grad & YES):
                origin = Origin(part, "a term of the loss that is returned")
                state = Tensor(YES, origin=origin, assumes=frozenset({"the loss requires grad"}))
                self.retention.keep(state, Place(part, m.where(), part), "", None, "beside", freed=YES)

    def consumed(self, nodes: dict[int, Node], sure: Iterable[int]) -> None:
        """A backward visited these nodes, and some of them whatever path the program took."""
        self.order += 1
        for address in nodes:
            self.used_nodes[address] = self.order
        self.surely_used.update(sure)
        bare = self.machine.bare_views
        if bare:
            bare.update((node.node, True) for node in nodes.values() if node.node in bare)
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

    def computed_from(self, site: ast.AST, things: frozenset[int], *, keeps: bool) -> None:
        """A backward runs from what was computed from these unknown things; it may keep its graph."""
        self.cut_notes.from_unknown(site, things)
        self.adversaries.backward(site, things, keeps=keeps)

    def walked(self, site: ast.AST, root: Tensor, *, certain: bool) -> None:
        """A backward runs from a root; the graph is still as it was built."""
        self.freezes.used()
        run = self.flow.backward(site, root)
        self.targets.look(run)
        self.masked.look(run.seen, site)
        self.protocol.backward(site, root, certain=certain)
        self.calls.backward_from(site, root)

    def written(self, site: ast.AST, state: Tensor, operands: list[Tensor], words: str) -> None:
        """A tensor was changed in place, from these."""
        unrecorded.edited(self.machine, site, state, target_of(site))
        self.flow.edited(site, state, operands, whole=words in ("copy_()", "[...] ="))
        self.protocol.edited(site, state, words)
        self.given.edited(state)
        self.masked.changed(state)
        if words == "zero_()" and self.machine.grads:
            self.snapshots.zeroed(state.storage, site)
            self.kept_gradients.changes(state.storage & self.machine.grads, site)

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
        self.given.stepped(ref, content, site)
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
        m = self.machine
        present = list(m.present())
        self.given.made(content, site, present)
        named = [(key, value) for key, value in present if type(value) is Ref and type(key) is tuple]
        for key, value in named:
            if str(key[1]).startswith("#") or not is_module(m, value):
                continue
            for path, leaf in members(m, value).parameters:
                name = readable(f"{key[1]}.{path}")
                if key[1] != "self" and len(name) > len(self.leaf_names.get(leaf.address, "")):
                    self.leaf_names[leaf.address] = name

    def parted(self, whole: int, part: int) -> None:
        """Of the parameters for which a leaf stands some are looked at by themselves: what is noted of it holds of them."""
        self.freezes.parted(whole & ~1, part & ~1)
        self.given.parted(whole, part)
        self.protocol.parted(whole, part)
        self.flow.parted(whole, part)
        if whole in self.reached_leaves:
            self.reached_leaves.add(part)
        own = frozenset({part})
        for at, (ref, made, site) in enumerate(self.optimizers):
            if whole in made.owns:
                self.optimizers[at] = (ref, made._replace(owns=made.owns | own), site)
                self.machine.update(
                    ref,
                    lambda c: (
                        c._replace(owns=c.owns | own) if type(c) is Optimizer and whole in c.owns else c
                    ),
                )

    def evaluated(self, receiver: Value, site: ast.AST) -> None:
        """`eval()` was called on a module, and so on those in it."""
        for ref in refs(receiver):
            self.eval_sites.setdefault(ref.address & ~1, {})[site] = None
            for _, part in members(self.machine, ref).modules:
                if part != ref:
                    self.eval_parts.setdefault(part.address & ~1, {})[site] = None

    def forward_called(self, receiver: Value, site: ast.AST, result: Value) -> None:
        """`model.forward(...)` was called by its name, in no forward: a call of the module, but for its hooks."""
        if type(receiver) is Ref and is_module(self.machine, receiver) and not in_forward(self.machine):
            self.module_called(receiver, site, result)

    def module_called(self, ref: Ref, site: ast.AST, result: Value) -> None:
        """A module was called; only calls from outside other modules are of interest."""
        self.freezes.used()
        m = self.machine
        self.flow.called(ref, site, result)
        frame = m.frames[-1]
        if self.containers:
            return
        inside = in_forward(m)
        training = m.cells.get((ref.address, "training"))
        if inside:
            self.in_forwards.add(frame.node)
            if training != FALSE:
                return
        if m.mode == GRAD and m.mode_nodes:
            return  # somebody turned grad mode on for it
        held = held_tensors(m, result)
        graphs = [state for _, state in held if state.requires_grad == YES and state.nodes]
        if not graphs:
            return
        nodes = frozenset[int]().union(*(state.nodes for state in graphs))
        (self.inner if inside else self.modules).append(
            ModuleCall(
                site,
                m.where(),
                graphs[0],
                nodes,
                ref,
                training,
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
        self.freezes.edited(state)
        alias = state.alias
        if alias is None or (alias.kind == "data" and self._is_masked(site)):
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

    def _is_masked(self, site: ast.AST) -> bool:
        """Whether a module multiplies its weights by a buffer of its own in each forward: the next time changes nothing."""
        match site:
            case ast.AugAssign(op=ast.Mult(), value=ast.Attribute(value=ast.Name(id="self"), attr=name)):
                receiver = self.machine.frames[-1].receiver
                labels = self.machine.cells.get((getattr(receiver, "address", -1), BUFFERS))
                return any(label.value == name for label in getattr(labels, "items", ()))
        return False

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
            of_grad = any(address in m.grads for address in addresses(value))
            self.data[key] = DataRead(node, m.where(), state, of_grad=of_grad, forward=_only_computes(m))

    def data_assigned(self, node: ast.AST, value: Value, state: Tensor, new: Tensor | None) -> None:
        """`.data = …`."""
        m = self.machine
        of_grad = any(address in m.grads for address in addresses(value))
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
        around = m.loops[-2] if len(m.loops) > 1 else None
        self.retention.end_of_pass(loop, stores, around)
        if loop.number > 1:
            self.chains.end_of_pass(loop, loop)
            if m.hooks.placed and loop.node is not None:
                hooks_placed.end_of_pass(m, loop)
        elif around is not None and around.trains and around.number > 1:
            self.chains.end_of_pass(
                loop, around
            )  # what a first pass adds to came from the iteration around it


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
