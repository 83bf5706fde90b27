"""The training step's protocol: clear, backward, unscale, clip, step, update, in the order of the run.

What each leaf's gradient has been through lies in the machine's memory (`memory/gradients.py`), so that branches and
iterations join it like everything else. What a step, a clear, a clip or a scaler meets is noted here, and judged at the end.
An optimizer of which the parameters are not known has one such gradient for all of them.
"""

import ast
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from gradvet.autograd.events_protocol import (
    ScalerMisused,
)
from gradvet.autograd.judging.stale import StaleNotes
from gradvet.autograd.library.evidence import was_computed
from gradvet.autograd.library.layers import is_module, members
from gradvet.autograd.library.optimizers import owned_by
from gradvet.autograd.machine import Loop, Machine
from gradvet.autograd.memory.domain import NO, NOTHING, YES, Tensor
from gradvet.autograd.memory.gradients import (
    BEFORE,
    CLEAR,
    DROPPED,
    HOLDS_NEW,
    MIXED,
    UNSEEN,
    USED,
    Gradient,
    after_backward,
    after_clear,
    after_step,
    after_unseen_backward,
    given,
    join_gradients,
    unseen,
)
from gradvet.autograd.memory.values import (
    NONE,
    Const,
    Instance,
    Layer,
    Opaque,
    Optimizer,
    Ref,
    Tuple,
    Value,
    atoms,
)
from gradvet.autograd.python.calls import Call
from gradvet.syntax.tree import walk

KEY = "#gradient"
ANY = 0
"""Stands for whatever optimizer is not met yet: what the backwards seen so far gave to its parameters."""
SCALED = "#scaled"
"""Whether the last backward, of which it is not known what it reached, was of a scaled loss that nothing has unscaled."""
PHASE = "#scaler"
SPENT = "#spent"
READY, UNSCALED, STEPPED = 1, 2, 4
SCALER = "a GradScaler"
SCHEDULER = "a learning rate scheduler"
_NAMED = re.compile(r"(?:^|_)(?:opt|optim|optimi[sz]er)s?(?:_|\d|$)", re.IGNORECASE)
_CLEARING = re.compile(
    r"(zero|clear|reset|free|empty)_?.*grad|grad.*_(zero|clear|reset|free|none)|foreach_zero", re.IGNORECASE
)
_TRAINING = re.compile(r"backward|train|step|optim|update|learn|fit", re.IGNORECASE)
Place = tuple[ast.AST, tuple[ast.AST, ...]]


class Site(NamedTuple):
    """A numbered place: the node, the calls that led there, the loops it ran in."""

    node: ast.AST
    calls: tuple[ast.AST, ...]
    loops: tuple[Loop, ...]

    @property
    def way(self) -> set[ast.AST]:
        """The node, and the calls that led there."""
        return {self.node, *self.calls}

    @property
    def begins(self) -> ast.AST | None:
        """The function that was run by itself when the place was reached."""
        first = self.calls[0] if self.calls else None
        return first if isinstance(first, (ast.FunctionDef, ast.AsyncFunctionDef)) else None


class Step(NamedTuple):
    """A step that met these gradients; one that is made by hand has `read` the gradient before."""

    number: int
    gradients: tuple[Gradient, ...]
    leaves: frozenset[int]
    manual: bool = False
    known: bool = True
    scaler: bool = False
    read: Place | None = None
    optimizer: int = 0
    instead: frozenset[int] = NOTHING
    """The optimizers of which this one is an alternative: one of them makes the step."""


class Clip(NamedTuple):
    """A clip that met these gradients; of a model that is not known, `scaled` is the backward of a scaled loss."""

    number: int
    leaves: frozenset[int]
    gradients: tuple[Gradient, ...]
    empty: ast.AST | None
    scaled: int | None = None


class Clear(NamedTuple):
    """A place that clears these gradients, and perhaps those of `others`; `optimizer` is the one that is told to, or 0.

    It is not `seen` to do so where an optimizer is handed to something that is not known; `anything` may be what a
    function clears that is not known itself.
    """

    number: int
    leaves: frozenset[int]
    others: frozenset[int]
    optimizer: int
    seen: bool = True
    anything: bool = False


