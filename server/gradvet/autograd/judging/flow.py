"""Where a gradient flows that was meant to stop: how each result was made, and what a backward finds on its way.

Every op that autograd records is noted with its operands, so that a backward can be followed from the loss down
to the modules, operand by operand: which side of a difference is a target, which factor of a product is a weight.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from gradvet.autograd.graph import reachable
from gradvet.autograd.held import held_tensors
from gradvet.autograd.library.kept import Inputs, Operand
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import YES, Tensor
from gradvet.autograd.memory.values import Const, Optimizer, Ref, Value

Nodes = frozenset[int]

SHAPE = frozenset({
    "[...]", "squeeze", "unsqueeze", "view", "reshape", "flatten", "gather", "stack", "cat", "concat", "max", "min",
    "amax", "amin", "where", "[...] =", "expand", "expand_as", "clone", "to", "float", "double", "type_as", "masked_fill",
    "masked_fill_", "index_select", "t", "T", "transpose", "permute", "contiguous", "take_along_dim", "minimum", "maximum",
    "mean", "sum", "clamp", "clip", "split", "chunk", "unbind", "std", "var", "flip", "roll", "cumsum", "item",
})  # fmt: skip
"""Ops that choose or arrange values, or sum them up, and leave them on their scale."""
SUM = frozenset({"+", "+=", "add", "add_"})
DIFFERENCE = frozenset({"-", "-=", "sub", "sub_"})
PRODUCT = frozenset({"*", "*=", "mul", "mul_"})
QUOTIENT = frozenset({"/", "/=", "div", "div_", "true_divide"})
LINEAR = SUM | DIFFERENCE | PRODUCT | QUOTIENT | {"neg", "matmul", "@"}


class Part(NamedTuple):
    """An operand: its parameter's name, the graph that it may (or is `sure` to) bring with it, and what was cut before."""

    role: str
    nodes: Nodes
    leaves: frozenset[int]
    asks: bool
    sure: bool
    sampled: bool
    cuts: frozenset[int] = frozenset()


class Made(NamedTuple):
    """How a result was made: the op, its operands of all that was `given`, the constants among them, in which function."""

    name: str
    site: ast.AST
    calls: tuple[ast.AST, ...]
    function: ast.AST
    parts: tuple[Part, ...]
    constants: tuple[float, ...]
    others: bool
    given: int = 0

    @property
    def asking(self) -> tuple[Part, ...]:
        """The operands that bring a gradient's way with them."""
        return tuple(part for part in self.parts if part.asks)


class Told(NamedTuple):
    """An op as the machine told of it."""

    name: str
    site: ast.AST
    calls: tuple[ast.AST, ...]
    function: ast.AST
    inputs: Inputs


class Called(NamedTuple):
    """A call of a module: where, to which leaves its result leads, and the module."""

    site: ast.AST
    calls: tuple[ast.AST, ...]
    function: ast.AST
    nodes: Nodes
    leaves: frozenset[int]
    module: Ref


class Chain(NamedTuple):
    """A way down through some ops: the nodes that were passed, and those at which it ended."""

    passed: tuple[int, ...]
    ends: tuple[int, ...]


class Run(NamedTuple):
    """A backward: its call, the root's graph, the leaves and nodes that it reached, and those freed before."""

    site: ast.AST
    calls: tuple[ast.AST, ...]
    nodes: Nodes
    leaves: frozenset[int]
    seen: frozenset[int]
    freed: frozenset[int]


