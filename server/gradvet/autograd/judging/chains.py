"""Results that lead to the same result of the iteration before: totals and averages whose graph grows for ever."""

import ast
from dataclasses import dataclass, field

from gradvet.autograd.graph import node_key, reachable
from gradvet.autograd.held import held_tensors
from gradvet.autograd.judging.averages import Average, entering, running_average, taken_up
from gradvet.autograd.judging.retention import Place, Retention, addresses, holder_words
from gradvet.autograd.library.layers import BUFFERS
from gradvet.autograd.machine import Loop, Machine
from gradvet.autograd.memory.domain import MAYBE, NO, YES, Node, Tensor
from gradvet.autograd.memory.values import Dict, Ref, Sequence, Tuple, Value

ADDING = frozenset({"+", "-", "+=", "-=", "add()", "add_()"})
"""Ops by which a total is kept. State that a module carries from step to step is no total."""
WEIGHTING = frozenset({"*", "/", "*=", "/=", "mul()", "div()", "neg"})
JOINING = frozenset({
    "cat()", "concat()", "hstack()", "vstack()", "roll()", "where()", "maximum()", "minimum()", "fmax()", "fmin()",
    "logaddexp()",
})  # fmt: skip
"""Ops by which a queue is made anew of what it was and of what is new, or the best so far is chosen."""
PART = "[...]"
PASSING = ADDING | {PART, "[...] =", "copy_()"}
"""Ops that hand a total on as it is, or a part of it."""


