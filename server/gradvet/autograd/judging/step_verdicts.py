"""At the end of a run: what was out of order in the training steps that the protocol has followed."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from gradvet.autograd.events_call import NotCalled
from gradvet.autograd.events_protocol import (
    ClipMisplaced,
    GradientDropped,
    GradientNotCleared,
    ScalerMisused,
    StepTooEarly,
)
from gradvet.autograd.judging.optimizer_notes import parameter_names
from gradvet.autograd.judging.protocol import Clip, Protocol, Site, Step
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import NOTHING, YES, Tensor
from gradvet.autograd.memory.gradients import (
    BEFORE,
    CLEAR,
    DROPPED,
    HOLDS_NEW,
    MIXED,
    PARTIAL,
    UNSEEN,
    USED,
    Gradient,
)
from gradvet.autograd.memory.values import Optimizer
from gradvet.syntax.tree import walk

_EXITS = (ast.Break, ast.Continue, ast.Return, ast.Raise)


class _Choice(NamedTuple):
    """An `if` in a loop: what is in its branches, and whether it counts the passes of that loop."""

    inside: frozenset[ast.AST]
    counts: bool


@dataclass(slots=True)
class StepVerdicts:
    """Judges the steps, the clips and the backwards that led to them."""

    machine: Machine
    protocol: Protocol
    _choices: dict[ast.AST, list[_Choice]] = field(default_factory=dict)
    _inside: dict[ast.AST, set[ast.AST]] = field(default_factory=dict)

    def conclude(self) -> None:
        """Emit what was out of order in every run that the steps and clips have seen."""
        self.protocol.forgotten = any(
            type(e) is NotCalled and e.method == "zero_grad" for e in self.machine.events
        )
        for step in self.protocol.steps:
            self._judge_step(step)
        self._judge_stale()
        self._judge_empty_steps()
        self._judge_clips()

    def _judge_stale(self) -> None:
        """What a backward left in a network that it walked through, and that network's own loss adds to."""
        for left, adds, step, leaves in self.protocol.stale.found.values():
            sites = [self.protocol.sites[number] for number in (left, adds, step)]
            before, backward, use = self.protocol.shown(*sites)
            if {backward.node, use.node}.isdisjoint(self.protocol.told):
                self.protocol.told |= {backward.node, use.node}
                names = parameter_names(self.machine, leaves)
                self.machine.emit(
                    GradientNotCleared(
                        backward.node, backward.calls, use.node, False, True, True, names, before.node
                    )
                )

    def _judge_empty_steps(self) -> None:
        """Steps right after a clear, of which the backward comes later in the same block and is used by nobody."""
        visits: dict[tuple[int, int], list[Step]] = {}
        places: dict[int, set[ast.AST]] = {}
        for step in self.protocol.steps:
            visits.setdefault((step.number, step.optimizer), []).append(step)
            (shown,) = self.protocol.shown(self.protocol.sites[step.number])
            places.setdefault(step.optimizer, set()).add(shown.node)
        for (number, optimizer), steps in visits.items():
            (site,) = self.protocol.shown(self.protocol.sites[number])
            met = [g for step in steps for g in step.gradients]
            if len(places[optimizer]) > 1 or self._in_doubt(steps[0]):
                continue
            # What a pass has learnt to be a loss was held in the one before to run a backward perhaps.
            if any(g.backwards for g in met) or not steps[-1].gradients or optimizer in self.protocol.by_hand:
                continue
            if any(g.phases & ~(CLEAR | DROPPED) or not g.clears for g in steps[-1].gradients):
                continue
            for later in sorted(self.protocol.given_by.get(optimizer, ())):
                (backward,) = self.protocol.shown(self.protocol.sites[later])
                same = backward.calls == site.calls and backward.loops == site.loops
                if same and _row(backward) > _row(site) and later not in self.protocol.used:
                    clear = self.protocol.sites[max(n for g in met for n in g.clears)]
                    self._too_early(clear, site, backward, known=steps[0].known)
                    break

    def _too_early(self, clear: Site, step: Site, backward: Site, *, known: bool) -> None:
        clear, backward, step = self.protocol.shown(clear, backward, step)
        if step.node not in self.protocol.told and clear.node not in self.protocol.told:
            self.protocol.told |= {clear.node, step.node}
            self.machine.emit(
                StepTooEarly(step.node, step.calls, clear.node, backward.node, known, dropped=False)
            )

    def _judge_step(self, step: Step) -> None:
        relevant = [g for g in step.gradients if g.phases not in (CLEAR, UNSEEN, BEFORE)]
        if not relevant or not (step.known or self._are_of_torch(relevant)) or self._in_doubt(step):
            return
        site = self.protocol.sites[step.number]
        new = [g for g in relevant if g.phases & HOLDS_NEW]
        if not (step.scaler or step.manual) and new and all(g.scaled == YES for g in new):
            self._bypassed(site, new)
        if step.scaler and new:
            self._not_scaled(site, new)
        kept = all(not g.phases & ~(USED | MIXED) for g in relevant)
        mixed = [g for g in relevant if g.phases == MIXED]
        if (kept and self._comes_again(step, mixed)) or self._never_cleared(step, relevant):
            if not self.protocol.forgotten:
                self._not_cleared(step, site, relevant)
        elif forgotten := self._forgotten(step):
            self._not_cleared(step, site, list(forgotten.values()), forgotten)
        elif one_way := self._never_cleared_on_one_way(step, relevant):
            if not self.protocol.forgotten:
                self._not_cleared(step, site, one_way)
        elif step.optimizer in self.protocol.by_hand or not self.protocol.by_hand.isdisjoint(step.leaves):
            return  # a backward need not be what fills them
        elif all(g.phases & DROPPED and not g.phases & ~(DROPPED | CLEAR) for g in relevant):
            self._dropped(site, relevant, None, known=step.known)
        elif not step.manual:
            for g in relevant:
                loop = self._drops_in_loop(site, g) if g.phases & PARTIAL else None
                if loop is not None:
                    self._dropped(site, [g], loop, known=step.known)
                    break

    def _in_doubt(self, step: Step) -> bool:
        """Whether another optimizer that makes steps has some of these leaves as well, so that one may have fewer.

        What was picked for an optimizer by a test that is not followed is held to be all that it was picked from.
        Of two that are made in two branches there is only ever one. What a loop fills that was left before it came
        to rest is not known, unless the step stands in it as well.
        """
        numbers = {number for g in step.gradients for number in g.backwards}
        around = {loop.node for number in numbers for loop in self.protocol.sites[number].loops}
        own = {loop.node for loop in self.protocol.sites[step.number].loops}
        if not (around - own).isdisjoint(self.machine.unsettled):
            return True
        mine = self.protocol.optimizers.get(step.optimizer, NOTHING)
        return any(
            address in self.protocol.stepped - step.instead and owns != mine and not owns.isdisjoint(mine)
            for address, owns in (self.protocol.optimizers.items() if mine else ())
        )

    def _are_of_torch(self, gradients: list[Gradient]) -> bool:
        """Whether it is torch's backward that filled these, and not one of another framework with optimizers of its own."""
        numbers = {n for g in gradients for n in (*g.backwards, *(lost for lost, _ in g.lost))}
        return bool(numbers) and all(_is_of_torch(self.protocol.sites[number].node) for number in numbers)

    def _bypassed(self, site: Site, gradients: list[Gradient]) -> None:
        """`optimizer.step()` while the gradients are still scaled."""
        if site.node not in self.protocol.told:
            self.protocol.told.add(site.node)
            backward = next((self.protocol.sites[n].node for g in gradients for n in g.backwards), None)
            self.machine.emit(ScalerMisused(site.node, site.calls, "bypassed", backward, None, False))

    def _not_scaled(self, site: Site, gradients: list[Gradient]) -> None:
        """`scaler.step(optimizer)` on gradients of losses that were never scaled: they are divided by the scale."""
        backwards = [n for g in gradients for n in g.backwards]
        if not backwards or not all(n in self.protocol.unscaled for n in backwards):
            return
        if any(
            isinstance(n, ast.Attribute) and n.attr in ("get_scale", "_scale")
            for n in walk(self.machine.tree)
        ):
            return  # it may be multiplied by hand
        first = self.protocol.sites[min(backwards)]
        match site.node:
            case ast.Call(func=ast.Attribute(value=scaler)) if first.node not in self.protocol.told:
                self.protocol.told.add(first.node)
                sure = any(self.protocol.scalers.values())
                self.machine.emit(ScalerMisused(first.node, first.calls, "plain", site.node, scaler, sure))

    def _comes_again(self, step: Step, mixed: list[Gradient]) -> bool:
        """Whether what a step uses was used before by a step of the same loop."""
        around = self.protocol.sites[step.number].loops
        if any(self.protocol.perhaps_clears(clear, step) for clear in self.protocol.clears):
            return False
        if not any(
            number == step.number or not set(around).isdisjoint(self.protocol.sites[number].loops)
            for g in mixed
            for number in g.steps
        ):
            return False
        return not around or any(loop.node is not None for loop in around) or not self._cleared(step)

    def _forgotten(self, step: Step) -> dict[int, Gradient]:
        """The leaves of which a step uses the sum of all iterations, and that nothing clears while others are cleared."""
        clears, by_hand = self.protocol.clears, self.protocol.by_hand
        if step.manual or len(step.leaves) != len(step.gradients) or step.optimizer in by_hand:
            return {}
        found = {
            leaf: gradient
            for leaf, gradient in zip(step.leaves, step.gradients, strict=True)
            if gradient.phases == MIXED
            and leaf not in by_hand
            and not any(leaf in clear.leaves or leaf ^ 1 in clear.leaves for clear in clears)
        }
        return found if found and self._comes_again(step, list(found.values())) else {}

    def _cleared(self, step: Step) -> bool:
        """Whether anything clears, at any time, what a step uses."""
        return any(clear.seen and self.protocol.reaches(clear, step) for clear in self.protocol.clears)

    def _never_cleared(self, step: Step, gradients: list[Gradient]) -> bool:
        """Whether a step may use a gradient again, and nothing clears it as long as the step's loop runs."""
        around = set(self.protocol.sites[step.number].loops)
        loops = {loop for loop in around if loop.node is not None}
        if not all(g.phases & MIXED for g in gradients):
            return False
        if not loops and (self._cleared(step) or any(g.phases & UNSEEN for g in gradients)):
            return False  # what comes between two calls is not known
        around = loops or around
        backwards = frozenset(number for g in gradients for number in g.backwards)
        return not any(
            not around.isdisjoint(self.protocol.sites[clear.number].loops)
            and self.protocol.reaches(clear, step)
            and not any(self._gives_up(loop.node, clear.number, step.number, backwards) for loop in loops)
            for clear in self.protocol.clears
        )

    def _gives_up(self, loop: ast.AST | None, clear: int, step: int, backwards: Iterable[int]) -> bool:
        """Whether what clears is part of giving up a pass of a loop, so that a pass that makes a step comes by none."""
        clears, trains = self._way(clear), self._way(step).union(*map(self._way, backwards))
        for block in _given_up(loop) if loop is not None else ():
            inside = {node for statement in block for node in walk(statement)}
            if not clears.isdisjoint(inside) and trains.isdisjoint(inside):
                return True
        return False

    def _never_cleared_on_one_way(self, step: Step, gradients: list[Gradient]) -> list[Gradient]:
        """Where a setting decides between two ways with a backward on each, and all that clears stands on one of them.

        Gives the gradients with the backwards of the other alone.
        """
        around = [loop.node for loop in self.protocol.sites[step.number].loops if loop.node is not None]
        if not around or not all(g.phases & MIXED and g.steps for g in gradients):
            return []
        choices = list(_settings(around[-1]))
        clears = [
            self._way(clear.number)
            for clear in (self.protocol.clears if choices else ())
            if any(loop.node in around for loop in self.protocol.sites[clear.number].loops)
            and self.protocol.reaches(clear, step)
        ]
        for choice in choices if clears else ():
            ways = [{node for at in arm for node in ast.walk(at)} for arm in (choice.body, choice.orelse)]
            for one, other in (ways, ways[::-1]):
                if self._way(step.number).isdisjoint(one | other) and all(way & one for way in clears):
                    rest = [
                        g._replace(backwards=frozenset(n for n in g.backwards if self._way(n) & other))
                        for g in gradients
                    ]
                    if all(g.backwards for g in rest):
                        return rest
        return []

    def _way(self, number: int) -> set[ast.AST]:
        """A place, with the calls that led there."""
        return self.protocol.sites[number].way

    def _not_cleared(
        self, step: Step, site: Site, gradients: list[Gradient], leaves: Iterable[int] = ()
    ) -> None:
        numbers = [n for g in gradients for n in g.backwards if g.phases & MIXED]
        if step.manual:
            node, calls = step.read or (site.node, site.calls)
        elif numbers:
            node, calls = self._last_before(numbers, site)
        else:
            node, calls = site.node, site.calls
        backward, site = self.protocol.shown(Site(node, calls, ()), site)
        if backward.node in self.protocol.told or (backward.node is site.node and not step.manual):
            return
        self.protocol.told |= {backward.node, site.node}
        repeated = any(loop.node is not None for loop in site.loops)
        if not repeated and not step.manual and not self._together(numbers, step):
            return  # whoever calls the one and the other may clear in between
        self.machine.emit(
            GradientNotCleared(
                backward.node,
                backward.calls,
                site.node,
                step.manual,
                repeated,
                step.known,
                parameter_names(self.machine, leaves),
            )
        )

    def _together(self, backwards: list[int], step: Step) -> bool:
        """Whether a step and one of these backwards are of one call from outside."""
        loops = set(self.protocol.sites[step.number].loops)
        return any(not loops.isdisjoint(self.protocol.sites[number].loops) for number in backwards)

    def _last_before(self, numbers: list[int], step: Site) -> tuple[ast.AST, tuple[ast.AST, ...]]:
        """Of some backwards the one nearest to a step: the last before it in the function from which both are reached."""
        way = (*step.calls, step.node)
        found: list[tuple[int, int, int]] = []
        for number in numbers:
            other = (*self.protocol.sites[number].calls, self.protocol.sites[number].node)
            shared = 0
            while shared < min(len(way), len(other)) - 1 and way[shared] is other[shared]:
                shared += 1
            row = getattr(other[shared], "lineno", 0)
            before = row if row < getattr(way[shared], "lineno", 0) else 0
            found.append((shared, before, number))
        *_, chosen = max(found)
        return self.protocol.sites[chosen].node, self.protocol.sites[chosen].calls

    def _dropped(self, site: Site, gradients: list[Gradient], loop: ast.AST | None, *, known: bool) -> None:
        cleared = sorted({n for g in gradients for n in g.clears})
        lost = sorted(
            {n for g in gradients for n, _ in g.lost if self.protocol.sites[n].begins is site.begins}
        )
        if loop is None:
            # What another optimizer has used as well is to blame where it stands beside the step, and nothing else is.
            beside = [n for n in lost if self.protocol.sites[n].calls == site.calls]
            lost = [n for n in lost if n not in self.protocol.used] or beside
        if not cleared or not lost:
            return
        clear, backward, shown = self.protocol.shown(
            self.protocol.sites[cleared[-1]], self.protocol.sites[lost[-1]], site
        )
        if clear.node in self.protocol.told or clear.node is backward.node:
            return
        self.protocol.told.add(clear.node)
        m = self.machine
        if loop is None and _row(clear) < _row(shown) < _row(backward) and shown.calls == backward.calls:
            m.emit(StepTooEarly(shown.node, shown.calls, clear.node, backward.node, known))
        else:
            m.emit(GradientDropped(clear.node, clear.calls, backward.node, shown.node, loop, known))

    def _drops_in_loop(self, site: Site, g: Gradient) -> ast.AST | None:
        """The loop of which each pass drops what the pass before gave, while the step comes later."""
        around = {loop.node for loop in site.loops}
        for number, clear in g.lost:
            if number not in g.backwards or clear not in g.clears:
                continue
            if self.protocol.sites[number].begins is not site.begins:
                continue  # whoever calls the one and the other may step in between
            clearing = {loop.node for loop in self.protocol.sites[clear].loops}
            for loop in self.protocol.sites[number].loops:
                if loop.node is None or loop.node not in clearing:
                    continue
                if loop.node in around:
                    backward = self.protocol.sites[number]
                    # One that comes after this step in the same function is another step's.
                    after = backward.calls == site.calls and _row(backward) > _row(site)
                    few = not after and self._is_every_few(
                        loop.node, site, (self.protocol.sites[clear], backward)
                    )
                    if few and not self._serves(number, site):
                        return loop.node
                elif not _leaves_early(loop.node):
                    return loop.node
        return None

    def _is_every_few(self, loop: ast.AST, step: Site, others: Iterable[Site]) -> bool:
        choices: list[_Choice] = []
        for scope in (loop, *self._called_in(loop, step)):
            if scope not in self._choices:
                self._choices[scope] = _choices(scope)
            choices += self._choices[scope]
        return _is_every_few(choices, step, others)

    def _called_in(self, loop: ast.AST, step: Site) -> list[ast.AST]:
        """The functions that a loop calls, on the way to a step."""
        found: list[ast.AST] = []
        for function in self.machine.reached if step.calls else ():
            if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                if function not in self._inside:
                    self._inside[function] = set(walk(function))
                inside = self._inside[function]
                if not inside.isdisjoint(step.way) and loop not in inside:
                    found.append(function)
        return found

    def _serves(self, backward: int, but: Site) -> bool:
        """Whether a step elsewhere uses what a backward gave to its own parameters."""
        return any(
            self.protocol.sites[step.number] is not but
            and any(backward in g.backwards for g in step.gradients)
            for step in self.protocol.steps
        )

    def _judge_clips(self) -> None:
        visits: dict[int, list[Clip]] = {}
        for clip in self.protocol.clips:
            visits.setdefault(clip.number, []).append(clip)
        for number, clips in visits.items():
            node, calls, _ = self.protocol.sites[number]
            found = self._fault_of_clip(clips)
            if found is None or node in self.protocol.told:
                continue
            self.protocol.told.add(node)
            how, other = found
            scaler, optimizer = self._scaler_step(clips[0].leaves) if how == "scaled" else (None, None)
            assumes = self._assumed(clips[0].leaves) if how != "empty" else frozenset[str]()
            self.machine.emit(ClipMisplaced(node, calls, how, other, scaler, optimizer, assumes))

    def _assumed(self, leaves: frozenset[int]) -> frozenset[str]:
        """What has to be true for these to be leaves."""
        states = [self.machine.cells.get(leaf) for leaf in leaves]
        return frozenset().union(*(state.assumes for state in states if type(state) is Tensor))

    def _fault_of_clip(self, clips: list[Clip]) -> tuple[str, ast.AST | None] | None:
        """What is wrong with a clip at each of its visits, and what it stands on the wrong side of."""
        empty = next((clip.empty for clip in clips if clip.empty is not None), None)
        if empty is not None:
            return "empty", empty
        gradients = [g for clip in clips for g in clip.gradients if g.phases not in (UNSEEN, BEFORE)]
        filled = sorted(n for leaf in clips[0].leaves for n in self.protocol.fills.get(leaf & ~1, ()))
        last = clips[-1].scaled
        if last is not None and all(clip.scaled is not None for clip in clips):
            return (
                ("scaled", self.protocol.sites[last].node) if self._scaler_step(clips[0].leaves)[0] else None
            )
        if not gradients or not filled:
            return None
        phases = 0
        for g in gradients:
            phases |= g.phases
        if not phases & ~(CLEAR | USED | DROPPED):
            following = [
                self.protocol.steps[at] for at in sorted(self.protocol.followed.get(clips[0].number, ()))
            ]
            if following and all(self._is_apart(step, clips[0].leaves) for step in following):
                return "other", self.protocol.sites[following[0].number].node
            steps = sorted(n for g in gradients for n in g.steps)
            return (
                ("late", self.protocol.sites[steps[-1]].node)
                if phases & USED
                else ("early", self.protocol.sites[filled[0]].node)
            )
        new = [g for g in gradients if g.phases & HOLDS_NEW]
        if new and all(g.scaled == YES for g in new) and self._scaler_step(clips[0].leaves)[0] is not None:
            numbers = sorted(n for g in new for n in g.backwards)
            return "scaled", self.protocol.sites[numbers[-1]].node
        return None

    def _is_apart(self, step: Step, leaves: frozenset[int]) -> bool:
        """Whether a step uses new gradients, and none of these."""
        whole = not step.leaves & self.protocol.optimizers.keys()
        return whole and step.leaves.isdisjoint(leaves) and any(g.phases & HOLDS_NEW for g in step.gradients)

    def _scaler_step(self, leaves: frozenset[int]) -> tuple[ast.expr | None, ast.expr | None]:
        """The scaler and the optimizer of these leaves, as they stand in the source of a scaler's step."""
        for (_, key), places in self.protocol.places.items():
            content = self.machine.cells.get(int(key.rpartition(" ")[2]))
            if type(content) is Optimizer and content.all_known and content.owns.isdisjoint(leaves):
                continue
            match places.get("step"):
                case ast.Call(func=ast.Attribute(value=scaler), args=[optimizer]):
                    return scaler, optimizer
        return None, None


