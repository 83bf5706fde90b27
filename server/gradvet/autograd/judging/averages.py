"""Running averages: each is computed from the last one by sums and weights alone, and from something new."""

import ast
from typing import NamedTuple

from gradvet.autograd.graph import going_on_from, node_key, reachable
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import MAYBE, NO, YES, Node

SUMS = frozenset({"+", "+=", "add()", "add_()"})
DIFFERENCES = frozenset({"-", "-=", "sub()", "sub_()", "neg"})
WEIGHTS = frozenset({"*", "/", "*=", "/=", "mul()", "div()", "mul_()", "div_()", "lerp()", "lerp_()"})
LINEAR = SUMS | DIFFERENCES | WEIGHTS
WRITTEN = frozenset({"copy_()", "[...] ="})
"""How a result is put into the tensor that holds the average."""
HANDED_ON = frozenset({
    "[...]", "clone()", "contiguous()", "to()", "float()", "double()", "half()", "bfloat16()", "view()", "reshape()",
    "flatten()", "squeeze()", "unsqueeze()", "t()", "T", "transpose()",
})  # fmt: skip
"""How the average itself is taken up again: a part of it, a copy, or the same in another form."""
MOST_FORMS = 6


class Average(NamedTuple):
    """The op that makes an average, and its newest node's address; `new` are the nodes that bring new graphs into it."""

    node: Node
    address: int
    new: dict[int, Node]
    freed: int
    of_leaves: bool
    """Whether leaves alone are averaged, which are no weights: whoever keeps that wants values and no gradient."""


def taken_up(m: Machine, born: set[int]) -> set[int]:
    """The older nodes that the nodes which were born once in an iteration have among their inputs."""
    nodes = (m.cells.get(node_key(at)) for at in born if not at & 1)
    return {before for node in nodes if type(node) is Node for before in node.inputs if before & 1}


def running_average(m: Machine, born: set[int], taken: set[int], start: int) -> Average | None:
    """What is known when this node, born in an iteration, makes a running average of the last iteration's one.

    `taken` are the nodes of earlier iterations that one from this goes on from: see `taken_up`.

    Of a node with an odd address, which loops inside the iteration have made again and again, the last iteration's
    one has the same address; there is one where something stands between the two that was made once in the iteration.
    """
    if start | 1 not in taken:
        return None
    node = m.cells.get(node_key(start))
    if type(node) is not Node or start & ~1 not in born or (node.freed & YES and not start & 1):
        return None
    first, inner = start, node
    for _ in range(MOST_FORMS):  # what is normalised, or brought into another form, after it was averaged
        if inner.name in LINEAR | WRITTEN:
            break
        if len(inner.inputs) != 1 or inner.leaves:
            return None
        (first,) = inner.inputs
        below = m.cells.get(node_key(first))
        if type(below) is not Node or first & ~1 not in born:
            return None
        inner = below
    else:
        return None
    made, old, inside = inner, start | 1, first & 1
    found = reachable(m, frozenset({first}))
    leading = going_on_from(found, [at for at, step in found.items() if old in step.inputs])
    if not leading:
        return None
    new: dict[int, Node] = {}
    came_back = weighted = of_leaves = scaled = False
    stack = [(first, inner.name in WEIGHTS, first if start & 1 else -1)]
    seen: set[tuple[int, bool]] = set()
    while stack:
        at, weight, above = stack.pop()
        if at == old and not above & 1:
            came_back, weighted = True, weighted or weight
        if (at, weight) in seen or (at == old and above not in (-1, at)):
            continue
        seen.add((at, weight))
        step = m.cells.get(node_key(at))
        if type(step) is not Node or (at & 1 and at & ~1 not in born):
            continue
        if at & 1 and not inside:
            new[at] = step
        elif at & ~1 in born and (
            step.name in LINEAR | WRITTEN or (step.name in HANDED_ON and at in leading)
        ):
            lessened = weight or step.name in WEIGHTS or step.name in DIFFERENCES
            of_leaves |= bool(step.leaves)
            scaled |= bool(step.leaves and step.inputs) and step.name in WEIGHTS  # a leaf is the weight
            stack += [(below, lessened, at) for below in step.inputs]
        elif at in born or inside:
            new[at] = step
    if not (came_back and weighted and (new or of_leaves)):
        return None
    behind = reachable(m, frozenset(new))
    if old in behind:
        return None  # what is new depends on the average itself: state, and no average
    freed = _freed([n for at, n in behind.items() if at in born]) if new else YES
    return Average(made, start, new, freed, not new and not scaled)


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
