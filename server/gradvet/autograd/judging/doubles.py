"""A network that is compared with itself: two calls of the same thing with the same arguments, both with their graphs.

Whatever the parameters are, the difference of the two is zero, and so is each of its derivatives: in the second derivative
of a divergence from the network as it is (a Fisher vector product), one side has to be a constant.
"""

import ast
from dataclasses import dataclass, field
from typing import NamedTuple

from gradvet.autograd.events_flow import TargetInGraph
from gradvet.autograd.graph import node_key, unknown_key
from gradvet.autograd.judging.flow import DIFFERENCE
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import GRAD, Node, Tensor
from gradvet.autograd.memory.values import Const, Dict, Method, Opaque, Ref, Tuple, Unknown, Value
from gradvet.autograd.python.calls import Call

MOST_DEEP = 12
_DIVERGES = "kl_divergence()"


class Made(NamedTuple):
    """A call with grad mode on: of what and with what, and how many steps were made before it."""

    what: object
    node: ast.Call
    home: ast.AST
    steps: int


@dataclass(slots=True)
class Doubles:
    """Told of calls, and of what is differentiated twice, in files that do so at all."""

    machine: Machine
    active: bool = False
    made: dict[int, Made] = field(default_factory=dict)
    told: set[ast.AST] = field(default_factory=set)

    def called(self, function: Value, call: Call, value: Value) -> None:
        """Something was called and gave this value."""
        m = self.machine
        if m.mode != GRAD or type(value) is not Ref or not isinstance(call.node, ast.Call):
            return
        words = [*call.node.args, *(keyword.value for keyword in call.node.keywords)]
        values = (*call.args, *call.keywords.values())
        if call.star is not None or call.stars is not None or len(words) != len(values):
            return
        given = tuple(self._plain(one, word) for one, word in zip(values, words, strict=True))
        what = (self._plain(function, call.node.func), given, tuple(call.keywords))
        steps = len(m.judge.protocol.steps)
        self.made[value.address & ~1] = Made(what, call.node, m.frames[-1].node, steps)

    def _plain(self, value: Value, word: ast.expr) -> object:
        """A value by what it holds, where it was made for this call alone; what is not known by how it is written."""
        content = self.machine.cells.get(getattr(value, "address", -1))
        if type(value) is Unknown:
            return ast.dump(word)
        if type(content) is Dict and isinstance(word, ast.Dict) and len(word.values) == len(content.items):
            return tuple(
                (key, self._plain(one, part))
                for (key, one), part in zip(content.items, word.values, strict=True)
            )
        return (value.receiver, value.name) if type(value) is Method else value

    def differentiated(self, root: Value, site: ast.AST) -> None:
        """The gradient of something is taken with `create_graph`."""
        seen: set[int] = set()
        waiting: list[tuple[Value, int]] = [(root, 0)]
        while waiting:
            value, depth = waiting.pop()
            if type(value) is not Ref or value.address in seen or depth > MOST_DEEP:
                continue
            seen.add(value.address)
            name, node, parts = self._parts(value)
            if name in DIFFERENCE or name == _DIVERGES:
                self._compared(node, parts, site)
            waiting += [(part, depth + 1) for part in parts]

    def _compared(self, node: ast.AST | None, parts: list[Value], site: ast.AST) -> None:
        m = self.machine
        half = len(parts) // 2  # of a distribution all its parameters
        sides = list(zip(parts[:half], parts[half:], strict=False))
        if node is None or node in self.told or not sides or len(parts) != 2 * half:
            return
        if any(a != b for a, b in sides) and all(a == b or self._same(a, b, 0) for a, b in sides):
            self.told.add(node)
            calls = m.calls_of.get(node, ())
            m.emit(TargetInGraph(node, calls, "itself", None, site, None, owned=True))

    def _parts(self, value: Ref) -> tuple[str, ast.AST | None, list[Value]]:
        """The op by which something was made, where, and of what."""
        m = self.machine
        content = m.cells.get(value.address)
        if type(content) is Tensor and len(content.nodes) == 1:
            (address,) = content.nodes
            node, unknown = m.cells.get(node_key(address)), m.cells.get(unknown_key(address))
            if type(node) is Node:
                known: list[Value] = [Ref(at) for at in sorted(node.inputs)]
                return node.name, node.node, [*known, *(unknown.items if type(unknown) is Tuple else ())]
        if type(content) is Opaque and content.origin is not None:
            made = content.origin.node
            minus = isinstance(made, ast.BinOp) and type(made.op) is ast.Sub
            return "-" if minus else content.reason, made, list(content.inputs)
        return "", None, []

    def _same(self, a: Value, b: Value, depth: int) -> bool:
        """Whether two values are what the same computation gives of two calls that were the same."""
        if a == b:
            return depth > 0
        if type(a) is not Ref or type(b) is not Ref or (a.address | b.address) & 1 or depth > MOST_DEEP:
            return False
        one, other = self.made.get(a.address), self.made.get(b.address)
        if one is not None and other is not None and _alike(one, other):
            return True
        (name, node, parts), (again, beside, others) = self._parts(a), self._parts(b)
        return (
            bool(parts)
            and (name, len(parts)) == (again, len(others))
            and _taken(node) == _taken(beside)
            and not all(type(part) in (Const, Unknown) or part in others for part in parts)
            and all(self._same(x, y, depth + 1) for x, y in zip(parts, others, strict=True))
        )


def _taken(node: ast.AST | None) -> str:
    """What is taken of something by its name: an attribute, an item, a method."""
    match node:
        case ast.Attribute(attr=attr) | ast.Call(func=ast.Attribute(attr=attr)):
            return attr
        case ast.Subscript(slice=index):
            return ast.dump(index)
        case ast.Name() | None:
            return ""
    return type(node).__name__


def _alike(one: Made, other: Made) -> bool:
    """Whether two calls were the same: no step and no new value of what they are given came between them."""
    if one.what != other.what or one.node is other.node or one.steps != other.steps:
        return False
    if one.home is not other.home:
        return False
    rows = sorted(getattr(made.node, "lineno", 0) for made in (one, other))
    words = [*one.node.args, *(keyword.value for keyword in one.node.keywords)]
    names = {node.id for word in words for node in ast.walk(word) if isinstance(node, ast.Name)}
    return not any(
        isinstance(node, ast.Name)
        and isinstance(node.ctx, ast.Store)
        and node.id in names
        and rows[0] < node.lineno < rows[1]
        for node in ast.walk(one.home)
    )
