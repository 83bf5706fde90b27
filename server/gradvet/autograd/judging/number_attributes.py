"""Attributes that a class uses as numbers: a tensor with a graph does not belong there."""

import ast
from dataclasses import dataclass, field

from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.values import Instance, Ref
from gradvet.syntax.tree import inner

_NUMBERS = ("int", "float")


@dataclass(slots=True)
class NumberAttributes:
    """For each class, the attributes that are given numbers and of which nothing is computed for a gradient."""

    machine: Machine
    known: dict[int, frozenset[str]] = field(default_factory=dict)

    def holds(self, holder: Ref, name: str, site: ast.AST) -> bool:
        """Whether a statement gives a new value to an attribute that is a number elsewhere."""
        m = self.machine
        content = m.cells.get(holder.address)
        if type(content) is not Instance or not isinstance(site, ast.Assign):
            return False
        if content.owner not in self.known:
            self.known[content.owner] = _numbers_in(m.classes[content.owner].node)
        return name in self.known[content.owner]


def _numbers_in(owner: ast.ClassDef) -> frozenset[str]:
    numbers, computed = set[str](), set[str]()
    stack = inner(owner)
    while stack:
        node = stack.pop()
        if type(node) in _TOLD:
            _look(node, numbers, computed)
        stack += inner(node)
    return frozenset(numbers - computed)


_TOLD = frozenset({ast.Assign, ast.AnnAssign, ast.BinOp, ast.AugAssign, ast.Attribute, ast.Call})
"""The kinds of nodes that tell something."""


def _look(node: ast.AST, numbers: set[str], computed: set[str]) -> None:
    """Note the attributes that a node gives a number, and those that it computes with."""
    match node:
        case ast.Attribute(value=value, attr="backward"):
            if isinstance(value, ast.Attribute):
                computed.add(value.attr)
        case ast.Call(func=ast.Attribute(attr=method), args=[ast.Attribute(attr=name), *_]):
            if "backward" in method or method == "scale":
                computed.add(name)
        case ast.BinOp():
            computed.update(side.attr for side in (node.left, node.right) if isinstance(side, ast.Attribute))
        case ast.AugAssign():
            computed.update(n.attr for n in (node.target, node.value) if isinstance(n, ast.Attribute))
        case ast.Assign(targets=[ast.Attribute(ast.Name("self"), name)], value=value):
            if _is_number(value):
                numbers.add(name)
        case ast.AnnAssign(
            target=ast.Name(name) | ast.Attribute(ast.Name("self"), name),
            annotation=ast.Name(kind) | ast.Constant(kind),
        ) if kind in _NUMBERS:
            numbers.add(name)


def _is_number(value: ast.expr) -> bool:
    if isinstance(value, ast.UnaryOp):
        return _is_number(value.operand)
    return isinstance(value, ast.Constant) and type(value.value) in (int, float)