@dataclass(slots=True)
class Flow:
    """What was made of what, as the machine told it."""

    machine: Machine
    told: dict[int, list[Told]] = field(default_factory=dict)
    known: dict[int, Made] = field(default_factory=dict)
    outputs: dict[int, Called] = field(default_factory=dict)
    read: set[int] = field(default_factory=set)
    owned: set[int] = field(default_factory=set)
    stepped: set[int] = field(default_factory=set)
    all_known: bool = True
    backwards: list[Run] = field(default_factory=list)
    calls: dict[tuple[ast.AST, tuple[ast.AST, ...]], Called] = field(default_factory=dict)
    followers: dict[int, ast.AST] = field(default_factory=dict)
    averages: set[int] = field(default_factory=set)
    """Followers that keep a part of what they were: nobody sets a network so that is to be trained from there."""
    leaders: set[int] = field(default_factory=set)
    """Parameters from which such an average was taken."""

    # -- told by the machine

    def computed(self, address: int, name: str, site: ast.AST, inputs: Inputs) -> None:
        """An op was recorded. It is looked at when somebody asks: most results nobody asks for."""
        m = self.machine
        self.told.setdefault(address & ~1, []).append(Told(name, site, m.where(), m.frames[-1].node, inputs))

    def changed(self, address: int, name: str, site: ast.AST, operands: tuple[Operand, ...]) -> None:
        """A change in place was recorded, of the first of these."""
        arguments = {operand.parameter: operand.value for operand in operands}
        self.computed(address, name, site, Inputs(arguments, operands, ()))

    def called(self, ref: Ref, site: ast.AST, result: Value) -> None:
        """A module was called and gave this."""
        m = self.machine
        for _, state in held_tensors(m, result):
            if state.requires_grad & YES and state.nodes:
                nodes = frozenset(at & ~1 for at in state.nodes)
                call = Called(site, m.where(), m.frames[-1].node, nodes, state.leaves, ref)
                self.calls[site, m.where()] = call
                self.outputs.update(dict.fromkeys(nodes, call))

    def follows(self, leaves: Iterable[int], sources: frozenset[int], site: ast.AST) -> None:
        """These leaves were set from the values of others, while training goes on: `load_state_dict`, a moving average."""
        frames = self.machine.frames
        if any(getattr(frame.node, "name", "") == "__init__" for frame in frames):
            return
        if len(frames) == 1 and not self.machine.loops:
            return
        for leaf in leaves:
            if sources - {leaf}:
                self.followers[leaf & ~1] = site

    def edited(self, site: ast.AST, state: Tensor, operands: Iterable[Tensor], *, whole: bool) -> None:
        """A tensor was changed in place: a leaf that is given the values of other leaves follows them.

        `whole` when nothing of what it was stays, but for what the operands bring back of it.
        """
        cells = self.machine.cells
        leaves = {at for at in state.storage if type(cells.get(at)) is Tensor and cells[at].parameter & YES}
        if not leaves:
            return
        sources = frozenset[int]()
        for operand in operands:
            cuts = [self.machine.cuts[cut] for cut in operand.cuts]
            if not any(cut.kind == "grad" for cut in cuts):  # else it is a step along a gradient
                sources |= operand.leaves.union(*(cut.leaves for cut in cuts))
        own = {leaf & ~1 for leaf in leaves}
        others = frozenset(at for at in sources if at & ~1 not in own and self._is_parameter(at))
        self.follows(leaves, others, site)
        if others and (not whole or any(at & ~1 in own for at in sources)):
            self.averages |= own & self.followers.keys()
            self.leaders |= {at & ~1 for at in others}

    def _is_parameter(self, address: int) -> bool:
        state = self.machine.cells.get(address)
        return type(state) is Tensor and bool(state.parameter & YES)

    def parted(self, whole: int, part: int) -> None:
        """Some of the parameters for which a leaf stands are looked at by themselves."""
        for noted in (self.owned, self.stepped, self.read):
            if whole & ~1 in noted:
                noted.add(part & ~1)

    def owns(self, optimizer: Optimizer) -> None:
        """An optimizer was made."""
        self.owned |= {leaf & ~1 for leaf in optimizer.owns}

    def step(self, optimizer: Optimizer) -> None:
        """An optimizer made a step."""
        self.stepped |= {leaf & ~1 for leaf in optimizer.owns}
        self.owned |= self.stepped
        self.all_known = self.all_known and optimizer.all_known

    def backward(self, site: ast.AST, root: Tensor) -> Run:
        """A backward runs from this root; it is looked at while the graph is as it is now."""
        found = reachable(self.machine, root.nodes)
        seen = frozenset(at & ~1 for at in found)
        freed = frozenset(at & ~1 for at, node in found.items() if node.freed == YES == node.keeps)
        run = Run(site, self.machine.where(), root.nodes, root.leaves, seen, freed)
        self.backwards.append(run)
        return run

    # -- asked by the judgements

    def made(self, address: int) -> Made | None:
        """How the result at an address was made, in one iteration or another."""
        for told in self.told.pop(address & ~1, ()):
            now, before = _made(told), self.known.get(address & ~1)
            self.known[address & ~1] = now if before is None else _either(before, now)
        return self.known.get(address & ~1)

    def all_made(self, addresses: Iterable[int]) -> list[Made]:
        """How the results at these addresses were made, as far as it is known."""
        return [made for at in addresses if (made := self.made(at)) is not None]

    def walk(self, nodes: Iterable[int], through: frozenset[str], *, into: bool = False) -> Chain:
        """Go down through ops of these names; a module's output ends the way, unless it is gone `into`."""
        passed: dict[int, None] = {}
        ends: dict[int, None] = {}
        stack = [node & ~1 for node in nodes]
        while stack:
            node = stack.pop()
            if node in passed or node in ends:
                continue
            made = self.made(node)
            if made is None or made.name not in through or (node in self.outputs and not into):
                ends[node] = None
                continue
            passed[node] = None
            for part in made.asking:
                stack.extend(at & ~1 for at in part.nodes)
        return Chain(tuple(passed), tuple(ends))

    def expression(self, made: Made, part: Part) -> ast.expr | None:
        """The operand as it stands in the source."""
        states = self.machine.states
        wanted = {node & ~1 for node in part.nodes}
        for expression in operands_of(made.site):
            state = states.get(expression)
            if state is not None and wanted and wanted <= {node & ~1 for node in state.nodes}:
                return expression
        return None