def _row(site: Site) -> int:
    return getattr(site.node, "lineno", 0)


def _is_of_torch(backward: ast.AST) -> bool:
    """Whether a backward is a method of the loss itself, or of what Accelerate and Lightning give."""
    match backward:
        case ast.Call(func=ast.Attribute(attr="backward"), args=[]):
            return True
        case ast.Call(func=ast.Attribute(attr="manual_backward")):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name) | ast.Attribute(attr=name))):
            return name in ("accelerator", "fabric")
    return False


def _choices(loop: ast.AST) -> list[_Choice]:
    """The `if`s in a loop. What is done every few passes of an inner one is done more than once in each of this."""
    inner = {
        choice
        for other in walk(loop)
        if isinstance(other, (ast.For, ast.AsyncFor, ast.While)) and other is not loop
        for choice in walk(other)
        if isinstance(choice, ast.If)
    }
    return [
        _Choice(
            frozenset(node for statement in (*choice.body, *choice.orelse) for node in walk(statement)),
            choice not in inner and any(_is_remainder(part) for part in walk(choice.test)),
        )
        for choice in walk(loop)
        if isinstance(choice, ast.If)
    ]


def _is_remainder(node: ast.AST) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod)


def _is_every_few(choices: list[_Choice], step: Site, others: Iterable[Site]) -> bool:
    """Whether a step is made every few passes of a loop, `if (i + 1) % n == 0`, and the others in each."""
    stepping = step.way
    always = {node for other in others for node in (other.node, *other.calls)} - set(step.calls)
    if any(not choice.inside.isdisjoint(always) for choice in choices):
        return False
    return any(choice.counts and not choice.inside.isdisjoint(stepping) for choice in choices)


def _leaves_early(loop: ast.AST) -> bool:
    """Whether a loop may be left before its end."""
    return any(isinstance(node, (ast.Break, ast.Return)) for node in walk(loop))


def _given_up(loop: ast.AST) -> Iterator[list[ast.stmt]]:
    """The blocks in a loop at the end of which its pass, or the loop, is over."""
    for node in walk(loop):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block and isinstance(block[-1], _EXITS):
                yield block


def _settings(loop: ast.AST) -> Iterator[ast.If]:
    """The choices between two ways in a loop of which nothing in the loop changes what they ask for."""
    changed = {
        node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")
        for node in ast.walk(loop)
        if isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del))
    }
    for choice in ast.walk(loop):
        if isinstance(choice, ast.If) and choice.orelse:
            asked = list(ast.walk(choice.test))
            named = {getattr(node, "id", "") or getattr(node, "attr", "") for node in asked} - {""}
            if not any(isinstance(node, (ast.Call, ast.NamedExpr)) for node in asked) and not named & changed:
                yield choice