@dataclass(slots=True)
class Chains:
    """Looks at the end of each iteration for what was made from what the one before has made."""

    machine: Machine
    retention: Retention
    taken_up: set[int] = field(default_factory=set)
    """The nodes of earlier iterations from which those of this one go on directly."""

    def end_of_pass(self, loop: Loop, whole: Loop) -> None:
        """A result that leads to the same result of the iteration before: a graph that grows for ever.

        The iteration is one of the `whole` loop, of which `loop` is a part, or is the same.
        """
        m = self.machine
        seen: set[int] = set()
        self.taken_up = taken_up(m, loop.allocs)
        for key, value in m.store.delta(loop.base).items():
            if value is None or (type(key) is tuple and str(key[1]).startswith("#")):
                continue
            if type(key) is int:
                older = key not in loop.allocs
                states = [value] if older and type(value) is Tensor else []
                if older and type(value) in (Dict, Sequence):
                    self._averaged_weights(loop, Ref(key))
                if older and type(value) is Dict:
                    states = [state for _, part in value.items for _, state in held_tensors(m, part)]
            elif type(key) is tuple and key[0] not in loop.allocs:
                held = held_tensors(m, value) if type(value) is not int else []
                states = [state for _, state in held]
                self._rebuilt(loop, value, held)
            else:
                states = []
            for state in states:
                if state.requires_grad == YES and state.nodes and not state.nodes <= seen:
                    seen |= state.nodes
                    self._chain(loop, whole, state)

    def _averaged_weights(self, loop: Loop, holder: Ref) -> None:
        """Averages of parameters in a container from before: of what else lies there one item may follow from another."""
        m = self.machine
        made = {at for _, state in held_tensors(m, holder) for at in state.nodes if not at & 1}
        for at in sorted(made & loop.allocs):
            average, state = running_average(m, loop.allocs, self.taken_up, at), m.cells.get(at)
            if average is not None and average.of_leaves and type(state) is Tensor:
                self._average(loop, state, average)

    def _rebuilt(self, loop: Loop, value: Value, held: list[tuple[Ref, Tensor]]) -> None:
        """A tuple or list that is made anew from the old one and one more: it grows as well."""
        m = self.machine
        if not loop.trains or type(m.cells.get(getattr(value, "address", -1))) is not Sequence:
            return
        site = next((s for at in addresses(value) if (s := m.site_of(at)) is not None), None)
        if not isinstance(site, (ast.Tuple, ast.List, ast.BinOp)):
            return
        older = {ref.address for ref, _ in held if ref.address & 1}
        for ref, state in held:
            if ref.address in loop.allocs and ref.address + 1 in older and state.has_graph and state.nodes:
                self.retention.keep(state, Place(site, m.calls_of.get(site, ()), None), "", None, "rebuilt")

    def _chain(self, loop: Loop, whole: Loop, state: Tensor) -> None:
        m = self.machine
        for start in state.nodes:
            node = m.cells.get(node_key(start))
            if type(node) is not Node or start & ~1 not in loop.allocs:
                continue
            average = running_average(m, loop.allocs, self.taken_up, start)
            if average is not None:
                self._average(loop, state, average)
            if average is not None or start & 1:
                continue
            written = node.name.endswith("_()") or node.name == "[...] ="
            joined = not written and node.name not in ADDING and self._is_joined(node)
            before = m.cells.get(node_key(start + 1))
            freed_before = type(before) is Node and before.freed & YES
            if not (written or joined or node.name in ADDING) or node.freed & YES or freed_before:
                continue  # no chain; or one that itself takes part in a backward: state that is carried over
            if type(before) is not Node or (joined and not whole.trains):
                continue
            behind = reachable(m, node.inputs)
            if start + 1 not in behind:
                continue
            lasting = loop.node is None and self._is_of_buffer(state)
            if not whole.trains and not lasting and not self._evaluates(loop):
                continue
            if any(self._feeds_back(at, start + 1) for at in node.inputs - {start} if not at & 1):
                continue  # what is added depends on the total itself: state, not a total
            fresh = {
                at: n
                for at, n in behind.items()
                if (at in loop.allocs or at in whole.allocs) and not at & 1 and n.node is not node.node
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
                words = words or self._holder(site)
                site, calls, value = calls[-1], calls[:-1], argument
                handed = {n.id for n in ast.walk(argument) if isinstance(n, ast.Name)}
            self.retention.keep(
                state._replace(nodes=frozenset({start})),
                Place(site, calls, value),
                words,
                None,
                "chain",
                freed=freed,
            )
            self.retention.kept[-1].trains = whole.trains or lasting

    def _is_of_buffer(self, state: Tensor) -> bool:
        """Whether a module that is called from elsewhere keeps a state as a buffer: that is no result of a loop."""
        m = self.machine
        for key, names in m.cells.items():
            if type(key) is tuple and key[1] == BUFFERS and type(names) is Tuple:
                for name in names.items:
                    value = m.cells.get((key[0], name.value))
                    if any(held.storage & state.storage for _, held in m.tensors(value)):
                        return True
        return False

    def _average(self, loop: Loop, state: Tensor, average: Average) -> None:
        """A running average whose graph goes back to the first iteration."""
        m = self.machine
        if not loop.trains and not average.of_leaves and not self._evaluates(loop):
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
        self.retention.keep(state, place, "", None, "average", freed=average.freed)
        self.retention.kept[-1].trains = loop.trains
        self.retention.kept[-1].average = average

    def _evaluates(self, loop: Loop) -> bool:
        """Whether a module was called in the loop: then what it adds up is a measure of its results."""
        return any(call.nodes & loop.allocs for call in self.machine.judge.modules)

    def _is_joined(self, node: Node) -> bool:
        """Whether something was made by joining it with what is new, and perhaps by taking a part of that."""
        seen = set[int]()
        while node.name == PART and len(node.inputs) == 1:
            at = next(iter(node.inputs))
            inner = self.machine.cells.get(node_key(at))
            if type(inner) is not Node or at in seen:
                return False  # a part of what an earlier iteration has made is one of itself
            seen.add(at)
            node = inner
        return node.name in JOINING

    def _feeds_back(self, at: int, total: int) -> bool:
        """Whether a term leads to the total of the iteration before, and not by sums and weights alone."""
        m = self.machine
        stack, seen = [at], {total}
        while stack:
            at = stack.pop()
            if at in seen:
                continue
            seen.add(at)
            node = m.cells.get(node_key(at))
            if type(node) is not Node:
                continue
            if node.name in PASSING | JOINING or (node.name in WEIGHTING and len(node.inputs) == 1):
                stack += node.inputs
            elif total in reachable(m, frozenset({at})):
                return True
        return False

    def _handed_over(self, site: ast.AST, calls: tuple[ast.AST, ...]) -> set[str]:
        """The names in what is added to an attribute: a meter adds what it is given."""
        names: set[str] = set()
        if isinstance(site, ast.AugAssign) and _is_of_self(site.target):
            names = {n.id for n in ast.walk(site.value) if isinstance(n, ast.Name)}
        elif isinstance(site, (ast.BinOp, ast.Call, ast.Subscript)) and calls:
            statement = self._assigned(site)
            if statement is not None and _is_of_self(statement.targets[0]):
                names = {n.id for n in ast.walk(site) if isinstance(n, ast.Name)}
        for loop in ast.walk(self.machine.tree) if names else ():
            # `for name, value in values.items()`: what is added came in through `values`
            if isinstance(loop, ast.For) and any(n is site for n in ast.walk(loop)):
                bound = {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)}
                if bound & names:
                    names |= {n.id for n in ast.walk(loop.iter) if isinstance(n, ast.Name)}
        return names

    def _holder(self, site: ast.AST) -> str:
        """What holds what is made here: what it is assigned to, or what it is added to."""
        statement = self._assigned(site) if isinstance(site, ast.expr) else None
        return holder_words(site if statement is None else statement)[0]

    def _assigned(self, value: ast.expr) -> ast.Assign | None:
        """The assignment that gives a name, or an attribute, to just this value."""
        statements = (node for node in ast.walk(self.machine.tree) if isinstance(node, ast.Assign))
        return next((statement for statement in statements if statement.value is value), None)

    def _chained_argument(
        self, call: ast.AST, fresh: dict[int, Node], start: int, names: set[str]
    ) -> ast.expr | None:
        """The argument of a call by which this iteration's graph came into a chain."""
        for name, value, node in self.retention.arguments(call):
            if name not in names or value is None:
                continue
            for _, state in self.machine.tensors(value):
                if state.nodes & fresh.keys() and start not in state.nodes and start + 1 not in state.nodes:
                    return node
        return None


def _is_of_self(target: ast.expr) -> bool:
    """Whether a target is, or lies in, an attribute: `self.total`, `self.totals[name]`."""
    while isinstance(target, ast.Subscript):
        target = target.value
    return isinstance(target, ast.Attribute)
