"""What annotations name: the classes that a value may be an instance of, None among them."""

import ast

from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.values import NONE, External, OwnModule, Unknown, Value
from gradvet.autograd.python.names import lookup_from

_EITHER = frozenset({"typing.Union", "typing.Optional"})
_WRAPPERS = frozenset({"typing.Annotated", "typing.Final", "typing.ClassVar", "dataclasses.InitVar"})


def annotated(m: Machine, annotation: ast.expr, scope: int) -> list[Value]:
    """The alternatives that an annotation in a scope names; what cannot be followed is an unknown one."""
    match annotation:
        case ast.Constant(value=None):
            return [NONE]
        case ast.Constant(value=str(text)):
            try:
                return annotated(m, ast.parse(text, mode="eval").body, scope)
            except SyntaxError:
                return [Unknown("an annotation")]
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return [*annotated(m, left, scope), *annotated(m, right, scope)]
        case ast.Subscript(value=ast.Name() | ast.Attribute() as made, slice=inner):
            return _made_of(m, _named(m, made, scope), inner, scope)
    return [_named(m, annotation, scope)]


def _named(m: Machine, node: ast.expr, scope: int) -> Value:
    match node:
        case ast.Name(id=name):
            return lookup_from(m, scope, name)
        case ast.Attribute(value=inner, attr=name):
            owner = _named(m, inner, scope)
            if type(owner) is External:
                return External(f"{owner.name}.{name}")
            if type(owner) is OwnModule:
                return m.imports.member(m, owner, name)
    return Unknown("an annotation")


def _made_of(m: Machine, made: Value, inner: ast.expr, scope: int) -> list[Value]:
    """`Optional[X]`, `Union[X, Y]`, and what only wraps another annotation."""
    name = made.name if type(made) is External else ""
    parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
    if name in _WRAPPERS:
        return annotated(m, parts[0], scope)
    if name not in _EITHER:
        return [Unknown("an annotation")]
    found = [hint for part in parts for hint in annotated(m, part, scope)]
    return [*found, NONE] if name == "typing.Optional" else found
