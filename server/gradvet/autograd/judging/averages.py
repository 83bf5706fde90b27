"""Running averages: each is computed from the last one by sums and weights alone, and from something new."""

import ast
from typing import NamedTuple

from gradvet.autograd.graph import node_key, reachable
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import MAYBE, NO, YES, Node

SUMS = frozenset({"+", "+=", "add()", "add_()"})
DIFFERENCES = frozenset({"-", "-=", "sub()", "sub_()", "neg"})
WEIGHTS = frozenset({"*", "/", "*=", "/=", "mul()", "div()", "mul_()", "div_()", "lerp()", "lerp_()"})
LINEAR = SUMS | DIFFERENCES | WEIGHTS
WRITTEN = frozenset({"copy_()", "[...] ="})
"""How a result is put into the tensor that holds the average."""
PART = "[...]"


class Average(NamedTuple):
    """An average's newest node; `new` are the nodes that brought this iteration's graph into it."""

    node: Node
    address: int
    new: dict[int, Node]
    freed: int
    of_leaves: bool
    """Whether leaves alone are averaged, which are no weights: whoever keeps that wants values and no gradient."""


def running_average(m: Machine, born: set[int], start: int) -> Average | None:
    """What is known when this node, born in an iteration, makes a running average of the last iteration's one."""
    node = m.cells.get(node_key(start))
    old = start | 1
    if (
        type(node) is not Node
        or start & 1
        or start not in born
        or node.freed & YES
        or node.name not in LINEAR | WRITTEN
    ):
        return None
    new: dict[int, Node] = {}
    came_back = weighted = of_leaves = scaled = False
    stack = [(start, node.name in WEIGHTS)]
    seen: set[tuple[int, bool]] = set()
    while stack:
        at, weight = stack.pop()
        if (at, weight) in seen:
            continue
        seen.add((at, weight))
        inner = m.cells.get(node_key(at))
        if at == old:
            came_back, weighted = True, weighted or weight
        elif type(inner) is not Node or at & 1:
            continue
        elif at in born and (inner.name in LINEAR | WRITTEN or _is_part_of(m, inner, old)):
            lessened = weight or inner.name in WEIGHTS or inner.name in DIFFERENCES
            of_leaves |= bool(inner.leaves)
            scaled |= bool(inner.leaves and inner.inputs) and inner.name in WEIGHTS  # a leaf is the weight
            stack += [(below, lessened) for below in inner.inputs]
        elif at in born:
            new[at] = inner
    if not (came_back and weighted and (new or of_leaves)):
        return None
    behind = reachable(m, frozenset(new))
    if old in behind:
        return None  # what is new depends on the average itself: state, and no average
    freed = _freed([n for at, n in behind.items() if at in born]) if new else YES
    return Average(node, start, new, freed, not new and not scaled)


def _is_part_of(m: Machine, node: Node, old: int) -> bool:
    """Whether a node takes a part of the average itself."""
    return node.name == PART and (old in node.inputs or old in reachable(m, node.inputs))


def _freed(nodes: list[Node]) -> int:
    """Whether a backward has freed all that these nodes keep."""
    keeping = [node.freed for node in nodes if node.keeps & YES and node.freed != YES]
    if not keeping:
        return YES if any(node.freed == YES for node in nodes) else NO
    return NO if NO in keeping else MAYBE


def entering(m: Machine, statement: ast.AST, average: Average) -> ast.expr | None:
    """The expression in a statement that brings the new graph in: the smallest that is just that."""
    nodes = {at & ~1 for at in average.new}
    found = [
        part
        for part in ast.walk(statement)
        if isinstance(part, (ast.Name, ast.Attribute, ast.Subscript, ast.Call))
        and isinstance(getattr(part, "ctx", ast.Load()), ast.Load)
        and (state := m.states.get(part)) is not None
        and nodes & (held := {at & ~1 for at in state.nodes})
        and average.address not in held
    ]
    return min(found, key=lambda part: len(ast.unparse(part)), default=None)