def _made(told: Told) -> Made:
    inputs = told.inputs
    parts = tuple(_part(operand.parameter, operand.state) for operand in inputs.operands)
    constants = tuple(
        value.value
        for value in inputs.arguments.values()
        if type(value) is Const and value.kind in ("int", "float")
    )
    others = len(inputs.arguments) > len({part.role for part in parts}) + len(constants)
    given = len(inputs.arguments)
    return Made(
        told.name.removesuffix("()"), told.site, told.calls, told.function, parts, constants, others, given
    )


def _part(role: str, state: Tensor) -> Part:
    sampled = state.origin is not None and state.origin.text == "sample()"
    asks = bool(state.requires_grad & YES and state.nodes)
    return Part(
        role, state.nodes, state.leaves, asks, asks and state.requires_grad == YES, sampled, state.cuts
    )


def _either(before: Made, now: Made) -> Made:
    """How a result is made in one iteration or the other."""
    if len(before.parts) != len(now.parts):
        return now
    parts = tuple(
        b._replace(
            nodes=a.nodes | b.nodes, leaves=a.leaves | b.leaves, asks=a.asks or b.asks, sure=a.sure and b.sure
        )
        for a, b in zip(before.parts, now.parts, strict=True)
    )
    return now._replace(parts=parts)


def operands_of(site: ast.AST) -> Iterator[ast.expr]:
    """The expressions that an op was given."""
    match site:
        case ast.BinOp(left=left, right=right):
            yield left
            yield right
        case ast.AugAssign(target=target, value=value):
            yield value
            yield target
        case ast.UnaryOp(operand=operand):
            yield operand
        case ast.Call(func=func, args=args, keywords=keywords):
            yield from args
            yield from (keyword.value for keyword in keywords)
            if isinstance(func, ast.Attribute):
                yield func.value
