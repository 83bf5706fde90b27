"""Advantages that keep their graph where nothing is known of the model: the loss itself tells that they have one.

Of what the loss takes a distance from, something is trained, or the distance were of no use. Where all of it also
stands, as it is, in what weights the probability of an action, that weight leads to what is trained as well.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from gradvet.autograd.events_flow import TargetInGraph
from gradvet.autograd.graph import node_key, unknown_key
from gradvet.autograd.judging.flow import DIFFERENCE, PRODUCT, QUOTIENT, SHAPE, SUM
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import GRAD, YES, Node, Tensor
from gradvet.autograd.memory.values import Opaque, Ref, Tuple
from gradvet.autograd.python.operators import SYMBOLS

_DISTANCES = frozenset({"mse_loss", "MSELoss", "smooth_l1_loss", "SmoothL1Loss", "huber_loss", "HuberLoss"})
_SQUARES = frozenset({"**", "pow", "square"})
_LINEAR = SHAPE | SUM | DIFFERENCE | PRODUCT | QUOTIENT | {"neg"}
_MOST = 150


class Thing(NamedTuple):
    """A node of the graph, or something unknown: its name as an op, where it was made, and what surely went in."""

    name: str
    site: ast.AST
    inputs: tuple[int | Ref, ...]


@dataclass(slots=True)
class OpenWeights:
    """Looks at each backward before it teaches what the terms of its loss are."""

    machine: Machine
    unrecorded: set[int] = field(default_factory=set)
    """What was made of something unknown while grad mode was off."""
    found: dict[ast.AST, TargetInGraph] = field(default_factory=dict)

    def backward(self, root: Ref) -> None:
        """A backward starts here."""
        things = {key: thing for key in self._behind([root]) if (thing := self._thing(key)) is not None}
        trained = [found for thing in things.values() if (found := self._trained(thing))[1]]
        products = {key: thing for key, thing in things.items() if trained and thing.name in PRODUCT}
        sites = dict.fromkeys(thing.site for thing in products.values() if isinstance(thing.site, ast.BinOp))
        for site in sites:
            events = [self._weighted(key, one, trained) for key, one in products.items() if one.site is site]
            if events[0] is not None and None not in events:  # whichever of several its operands may be
                self.found.setdefault(site, events[0])

    def conclude(self) -> None:
        """Tell those that are not told already."""
        if not self.found:
            return
        m = self.machine
        told = {
            id(part) for event in m.events if type(event) is TargetInGraph for part in ast.walk(event.use)
        }
        for event in self.found.values():
            if id(event.use) not in told:
                m.emit(event)

    def _weighted(
        self, key: int | Ref, product: Thing, trained: list[tuple[ast.AST, set[Ref]]]
    ) -> TargetInGraph | None:
        """The weight of a score that leads to all of what a distance was taken of."""
        match product.inputs:
            case (one, other) if not self._is_cut(key):
                ways = ((one, other), (other, one))
            case _:
                return None
        for score, weight in ways:
            if not self._is_score(score) or self._is_score(weight):
                continue
            passed, ends = self._chain(weight)
            site = next((site for site, known in trained if known <= ends), None)
            operand = self._other_side(product.site, score)
            if site is not None and operand is not None and any(op.name in DIFFERENCE for op in passed):
                use, where = product.site, self.machine.calls_of.get(product.site, ())
                return TargetInGraph(operand, where, "weight", operand, use, None, owned=True, trained=site)
        return None

    def _other_side(self, use: ast.AST, score: int | Ref) -> ast.expr | None:
        """The operand that is not the score."""
        if not isinstance(use, ast.BinOp):
            return None
        at = score.address if type(score) is Ref else score
        sides = [self.machine.states.get(side) for side in (use.left, use.right)]
        of_score = [state is not None and at in state.nodes for state in sides]
        if type(score) is Ref:  # something unknown is in no state
            content = self.machine.cells.get(at)
            made = content.origin.node if type(content) is Opaque and content.origin is not None else None
            of_score = [side is made for side in (use.left, use.right)]
            if not any(of_score):
                of_score = [state is None for state in sides]
        if of_score[0] is of_score[1]:
            return None
        return use.right if of_score[0] else use.left

    def _trained(self, thing: Thing) -> tuple[ast.AST, set[Ref]]:
        """The unknown things of which a distance is taken: one of them requires grad, or it were of no use."""
        if thing.name in _DISTANCES:
            sides = thing.inputs
        elif thing.name in _SQUARES and thing.inputs:
            inner = self._thing(thing.inputs[0])
            sides = inner.inputs if inner is not None and inner.name in DIFFERENCE else ()
        else:
            return thing.site, set()
        return thing.site, set().union(*(self._chain(side)[1] for side in sides))

    def _chain(self, start: int | Ref) -> tuple[list[Thing], set[Ref]]:
        """What a value surely is a linear function of: the ops on the way, and the unknown things at its ends."""
        passed: list[Thing] = []
        ends: set[Ref] = set()
        for key in self._behind([start], only=_LINEAR):
            thing = self._thing(key)
            if thing is not None and thing.name in _LINEAR:
                if self._is_cut(key):
                    return [], set()  # on some path there may be no graph
                passed.append(thing)
            elif type(key) is Ref and self._may_have_graph(key):
                ends.add(key)
        return passed, ends

    def _is_cut(self, key: int | Ref) -> bool:
        """Whether a gradient was stopped in what went into an op."""
        judge = self.machine.judge
        made = judge.flow.made(key) if judge is not None and type(key) is int else None
        return made is not None and any(part.cuts for part in made.parts)

    def _is_score(self, start: int | Ref) -> bool:
        """Whether something is the logarithm of a probability."""
        for key in self._behind([start], only=SHAPE | {"neg"}):
            thing = self._thing(key)
            if thing is not None and thing.name == "log_prob":
                return True
        return False

    def _behind(self, start: Iterable[int | Ref], only: frozenset[str] | None = None) -> Iterator[int | Ref]:
        """What surely went into something, as long as the ops are among some."""
        stack, seen = list(start), set[int | Ref]()
        while stack and len(seen) < _MOST:
            key = stack.pop()
            if key in seen:
                continue
            seen.add(key)
            yield key
            thing = self._thing(key)
            if thing is not None and (only is None or thing.name in only):
                stack += thing.inputs

    def _may_have_graph(self, ref: Ref) -> bool:
        content = self.machine.cells.get(ref.address)
        return (
            type(content) is Opaque
            and ref.address & ~1 not in self.unrecorded
            and content.origin is not None
            and isinstance(content.origin.node, (ast.Call, ast.Name, ast.Subscript))
            and content.reason.startswith("the result of")
        )

    def _thing(self, key: int | Ref) -> Thing | None:
        """An op and what surely went into it; None for what nothing is known to have made."""
        cells = self.machine.cells
        if isinstance(key, int):
            node, unknown = cells.get(node_key(key)), cells.get(unknown_key(key))
            if type(node) is not Node:
                return None
            beside = unknown.items if type(unknown) is Tuple else ()
            known: list[int | Ref] = sorted(node.inputs)
            known += [value for value in beside if isinstance(value, Ref)]
            return Thing(node.name.removesuffix("()"), node.node, tuple(known))
        content = cells.get(key.address)
        if type(content) is Tensor:
            computed = len(content.nodes) == 1 and content.requires_grad & YES
            return self._thing(min(content.nodes)) if computed else None
        if type(content) is not Opaque or content.origin is None or key.address & ~1 in self.unrecorded:
            return None
        inputs = tuple(value for value in content.inputs if type(value) is Ref)
        return Thing(_name(content.origin.node), content.origin.node, inputs)

    def made(self, ref: Ref) -> None:
        """Something unknown was made: no graph is recorded of it where grad mode is off."""
        if self.machine.mode != GRAD:
            self.unrecorded.add(ref.address & ~1)


def _name(node: ast.AST) -> str:
    """The op that something unknown is the result of, as it is written."""
    match node:
        case ast.BinOp(op=op):
            return SYMBOLS.get(type(op), "")
        case ast.UnaryOp(op=ast.USub()):
            return "neg"
        case ast.Call(func=ast.Attribute(attr=name)):
            return name
    return ""