@dataclass(slots=True)
class Protocol:
    """Follows gradients through the run, and says at the end what was out of order."""

    machine: Machine
    sites: list[Site] = field(default_factory=list)
    numbers: dict[Place, int] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    clips: list[Clip] = field(default_factory=list)
    waiting: set[int] = field(default_factory=set)
    followed: dict[int, set[int]] = field(default_factory=dict)
    walked: dict[int, ast.AST] = field(default_factory=dict)
    fills: dict[int, set[int]] = field(default_factory=dict)
    given_by: dict[int, set[int]] = field(default_factory=dict)
    """By optimizer the backwards that have given something to it."""
    handed: dict[int, frozenset[int]] = field(default_factory=dict)
    clears: list[Clear] = field(default_factory=list)
    stepped: set[int] = field(default_factory=set)
    alternatives: frozenset[int] = frozenset()
    anywhere: bool = False
    last: int | None = None
    leaves_of: dict[int, frozenset[int]] = field(default_factory=dict)
    optimizers: dict[int, frozenset[int]] = field(default_factory=dict)
    scalers: dict[int, bool] = field(default_factory=dict)
    scaled: dict[int, ast.AST] = field(default_factory=dict)
    unscaled: set[int] = field(default_factory=set)
    """The backwards of losses that are known, and that nothing has scaled."""
    not_plain: set[int] = field(default_factory=set)
    owned: set[int] = field(default_factory=set)
    reads: dict[int, Place] = field(default_factory=dict)
    gradients: dict[int, int] = field(default_factory=dict)
    told: set[ast.AST] = field(default_factory=set)
    used: set[int] = field(default_factory=set)
    by_hand: set[int] = field(default_factory=set)
    """Leaves, and optimizers of leaves, of which the program makes the gradients itself."""
    out_of_sight: set[int] = field(default_factory=set)
    """Leaves of modules that were given to something that is not known: it may fill their gradients."""
    forgotten: bool = False
    clearing: set[str] = field(default_factory=set)
    places: dict[tuple[int, str], dict[str, ast.AST]] = field(default_factory=dict)
    stale: StaleNotes = field(init=False)

    def __post_init__(self) -> None:
        """What a backward leaves in other networks is followed beside the rest."""
        self.stale = StaleNotes(self.machine)

    def steps_with_nothing(self, optimizer: Ref) -> bool:
        """Whether an optimizer makes steps, and never finds a gradient."""
        met = [g for step in self.steps if step.optimizer == optimizer.address for g in step.gradients]
        mine = self.optimizers.get(optimizer.address, NOTHING)
        return bool(met) and all(g.phases == CLEAR for g in met) and self.out_of_sight.isdisjoint(mine)

    def is_backward(self, site: ast.AST) -> bool:
        """Whether a backward was run there, and not only gradients computed."""
        return any(self.sites[number].node is site for number in self.leaves_of)

    # -- told by the machine

    def begins_alone(self) -> None:
        """A function is run by itself: what has run before is not what comes before it."""
        if self.machine.cells.get((ANY, KEY)) != (before := unseen(BEFORE)):
            self.machine.store.set((ANY, KEY), before)

    def backward(self, site: ast.AST, root: Tensor, *, certain: bool) -> None:
        """A backward adds to the gradients of the leaves that it reaches, and perhaps to those that are not known."""
        number = self._number(site)
        scaled = YES if any(node & ~1 in self.scaled for node in root.nodes) else NO
        if scaled == YES or root.assumes or self._may_be_scaled(root):
            self.unscaled.discard(number)
            self.not_plain.add(number)
        elif number not in self.not_plain:
            self.unscaled.add(number)
        self.leaves_of[number] = self.leaves_of.get(number, NOTHING) | root.leaves
        self.stale.backward(number, root, self.optimizers)
        for leaf in root.leaves:
            self._change(leaf, lambda g: after_backward(g, number, scaled), certain=certain)
            self.fills.setdefault(leaf & ~1, set()).add(number)
        known = bool(root.leaves) and not root.assumes
        self.anywhere |= not known
        self.machine.store.set((ANY, SCALED), scaled)
        self.last = number
        for optimizer, owns in ((ANY, NOTHING), *self.optimizers.items()):
            if not known or not (owns or self.given_to(optimizer)).isdisjoint(root.leaves):
                self._change(optimizer, lambda g: after_backward(g, number, scaled), certain=True)
                self.given_by.setdefault(optimizer, set()).add(number)

    def given_to(self, optimizer: int) -> frozenset[int]:
        """The parameters of the modules that were handed to what made an optimizer: `get_optimizer(model, lr)`."""
        found = self.handed.get(optimizer)
        if found is None:
            m = self.machine
            content = m.cells.get(optimizer)
            given = content.inputs if type(content) is Opaque and was_computed(content) else ()
            modules = [atom for value in given for atom in atoms(value) if is_module(m, atom)]
            found = frozenset(ref.address for module in modules for _, ref in members(m, module).parameters)
            if optimizer != ANY:
                self.handed[optimizer] = found
        return found

    def _may_be_scaled(self, root: Tensor) -> bool:
        """Whether a loss was multiplied by something of which nothing is known, such as a scale, or came from there."""
        return root.loose or not root.nodes

    def step(
        self, ref: Ref, content: object, node: ast.AST, *, known: bool = True, scaler: bool = False
    ) -> None:
        """An optimizer makes a step."""
        number = self._number(node)
        self.machine.judge.adversaries.step(ref.address, node)
        owns = content.owns if type(content) is Optimizer else frozenset[int]()
        self.owned |= owns
        self.stepped.add(ref.address)
        self.optimizers[ref.address] = (
            owns if type(content) is Optimizer and content.all_known else frozenset()
        )
        cells = owns if self._are_seen(self.optimizers[ref.address]) else frozenset({ref.address})
        met = tuple(self._of(cell) for cell in cells)
        if cells == owns:
            self.stale.stepped(number, ref.address, owns, met)
        self.used.update(n for g in met if g.phases & HOLDS_NEW for n in g.backwards)
        self.steps.append(
            Step(
                number,
                met,
                frozenset(cells),
                known=known,
                scaler=scaler,
                optimizer=ref.address,
                instead=self.alternatives if ref.address in self.alternatives else NOTHING,
            )
        )
        for clip in self.waiting:
            self.followed.setdefault(clip, set()).add(len(self.steps) - 1)
        self.waiting.clear()
        for cell in owns | {ref.address}:
            self._change(cell, lambda g: after_step(g, number), certain=True)

    def _are_seen(self, owns: frozenset[int]) -> bool:
        """Whether it can be told which backward reaches these leaves: not of a module that is itself not known."""
        filled = [leaf & ~1 in self.fills for leaf in owns]
        if self.anywhere:
            return bool(filled) and all(filled)
        if any(filled):
            return True
        states = [self.machine.cells.get(leaf) for leaf in owns]
        return bool(owns) and all(type(state) is Tensor and not state.assumes for state in states)

    def made(self, ref: Ref, content: Optimizer) -> None:
        """An optimizer was made."""
        self.owned |= content.owns
        self.optimizers[ref.address] = content.owns if content.all_known else frozenset()

    def parted(self, whole: int, part: int) -> None:
        """Some of the parameters for which a leaf stands are looked at by themselves."""
        known = self.machine.cells.get((whole, KEY))
        if known is not None:
            self.machine.store.set((part, KEY), known)
        if whole & ~1 in self.fills:
            self.fills.setdefault(part & ~1, set()).update(self.fills[whole & ~1])
        for number, leaves in self.leaves_of.items():
            if whole in leaves:
                self.leaves_of[number] = leaves | {part}
        for optimizer, owns in self.optimizers.items():
            if whole in owns:
                self.optimizers[optimizer] = owns | {part}
        if whole in self.owned:
            self.owned.add(part)

    def clear(self, leaves: Iterable[int], node: ast.AST, optimizer: int = 0) -> None:
        """`zero_grad()` of a module, or of an optimizer: of the leaves that are known, and of an optimizer as a whole."""
        number = self._number(node)
        cells = frozenset(leaves)
        if optimizer and optimizer not in self.optimizers:
            content = self.machine.cells.get(optimizer)
            known = type(content) is Optimizer and content.all_known
            self.optimizers[optimizer] = cells if known else frozenset()
        for cell in cells:
            self._change(cell, lambda g: after_clear(g, number), certain=True)
        touched, others = set(cells), set[int]()
        for address, owns in self.optimizers.items():
            whole = address == optimizer or (bool(owns) and owns <= cells)
            if not whole and {address, optimizer} <= self.alternatives:
                continue
            whole = whole or self._is_all_of(address, cells) or self._is_for(address, optimizer)
            if whole or (owns and not owns.isdisjoint(cells)):
                touched.add(address)
                self._change(address, lambda g: after_clear(g, number), certain=whole)
            elif not (owns and self._is_optimizer(optimizer)):
                others.add(address)
        self.clears.append(Clear(number, frozenset(touched), frozenset(others), optimizer))

    def _is_for(self, optimizer: int, cleared: int) -> bool:
        """Whether a module that is told to clear must do so for an optimizer of which the parameters are not known.

        It is the only one, and nothing else in the file clears: if it did not, nothing would.
        """
        if self.optimizers[optimizer] or self._is_optimizer(cleared) or len(self._told_to_clear()) != 1:
            return False
        return [at for at in self.optimizers if self._is_optimizer(at)] == [optimizer]

    def _told_to_clear(self) -> set[str]:
        """What the file tells to clear gradients, as it is written; what may do so by another name is one of them."""
        if not self.clearing:
            for node in walk(self.machine.main):
                match node:
                    case ast.Call(func=ast.Attribute(value=told, attr="zero_grad")):
                        self.clearing.add(ast.unparse(told))
                    case ast.Call(func=func) if _clears(func):
                        self.clearing.add(ast.unparse(func))
                    case ast.Attribute(attr="grad", ctx=ast.Store()):
                        self.clearing.add(ast.unparse(node))
        return self.clearing

    def _is_optimizer(self, address: int) -> bool:
        """Whether what is told to clear must be an optimizer: a module can be told so as well."""
        return type(self.machine.cells.get(address)) is Optimizer or address in self.stepped

    def overwritten(self, node: ast.AST, *, gone: bool) -> None:
        """The gradient of something unknown is `gone`, or is set to something else, such as zeros."""
        if gone:
            self.clear((), node)
        else:
            self._clear_anything(node)

    def _clear_anything(self, node: ast.AST) -> None:
        """Something that is not known clears nobody knows what."""
        self.clears.append(Clear(self._number(node), NOTHING, NOTHING, 0, anything=True))

    def _is_all_of(self, optimizer: int, leaves: frozenset[int]) -> bool:
        """Whether these leaves are all that the backwards have filled of an optimizer whose parameters are not known."""
        filled = [self.leaves_of.get(number, NOTHING) for number in self._of(optimizer).backwards]
        return bool(filled) and all(found and found <= leaves for found in filled)

    def _are_two(self, one: int, other: int) -> bool:
        """Whether two things are two optimizers, and not two ways to one: both make steps."""
        return {one, other} <= self.stepped

    def reaches(self, clear: Clear, step: Step) -> bool:
        """Whether what clears may clear what a step uses."""
        return not step.leaves.isdisjoint(clear.leaves) or self.perhaps_clears(clear, step)

    def perhaps_clears(self, clear: Clear, step: Step) -> bool:
        """Whether what a step uses may be the same as what is cleared, by another name."""
        return clear.anything or any(
            at in clear.others and not self._are_two(at, clear.optimizer) for at in step.leaves
        )

    def read(self, leaf: int, gradient: Value, node: ast.AST) -> None:
        """`leaf.grad` was read."""
        for ref in _refs(gradient):
            self.gradients[ref.address & ~1] = leaf
        self._were_read([leaf, *(address for address, owns in self.optimizers.items() if leaf in owns)])
        self.reads[leaf & ~1] = (node, self.machine.where())

    def read_of_unknown(self) -> None:
        """`p.grad` was read of something unknown: it may be of any optimizer of which not all parameters are known."""
        self._were_read([address for address, owns in self.optimizers.items() if not owns])

    def _were_read(self, cells: Iterable[int]) -> None:
        for cell in cells:
            before = self.machine.cells.get((cell, KEY))
            if before is not None and not before.read:
                self.machine.store.set((cell, KEY), before._replace(read=True))

    def assigned(self, leaves: frozenset[int], new: Value, node: ast.AST) -> None:
        """`leaf.grad = new`, of one leaf or of each of several."""
        if new == NONE:
            self.clear(leaves, node)
        elif leaves:
            owners = {address for address, owns in self.optimizers.items() if leaves & owns or not owns}
            self.by_hand |= leaves | owners
            for cell in leaves | owners:
                self._change(cell, lambda g: given(), certain=True)

    def edited(self, site: ast.AST, state: Tensor, words: str) -> None:
        """A tensor was changed in place: a gradient that is cleared by hand, or a leaf that is stepped by hand."""
        found = {self.gradients[at & ~1] for at in state.storage if at & ~1 in self.gradients}
        if found:
            if words in ("zero_()", "fill_()", "[...] ="):
                self.clear(found, site)
            else:
                for leaf in found:
                    self._change(leaf, _altered, certain=True)
            return
        number = self._number(site)
        step = partial(after_step, number=number)
        for leaf in state.storage:
            before = self.machine.cells.get((leaf, KEY))
            if before is None or not before.read or leaf in self.owned:
                continue
            read = self.reads.get(leaf & ~1)
            self.steps.append(Step(number, (before,), frozenset({leaf}), manual=True, read=read))
            self._change(leaf, step, certain=True)

    def clip(self, parameters: Value, node: ast.AST) -> None:
        """Gradients are clipped."""
        owned = owned_by(self.machine, parameters)
        number = self._number(node)
        empty = self.consumed(parameters, node)
        if owned.owns and owned.all_known:
            self.waiting.add(number)
            gradients = tuple(self._of(leaf) for leaf in owned.owns)
            states = [self.machine.cells.get(leaf) for leaf in owned.owns]
            open_ = all(type(state) is Tensor and state.assumes for state in states)
            scaled = self.last if open_ and self.machine.cells.get((ANY, SCALED)) == YES else None
            self.clips.append(Clip(number, owned.owns, gradients, empty, scaled))

    def generator(self, ref: Ref) -> None:
        """`parameters()` was called, or a generator was made of something: it can be walked once."""
        self.machine.store.set((ref.address, SPENT), NO)

    def consumed(self, value: Value, node: ast.AST) -> ast.AST | None:
        """Something walks all of a value; where it was walked before, when it surely is a used generator."""
        store = self.machine.store
        if type(value) is not Ref or (value.address, SPENT) not in store.cells:
            return None
        before = store.cells[value.address, SPENT]
        store.set((value.address, SPENT), YES)
        walked = self.walked.setdefault(value.address, node)
        return walked if before == YES else None

    def unfollowed(self, call: Call, *, clears: bool = True, runs: bool = True) -> None:
        """A call cannot be followed: with an optimizer it may do anything, with a loss it may run a backward.

        What is known to give a loss of which a backward is run later has not run it itself; and `**options` are none.
        """
        m = self.machine
        node = call.node
        func = node.func if isinstance(node, ast.Call) else None
        if _clears(func):
            self._clear_anything(node)
            return
        gives_loss = m.address(node, "call") in m.expected
        for value in call.all_values():
            starts = runs and not gives_loss and value is not call.stars
            for ref in _refs(value):
                content = m.cells.get(ref.address)
                if type(content) is Optimizer or ref.address in self.optimizers:
                    owns = content.owns if type(content) is Optimizer else frozenset[int]()
                    m.store.set((ANY, SCALED), NO | YES)
                    if clears:
                        self._forget(owns | {ref.address}, node)
                elif type(content) in (Instance, Layer):
                    self.out_of_sight |= {leaf.address for _, leaf in members(m, ref).parameters}
                elif starts and self._may_start_from(node, func, content):
                    self._unseen_backward()

    def _may_start_from(self, node: ast.AST, func: ast.expr | None, content: object) -> bool:
        """Whether a call that is not followed may run a backward from something that it is given.

        It may where nobody takes what the call gives, or where it says that it trains: most of the unknown things
        that are handed about are data, and what is computed of a tensor is wanted for itself.
        """
        if type(content) is not Opaque and not (type(content) is Tensor and content.requires_grad & YES):
            return False
        name = getattr(func, "attr", "") or getattr(func, "id", "")
        return node in self.machine.lone or bool(_TRAINING.search(name))

    def _unseen_backward(self) -> None:
        for optimizer, owns in self.optimizers.items():
            for cell in (optimizer, *owns):
                if self._of(cell).phases & (CLEAR | DROPPED):
                    self._change(cell, after_unseen_backward, certain=True)

    # -- methods of what is not known

    def method(self, ref: Ref, content: Opaque, name: str, call: Call) -> None:
        """A method of something unknown: an optimizer, or a gradient scaler, when it is used as one."""
        if content.reason == SCHEDULER or name in ("scale", "backward"):
            return
        if ref.address & ~1 in self.scalers and self._scaler(ref, name, call):
            return
        if name == "zero_grad" or "zero_grad" in call.keywords:
            self.clear((), call.node, ref.address)
        elif name == "step" and self._steps(ref, call):
            self.step(ref, content, call.node, known=False)
        else:
            self.unfollowed(call)

    def takes(self, ref: Ref, name: str, call: Call) -> bool:
        """Take the method of something that was held to be a module, as it has a `state_dict()`, and is an optimizer."""
        if name == "step" and self._steps(ref, call):
            self.step(ref, None, call.node, known=False)
        elif name == "zero_grad" and ref.address in self.optimizers:
            self.clear((), call.node, ref.address)
        else:
            return False
        return True

    def _steps(self, ref: Ref, call: Call) -> bool:
        """Whether `step()` of something unknown is that of an optimizer."""
        func = call.node.func if isinstance(call.node, ast.Call) else None
        subject = func.value if isinstance(func, ast.Attribute) else None
        if (
            len(call.args) > 1
            or call.keywords.keys() - {"closure"}
            or (call.args and self.machine.tensor(call.args[0]) is not None)
        ):
            return False
        name = subject.id if isinstance(subject, ast.Name) else getattr(subject, "attr", "")
        return ref.address in self.optimizers or bool(_NAMED.search(name))

    # -- scalers

    def scaler_made(self, ref: Ref, enabled: Value | None) -> None:
        """A GradScaler was made; one that is switched off does nothing and is not followed."""
        if type(enabled) is Const and not enabled.value:
            return
        self.scalers[ref.address & ~1] = enabled is None or type(enabled) is Const

    def scales(self, ref: Ref, result: Value, node: ast.AST) -> None:
        """`scaler.scale(loss)`: what comes out is scaled, and what did it is a scaler if it was made as one or steps."""
        content = self.machine.cells.get(ref.address)
        if ref.address & ~1 in self.scalers or (type(content) is Opaque and content.reason != SCALER):
            self.scalers.setdefault(ref.address & ~1, False)
            for made in _refs(result):
                self.scaled[made.address & ~1] = node

    def _scaler(self, ref: Ref, name: str, call: Call) -> bool:
        """A method of a scaler; False when it is none that matters."""
        if name not in ("step", "unscale_", "update"):
            return False
        m = self.machine
        if name == "update":
            for key in self.places:
                if key[0] == ref.address:
                    m.store.set(key, READY)
            return True
        func = call.node.func if isinstance(call.node, ast.Call) else None
        subject = func.value if isinstance(func, ast.Attribute) else None
        targets = _refs(call.argument(0, "optimizer") or NONE)
        with m.one_of(targets):
            self._scaler_of(ref, name, call, subject, targets)
        return True

    def _scaler_of(
        self, ref: Ref, name: str, call: Call, subject: ast.expr | None, targets: list[Ref]
    ) -> None:
        m = self.machine
        for target in targets:
            key = (ref.address, f"{PHASE} {target.address}")
            phase = m.cells.get(key, READY)
            place = self.places.setdefault(key, {})
            if name == "step":
                if phase == STEPPED:
                    self._misused("update", call.node, place.get("step"), subject, ref)
                content = m.cells.get(target.address)
                if type(content) is Optimizer:
                    m.judge.stepped(target, content, call.node, scaler=True)
                elif type(content) is Opaque:
                    self.step(target, content, call.node, scaler=True)
                m.store.set(key, STEPPED)
                place["step"] = call.node
            else:
                if phase in (UNSCALED, STEPPED):
                    how = "unscaled" if phase == UNSCALED else "late"
                    self._misused(
                        how, call.node, place.get("unscale_" if phase == UNSCALED else "step"), subject, ref
                    )
                m.store.set(key, UNSCALED)
                place["unscale_"] = call.node
                content = m.cells.get(target.address)
                owns = content.owns if type(content) is Optimizer else frozenset[int]()
                open_ = type(content) is not Optimizer or not content.all_known
                for leaf in self.fills if open_ else ():  # it may have others than those that are known
                    for cell in {leaf, leaf | 1} - owns:
                        if (cell, KEY) in m.cells:
                            self._change(cell, lambda g: g._replace(scaled=g.scaled | NO), certain=True)
                for cell in owns | {target.address}:
                    self._change(cell, lambda g: g._replace(scaled=NO), certain=True)
                m.store.set((ANY, SCALED), NO)

    def _misused(
        self, how: str, node: ast.AST, other: ast.AST | None, scaler: ast.expr | None, ref: Ref
    ) -> None:
        if node not in self.told:
            self.told.add(node)
            sure = self.scalers.get(ref.address & ~1, False)
            self.machine.emit(ScalerMisused(node, self.machine.where(), how, other, scaler, sure))

    def shown(self, *sites: Site) -> list[Site]:
        """Places as the analysed module shows them: what another module does, at the call that led there."""
        imports = self.machine.imports
        if imports is None:
            return list(sites)
        shown = []
        for site in sites:
            node, calls, loops = site
            while calls and not imports.holds(node):
                node, calls = calls[-1], calls[:-1]
            shown.append(Site(node, calls, loops))
        return shown

    # -- the memory

    def _number(self, node: ast.AST) -> int:
        place = (node, self.machine.where())
        number = self.numbers.get(place)
        loops = tuple(self.machine.loops)
        if number is None:
            number = self.numbers[place] = len(self.sites)
            self.sites.append(Site(*place, loops))
        elif len(loops) >= len(self.sites[number].loops):  # what runs again is in loops of its own
            self.sites[number] = Site(*place, loops)
        return number

    def _of(self, cell: int) -> Gradient:
        known = self.machine.cells.get((cell, KEY))
        if known is not None:
            return known  # type: ignore[no-any-return]
        if cell in self.optimizers and (before := self.machine.cells.get((ANY, KEY))) is not None:
            return before  # type: ignore[no-any-return]
        return unseen(BEFORE) if self.machine.alone else Gradient()

    def _change(self, cell: int, change: Callable[[Gradient], Gradient], *, certain: bool) -> None:
        """Change a gradient. What stands for several leaves of one making goes through a step together, all or none."""
        before = self._of(cell)
        now = change(before)
        if not certain:
            now = join_gradients(before, now)
        if now != before or (cell, KEY) not in self.machine.cells:
            self.machine.store.set((cell, KEY), now)

    def _forget(self, cells: frozenset[int], node: ast.AST) -> None:
        for cell in cells:
            self._change(cell, lambda g: unseen(), certain=True)
        self.clears.append(Clear(self._number(node), cells, frozenset(), 0, seen=False))


def _clears(func: ast.expr | None) -> bool:
    """Whether a function of which nothing is known says that it clears gradients: `reset_grads()`, `p.grad.zero_()`."""
    match func:
        case ast.Attribute(value=ast.Attribute(attr="grad"), attr="zero_" | "fill_"):
            return True
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return bool(_CLEARING.search(name))
    return False


def _altered(g: Gradient) -> Gradient:
    """A gradient that the program scales or changes by itself: an average over steps is then meant."""
    kept = UNSEEN if g.phases & (MIXED | USED) else g.phases
    return g._replace(phases=kept, scaled=NO | YES)


def _refs(value: Value) -> list[Ref]:
    """The objects that a value may be, or that lie in a tuple."""
    if type(value) is Tuple:
        return [ref for item in value.items for ref in _refs(item)]
    if type(value) is Ref:
        return [value]
    parts: tuple[Value, ...] = getattr(value, "atoms", ()) or getattr(value, "refs", ())
    return [ref for part in parts for ref in _refs(part)]
