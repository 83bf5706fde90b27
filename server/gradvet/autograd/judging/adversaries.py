"""Two networks against one another: a backward for the one that also walks through the other.

A critic's loss and a generator's loss both lead through the critic into the generator. Each is meant for the step of one
optimizer; what the critic's backward leaves in the generator is either added to the generator's own gradient, or computed
for nothing.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from gradvet.autograd.events import GraphFreed
from gradvet.autograd.events_flow import FakeInGraph
from gradvet.autograd.judging.flow import Called, Flow, Run
from gradvet.autograd.judging.protocol import Protocol, Step
from gradvet.autograd.library.layers import members
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import YES
from gradvet.autograd.memory.gradients import HOLDS_NEW, Gradient


@dataclass(slots=True)
class Adversaries:
    """Looks at the end of a run for steps that were meant to leave the other network alone."""

    machine: Machine
    flow: Flow
    protocol: Protocol

    def conclude(self) -> None:
        """Emit the places where the other network's output enters with its graph."""
        runs = {(run.site, run.calls): run for run in self.flow.backwards}
        if len(runs) < 2:  # noqa: PLR2004
            return
        told: set[ast.AST] = set()
        raising: set[ast.AST | None] = set()
        met = dict.fromkeys(
            step for step in self.protocol.steps if not step.manual
        )  # a loop meets some again
        steps = [(step, _used(step)) for step in met]
        for own, used in steps:
            if not used:
                continue
            for other, others in steps:
                if not own.leaves.isdisjoint(other.leaves):
                    continue
                for number in used:
                    self._judge(runs, own, other, number, others - used, told, raising)
        if raising:  # the backward that raises for it needs no telling of its own
            events = self.machine.events
            events[:] = [e for e in events if not (type(e) is GraphFreed and e.node in raising)]

    def _judge(
        self,
        runs: dict[tuple[ast.AST, tuple[ast.AST, ...]], Run],
        own: Step,
        other: Step,
        number: int,
        answers: set[int],
        told: set[ast.AST],
        raising: set[ast.AST | None],
    ) -> None:
        """Whether a backward that the one's step uses walks through what belongs to the other, and is not wanted there.

        `answers` are the backwards that only the other's step uses.
        """
        run = self._through_both(runs, number, own, other)
        if run is None:
            return
        for theirs in answers:
            answer = self._through_both(runs, theirs, own, other)
            if answer is None:
                continue
            met = [g for g in other.gradients if g.phases & HOLDS_NEW]
            mixed = [number in g.backwards for g in met]
            dropped = any(lost == number for g in met for lost, _ in g.lost)
            if not all(mixed) and (any(mixed) or not dropped):
                continue
            step = self.protocol.sites[other.number].node
            needed = answer.site if not answer.freed.isdisjoint(run.seen) else None
            gone = needed is not None and _comes_before(answer, run)
            for call, argument in self._entries(run, answer, own, other):
                if argument not in told:
                    told.add(argument)
                    raising.add(run.site if gone else needed)
                    self.machine.emit(
                        FakeInGraph(
                            argument, call.calls, call.site, run.site, step, all(mixed), needed, gone=gone
                        )
                    )

    def _through_both(
        self, runs: dict[tuple[ast.AST, tuple[ast.AST, ...]], Run], number: int, own: Step, other: Step
    ) -> Run | None:
        """The backward of this number, if it reaches what belongs to the one and to the other."""
        site = self.protocol.sites[number]
        run = runs.get((site.node, site.calls))
        if run is None or own.leaves.isdisjoint(run.leaves) or other.leaves.isdisjoint(run.leaves):
            return None
        return run

    def _entries(self, run: Run, answer: Run, own: Step, other: Step) -> Iterator[tuple[Called, ast.expr]]:
        """The calls of the one's network in its own backward, and the argument that comes from the other's."""
        states = self.machine.states
        calls = self.flow.calls
        judge = self.machine.judge
        wanted = judge.cut_notes.wanted if judge is not None else frozenset[int]()
        for call in calls.values():
            if own.leaves.isdisjoint(call.leaves) or other.leaves.isdisjoint(call.leaves):
                continue
            if call.nodes.isdisjoint(run.seen) or not call.nodes.isdisjoint(answer.seen):
                continue
            if any(calls.get((site, call.calls[:at])) is not None for at, site in enumerate(call.calls)):
                continue
            if not isinstance(call.site, ast.Call) or not self._holds(call, own):
                continue
            for argument in (*call.site.args, *(keyword.value for keyword in call.site.keywords)):
                state = states.get(argument)
                if (
                    state is not None
                    and state.requires_grad == YES
                    and not other.leaves.isdisjoint(state.leaves)
                    and wanted.isdisjoint(
                        node & ~1 for node in state.nodes
                    )  # or detached, it has no gradient
                ):
                    yield call, argument

    def _holds(self, call: Called, own: Step) -> bool:
        """Whether the module that was called has parameters of this step: a loss function has none."""
        parameters = members(self.machine, call.module).parameters
        return any(leaf.address & ~1 in own.leaves or leaf.address in own.leaves for _, leaf in parameters)


def _comes_before(one: Run, other: Run) -> bool:
    """Whether one backward stands above the other in the same function."""
    return one.calls == other.calls and getattr(one.site, "lineno", 0) < getattr(other.site, "lineno", 0)


def _used(step: Step) -> set[int]:
    """The backwards of which a step uses what they gave."""

    def new(g: Gradient) -> frozenset[int]:
        return g.backwards if g.phases & HOLDS_NEW else frozenset()

    return set().union(*(new(g) for g in step.gradients))
