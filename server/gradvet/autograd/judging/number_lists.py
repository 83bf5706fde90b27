"""Lists of an object that hold numbers: a tensor with a graph does not belong there.

Where nothing is known of the model, the code itself is the evidence: what else goes into the lists of one attribute is
turned into numbers, and this one value is a mean of what the loss of the same function is a sum of.
"""

import ast
from collections.abc import Callable, Iterator

from gradvet.syntax.tree import walk

FEWEST_NUMBERS = 3
_NUMBERS = frozenset({"item", "tolist"})
_TURNED = frozenset({"float", "int", "len", "round"})
_REDUCED = frozenset({"mean", "sum"})
Appended = tuple[ast.Call, ast.FunctionDef]


def tensors_among_numbers(
    tree: ast.Module, appends: Callable[[ast.FunctionDef], bool]
) -> Iterator[tuple[ast.Call, ast.FunctionDef, ast.Name]]:
    """The calls of `append` that put a term of a loss among numbers, with their function and that term.

    `appends` tells which functions are worth a look.
    """
    for owner in tree.body:
        if isinstance(owner, ast.ClassDef):
            methods = [one for one in owner.body if isinstance(one, ast.FunctionDef) and appends(one)]
            for appended in _by_attribute(methods).values():
                if sum(_is_number(call.args[0]) for call, _ in appended) < FEWEST_NUMBERS:
                    continue
                found = [(*one, term) for one in appended if (term := _term(one[0].args[0], one[1]))]
                yield from found if len(found) == 1 else ()


def _by_attribute(methods: list[ast.FunctionDef]) -> dict[str, list[Appended]]:
    """What the methods of a class append to lists that lie in an attribute of the object."""
    found: dict[str, list[Appended]] = {}
    for function in methods:
        for node in walk(function):
            match node:
                case ast.Call(func=ast.Attribute(value=held, attr="append"), args=[_], keywords=[]):
                    while isinstance(held, ast.Subscript):
                        held = held.value
                    if isinstance(held, ast.Attribute) and isinstance(held.value, ast.Name):
                        found.setdefault(ast.unparse(held), []).append((node, function))
    return found


def _is_number(value: ast.expr) -> bool:
    match value:
        case ast.Call(func=ast.Attribute(attr=name), args=[]):
            return name in _NUMBERS
        case ast.Call(func=ast.Name(id=name)):
            return name in _TURNED
        case ast.IfExp(body=one, orelse=other) | ast.BinOp(left=one, right=other):
            return _is_number(one) or _is_number(other)
    return False


def _term(value: ast.expr, function: ast.FunctionDef) -> ast.Name | None:
    """The term of a loss whose mean or sum a value is."""
    match value:
        case ast.Call(func=ast.Attribute(value=inner, attr=name), args=[]) if name in _REDUCED:
            terms = _terms_of_losses(function)
            while isinstance(inner, ast.Call) and len(inner.args) == 1 and not inner.keywords:
                inner = inner.args[0]  # `accelerator.gather(loss)`
            return inner if isinstance(inner, ast.Name) and inner.id in terms else None
    return None


def _terms_of_losses(function: ast.FunctionDef) -> set[str]:
    """The names that a function adds to what it gives back or runs backward from."""
    used: set[str] = set()
    for node in walk(function):
        match node:
            case ast.Return(value=ast.expr() as value):
                used |= {part.id for part in walk(value) if isinstance(part, ast.Name)}
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="backward")):
                used.add(name)
    terms: set[str] = set()
    for node in walk(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.BinOp(op=ast.Add()) as sum_) if (
                name in used
            ):
                terms |= {part for part in _addends(sum_) if part != name}
            case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=value) if name in used:
                terms |= set(_addends(value))
    return terms


def _addends(value: ast.expr) -> Iterator[str]:
    """The names that are added, each with whatever weight."""
    match value:
        case ast.Name(id=name):
            yield name
        case ast.BinOp(op=ast.Add() | ast.Mult(), left=one, right=other):
            yield from _addends(one)
            yield from _addends(other)
        case ast.BinOp(op=ast.Div(), left=one):
            yield from _addends(one)
