"""Two networks against one another of which nothing is known, nor of their optimizers, but the order of what is done.

What the one made is given to the other in two losses; each loss has a backward and a step of another optimizer. One of
the steps is of the network that made it, or there were no use in two; so its backward needs the graph, which the first
of the two has freed.
"""

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from gradvet.autograd.events_flow import FakeInGraph
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.values import Ref, Value

MOST_KEPT = 12
ASSUMED = "of the two optimizers one has the parameters of the network that made {}"


class Happened(NamedTuple):
    """A backward and what its loss was computed from, or an optimizer's step; `when` tells iterations apart."""

    site: ast.AST
    calls: tuple[ast.AST, ...]
    when: tuple[tuple[int, int], ...]
    behind: frozenset[int]
    keeps: bool
    optimizer: int = 0


@dataclass(slots=True)
class OpenAdversaries:
    """Told of each backward and step, as they happen."""

    machine: Machine
    past: list[Happened] = field(default_factory=list)
    found: dict[ast.AST, FakeInGraph] = field(default_factory=dict)

    def backward(self, site: ast.AST, behind: frozenset[int], *, keeps: bool) -> None:
        """A backward runs from what was computed from these unknown things."""
        self._add(Happened(site, self.machine.where(), self._when(), behind, keeps))

    def step(self, optimizer: int, site: ast.AST) -> None:
        """An optimizer makes a step."""
        self._add(
            Happened(site, self.machine.where(), self._when(), frozenset(), keeps=False, optimizer=optimizer)
        )
        last = [one for one in self.past if one.when == self.past[-1].when][-4:]
        if [bool(one.optimizer) for one in last] != [False, True, False, True]:
            return
        first, one, second, other = last
        if one.optimizer == other.optimizer or first.site is second.site or first.keeps or second.keeps:
            return
        if not (first.behind and second.behind):
            return
        for argument, call, later in self._given_twice(first, second):
            assumes = frozenset({ASSUMED.format(f"`{ast.unparse(argument)}`")})
            own, their = (second, first) if later else (first, second)
            step = one if later else other
            event = FakeInGraph(
                argument,
                own.calls,
                call,
                own.site,
                step.site,
                mixed=False,
                needed=their.site,
                assumes=assumes,
                gone=later,
            )
            self.found.setdefault(argument, event)

    def conclude(self) -> None:
        """Tell of them, but where it is told already of networks that are known."""
        told = {event.backward for event in self.machine.events if type(event) is FakeInGraph}
        for event in self.found.values():
            if told.isdisjoint({event.backward, event.needed}):
                self.machine.emit(event)

    def _add(self, happened: Happened) -> None:
        if self.past and self.past[-1] == happened:
            return
        self.past.append(happened)
        del self.past[:-MOST_KEPT]

    def _when(self) -> tuple[tuple[int, int], ...]:
        return tuple((id(loop), loop.number) for loop in self.machine.loops)

    def _given_twice(self, first: Happened, second: Happened) -> list[tuple[ast.expr, ast.Call, bool]]:
        """The arguments by which one result of one thing went into another, once for each of two losses.

        They are those of the loss to which more was given, a critic also sees what is real; it may be the `second`.
        """
        results = self.machine.results
        makers = {at: thing for thing, known in results.items() for at in known}
        found = []
        for thing, known in results.items():
            mine = [at for at in known if at in first.behind and at not in second.behind]
            others = [at for at in known if at in second.behind and at not in first.behind]
            if not mine or not others or len(mine) == len(others):
                continue
            shared = _made(known[at].inputs for at in mine) & _made(known[at].inputs for at in others)
            critics = mine if len(mine) > len(others) else others
            for at in critics:
                call = known[at].node
                given = [value for value in known[at].inputs if _address(value) in shared]
                made = [value for value in given if makers.get(_address(value), thing) != thing]
                if not isinstance(call, ast.Call) or not made or len(call.args) != len(known[at].inputs):
                    continue
                found.append((call.args[known[at].inputs.index(made[0])], call, critics is others))
        return found


def _address(value: Value) -> int:
    return value.address & ~1 if type(value) is Ref else -1


def _made(inputs: Iterable[Iterable[Value]]) -> set[int]:
    """What of some calls' inputs lies somewhere."""
    return {_address(value) for given in inputs for value in given} - {-1}
