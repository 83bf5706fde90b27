"""Where what a call gives goes in its function, by the names that it is given: whether all of it ends without its graph.

Only what is sure to keep no graph counts as an end: numbers, arrays, shapes, comparisons, and the same call again, which
takes back what it gave before. What is returned, stored or handed to something else goes on.
"""

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from gradvet.autograd.judging.above import statement_of
from gradvet.syntax.parents import Parents
from gradvet.syntax.qualified import qualified
from gradvet.syntax.tree import walk

CUTS = frozenset({"detach", "detach_"})
_NUMBERS = frozenset({"item", "tolist", "numpy", "argmax"})
_ASKED = frozenset({"size", "dim", "numel", "shape", "device", "dtype", "ndim"})
_TO_NUMBERS = frozenset({"float", "int", "bool", "print", "str", "repr"})
_OF_GRADIENTS = frozenset(
    {"grad", "requires_grad_", "requires_grad", "autograd", "register_hook", "register_forward_hook"}
)
_ARRAY = "numpy"
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
MOST_NAMES = 12


@dataclass(frozen=True, slots=True)
class Given:
    """What a call gives in a function of a file in which some names are imported."""

    site: ast.Call
    function: ast.AST
    parents: Parents
    imported: Mapping[str, str]


def ends_in_cuts(given: Given) -> ast.AST | None:
    """A `detach()` in which what a call gives ends, where all of it ends so, in a function that takes no gradient."""
    return next(filter(_is_cut, _ends_of_all(given)), None)


def ends_in_numbers(given: Given, *, arrays: bool) -> ast.AST | None:
    """What is computed from what a call gives and has no graph, where that is all, in a function that takes no gradient.

    An array is one only where it is known that it can be made, or does not matter that it cannot.
    """
    return next((end for end in _ends_of_all(given) if _is_number(end) or (arrays and _is_array(end))), None)


def _takes_gradients(function: ast.AST) -> bool:
    return any(isinstance(node, ast.Attribute) and node.attr in _OF_GRADIENTS for node in walk(function))


def _is_cut(end: ast.AST) -> bool:
    return isinstance(end, ast.Call) and isinstance(end.func, ast.Attribute) and end.func.attr in CUTS


def _is_number(end: ast.AST) -> bool:
    match end:
        case ast.Call(func=ast.Attribute(attr=attr)):
            return attr in _NUMBERS and attr != _ARRAY
        case ast.Call(func=ast.Name(id=name)):
            return name in _TO_NUMBERS
    return isinstance(end, ast.Compare)


def _is_array(end: ast.AST) -> bool:
    return isinstance(end, ast.Call) and isinstance(end.func, ast.Attribute) and end.func.attr == _ARRAY


def _ends_of_all(given: Given) -> list[ast.AST]:
    """Where all uses of what a call gives end; nothing where one of them goes on, or the function takes gradients."""
    if _takes_gradients(given.function):
        return []
    first = _end_of(given.site, given)
    if not isinstance(first, list):
        return [] if first is None else [first]
    bindings = [(name, statement_of(given.site, given.parents)) for name in first]
    loads: dict[str, list[ast.Name]] = {}
    for node in walk(given.function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            loads.setdefault(node.id, []).append(node)
    ends: list[ast.AST] = []
    for name, statement in bindings:
        for load in loads.get(name, ()):
            if not _reaches(name, statement, load, given.parents):
                continue
            found = _end_of(load, given)
            if isinstance(found, list):
                own = statement_of(load, given.parents)
                bindings += [(new, own) for new in found if (new, own) not in bindings]
            elif found is None or len(bindings) > MOST_NAMES:
                return []
            else:
                ends.append(found)
    return ends


def _reaches(name: str, statement: ast.AST, load: ast.AST, parents: Parents) -> bool:
    """Whether what a statement gives to a name may still be there where the name is read: nothing else came between."""
    start, at = getattr(statement, "lineno", 0), getattr(load, "lineno", 0)
    loops = _around(statement, parents)
    shared = next((loop for loop in _around(load, parents) if loop in loops), None)
    below: ast.AST = load
    while below is not shared and (above := parents.get(below)) is not None:
        for block in (getattr(above, field, None) for field in ("body", "orelse", "finalbody")):
            if not isinstance(block, list) or below not in block:
                continue
            before = block[: block.index(below)]
            if any(
                one is not statement and _binds(one, name) and (at < start or one.lineno > start)
                for one in before
            ):
                return False
        below = above
    return at > start or below is shared is not None


def _around(node: ast.AST, parents: Parents) -> list[ast.AST]:
    """The loops that a node stands in, in its function; the innermost first."""
    found: list[ast.AST] = []
    while (above := parents.get(node)) is not None and not isinstance(above, ast.FunctionDef):
        if isinstance(above, _LOOPS):
            found.append(above)
        node = above
    return found


def _binds(statement: ast.AST, name: str) -> bool:
    match statement:
        case ast.Assign(targets=targets):
            return any(
                isinstance(node, ast.Name) and node.id == name for one in targets for node in walk(one)
            )
    return False


def _bound(value: ast.AST, parents: Parents) -> list[str] | None:
    """The names that a value is given to, as a whole or in parts; None where it also goes elsewhere."""
    match parents.get(value):
        case ast.Assign(targets=[ast.Name(id=name)], value=given) if given is value:
            return [name]
        case ast.Assign(targets=[ast.Tuple(elts=parts)], value=given) if given is value:
            names = [part.id for part in parts if isinstance(part, ast.Name)]
            return names if len(names) == len(parts) else None
    return None


def _end_of(start: ast.AST, given: Given) -> ast.AST | list[str] | None:
    """Where one use ends: in a `detach()`, in what keeps no graph, in other names; else None."""
    node = start
    while True:
        above = given.parents.get(node)
        match above:
            case ast.Attribute(attr=attr) if attr in CUTS or attr in _NUMBERS:
                return given.parents.get(above)
            case ast.Attribute(attr=attr) if attr in _ASKED:
                return above
            case ast.Compare() | ast.FormattedValue():
                return above
            case ast.Subscript(slice=index) if index is node:
                return None
            case (
                ast.Attribute()
                | ast.BinOp()
                | ast.UnaryOp()
                | ast.Starred()
                | ast.keyword()
                | ast.Subscript()
            ):
                node = above
            case ast.Call() if above is given.site or (
                above.func is not node and ast.dump(above.func) == ast.dump(given.site.func)
            ):
                return start
            case ast.Call(func=ast.Name(id=name)) if name in _TO_NUMBERS and name not in given.imported:
                return above
            case ast.Call(func=func) if func is node or _is_of_torch(func, given.imported):
                node = above
            case ast.Call() if _computes(above, start, given):
                node = above
            case ast.Assign():
                return _bound(node, given.parents)
            case _:
                return None


def _computes(call: ast.Call, start: ast.AST, given: Given) -> bool:
    """Whether what a call gives is all that comes of its argument: `x = self.scaled(x)`, or what a plain function gives.

    A method of another thing might keep what it is given.
    """
    match given.parents.get(call):
        case ast.Assign(targets=[ast.Name(id=name)]):
            return isinstance(call.func, ast.Name) or (isinstance(start, ast.Name) and start.id == name)
    return False


def _is_of_torch(func: ast.expr, imported: Mapping[str, str]) -> bool:
    return qualified(func, imported).partition(".")[0] == "torch"
