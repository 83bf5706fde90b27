"""What a backward leaves in a network that it only walks through, and the next backward adds to.

An actor's loss leads through the critic, a generator's through the critic of what it made: the backward fills the
gradients of both networks, and only the step of the one that is walked to was meant. Where nothing clears the other's before
its own loss comes, its step uses both.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from gradvet.autograd.graph import reachable
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import Node, Tensor
from gradvet.autograd.memory.gradients import FRESH, Gradient

MOST_KEPT = 40
Leaves = frozenset[int]


class Happened(NamedTuple):
    """A backward, by its number, or a step of an `optimizer`, with the backwards that it used."""

    number: int
    optimizer: int = 0
    used: frozenset[int] = frozenset()


class Stale(NamedTuple):
    """The numbers of the backward that left something, of the one that added to it, and of the step that used both."""

    left: int
    adds: int
    step: int
    leaves: Leaves


@dataclass(slots=True)
class StaleNotes:
    """Told of each backward and step, as they happen."""

    machine: Machine
    past: list[Happened] = field(default_factory=list)
    behind: dict[int, set[tuple[int, int]]] = field(default_factory=dict)
    """By backward the pairs of optimizers of which the one's network is walked through to come to the other's."""
    reached: dict[int, Leaves] = field(default_factory=dict)
    found: dict[tuple[int, int], Stale] = field(default_factory=dict)

    def backward(self, number: int, root: Tensor, optimizers: dict[int, Leaves]) -> None:
        """A backward runs; the graph is still as it was built."""
        self._add(Happened(number))
        self.reached[number] = self.reached.get(number, frozenset()) | root.leaves
        asked = {address: owns for address, owns in optimizers.items() if owns & root.leaves}
        if len(asked) > 1 and root.nodes:
            through = self._through(reachable(self.machine, root.nodes), asked)
            self.behind.setdefault(number, set()).update(through)

    def _through(self, nodes: dict[int, Node], optimizers: dict[int, Leaves]) -> set[tuple[int, int]]:
        """The optimizers of which the one's leaves are met only behind the other's."""
        above: dict[int, frozenset[int]] = {}
        pairs = set[tuple[int, int]]()
        stack = [(address, False) for address in nodes]
        entered = set[int]()
        while stack:
            address, done = stack.pop()
            if not done and address not in entered:
                entered.add(address)
                stack.append((address, True))
                stack += [(at, False) for at in nodes[address].inputs if at in nodes and at not in entered]
            elif done:
                before = frozenset[int]().union(*(above.get(at, frozenset()) for at in nodes[address].inputs))
                own = {one for one, owns in optimizers.items() if owns & nodes[address].leaves}
                pairs |= {(far, near) for near in own for far in before if far != near}
                above[address] = before | own
        return {(far, near) for far, near in pairs if (near, far) not in pairs}

    def stepped(self, number: int, optimizer: int, owns: Leaves, met: tuple[Gradient, ...]) -> None:
        """An optimizer makes a step on these gradients of its own leaves."""
        used = frozenset[int]().union(*(g.backwards for g in met))
        both = used if met and all(g.phases == FRESH for g in met) else frozenset[int]()
        both = both.intersection(*(g.backwards for g in met))
        last = {
            one.number: at for at, one in enumerate(self.past) if not one.optimizer and one.number in both
        }
        adds = max(last, key=lambda n: last[n], default=-1)
        for left, at in last.items():
            between = self.past[at : last[adds]]
            if left != adds and any(
                left in one.used
                and (one.optimizer, optimizer) in self.behind.get(left, ())
                and self.machine.judge.protocol.optimizers.get(one.optimizer, owns).isdisjoint(
                    owns | self.reached[adds]
                )
                for one in between
                if one.optimizer
            ):
                self.found.setdefault((left, adds), Stale(left, adds, number, owns))
        self._add(Happened(number, optimizer, used))

    def _add(self, happened: Happened) -> None:
        self.past.append(happened)
        del self.past[:-MOST_KEPT]
