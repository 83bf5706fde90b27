"""Attributes that one method of a class fills, and another empties when what they hold was used."""

import ast

from gradvet.autograd.judging.above import ANY_FUNCTION, function_of
from gradvet.autograd.judging.retention import Place
from gradvet.syntax.parents import Parents


def emptied_elsewhere(place: Place, parents: Parents) -> bool:
    """Whether a method that ran by itself puts something into an attribute that another method sets anew or clears."""
    method = function_of(place.site, parents, ANY_FUNCTION)
    owner = parents.get(method)
    holder: ast.AST | None = place.site.func if isinstance(place.site, ast.Call) else None
    while isinstance(holder, (ast.Attribute, ast.Subscript)) and not _is_own(holder):
        holder = holder.value
    if (
        not isinstance(owner, ast.ClassDef)
        or not isinstance(holder, ast.Attribute)
        or place.calls != (method,)
    ):
        return False
    others = [
        one for one in owner.body if one is not method and getattr(one, "name", "__init__") != "__init__"
    ]
    return any(_empties(node, holder.attr) for one in others for node in ast.walk(one))


def _is_own(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)


def _empties(node: ast.AST, name: str) -> bool:
    """Whether a statement sets an attribute of this name, or an item of it, anew, or clears or deletes it."""
    match node:
        case ast.Assign(targets=[target]) | ast.Delete(targets=[target]):
            inner = target.value if isinstance(target, ast.Subscript) else target
        case ast.Call(func=ast.Attribute(value=inner, attr="clear")):
            pass
        case _:
            return False
    return isinstance(inner, ast.Attribute) and _is_own(inner) and inner.attr == name
