"""Where what a call gives goes in its function, by the names that it is given: whether all of it ends in `detach()`.

Only what is sure to keep no graph counts as an end: numbers, arrays, shapes, comparisons, and the same call again, which
takes back what it gave before. What is returned, stored or handed to something else goes on.
"""

import ast

from gradvet.syntax.parents import Parents
from gradvet.syntax.tree import walk

CUTS = frozenset({"detach", "detach_"})
_NUMBERS = frozenset(
    {"item", "tolist", "numpy", "argmax", "size", "dim", "numel", "shape", "device", "dtype", "ndim"}
)
_TRAINING = frozenset({"backward", "manual_backward", "grad", "requires_grad_", "requires_grad", "autograd"})
_MODULES = frozenset({"torch", "F", "nn", "functional"})
MOST_NAMES = 12


def ends_in_cuts(site: ast.Call, function: ast.AST, parents: Parents) -> ast.AST | None:
    """A `detach()` in which what a call gives ends, where all of it ends so, in a function that trains nothing."""
    end: ast.AST = site
    while isinstance(parents.get(end), ast.Attribute | ast.Subscript) and not _is_index(end, parents):
        end = parents[end]
    names = _bound(end, parents) or []
    if not names:
        return None
    loads: dict[str, list[ast.Name]] = {}
    for node in walk(function):
        if isinstance(node, ast.Attribute) and node.attr in _TRAINING:
            return None
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            loads.setdefault(node.id, []).append(node)
    cut: ast.AST | None = None
    for name in names:
        after = _until_rebound(name, end, loads.get(name, []), parents)
        for load in after:
            found = _end_of(load, site, parents)
            if isinstance(found, list):
                names += [new for new in found if new not in names]
            elif found is None or len(names) > MOST_NAMES:
                return None
            elif found is not load:
                cut = cut or found
    return cut


def _is_index(node: ast.AST, parents: Parents) -> bool:
    above = parents[node]
    return isinstance(above, ast.Subscript) and above.slice is node


def _bound(value: ast.AST, parents: Parents) -> list[str] | None:
    """The names that a value is given to, as a whole or in parts; None where it also goes elsewhere."""
    match parents.get(value):
        case ast.Assign(targets=[ast.Name(id=name)], value=given) if given is value:
            return [name]
        case ast.Assign(targets=[ast.Tuple(elts=parts)], value=given) if given is value:
            names = [part.id for part in parts if isinstance(part, ast.Name)]
            return names if len(names) == len(parts) else None
    return None


def _until_rebound(name: str, end: ast.AST, loads: list[ast.Name], parents: Parents) -> list[ast.Name]:
    """The uses of a name up to where it is given something that was made of it and detached, in the same block."""
    statement = parents[end]
    above = parents.get(statement)
    body: list[ast.AST] | None = getattr(above, "body", None)
    if not isinstance(body, list) or statement not in body:
        return loads
    following = body[body.index(statement) + 1 :]
    for number, later in enumerate(following):
        match later:
            case ast.Assign(targets=[ast.Name(id=again)], value=ast.Call(func=ast.Attribute(attr="detach"))):
                if again == name:
                    inside = {node for one in following[: number + 1] for node in walk(one)}
                    return [load for load in loads if load in inside]
    return loads


def _end_of(load: ast.AST, site: ast.Call, parents: Parents) -> ast.AST | list[str] | None:
    """Where one use of a name ends: in a `detach()`, in nothing that keeps a graph (itself), in other names; else None."""
    node = load
    while True:
        above = parents.get(node)
        match above:
            case ast.Attribute(attr=attr) if attr in CUTS:
                return parents.get(above)
            case ast.Attribute(attr=attr) if attr in _NUMBERS:
                return load
            case ast.Compare() | ast.FormattedValue():
                return load
            case (
                ast.Attribute()
                | ast.BinOp()
                | ast.UnaryOp()
                | ast.Starred()
                | ast.keyword()
                | ast.Subscript()
            ):
                node = above
            case ast.Call() if above is site or (
                above.func is not node and ast.dump(above.func) == ast.dump(site.func)
            ):
                return load
            case ast.Call(func=func) if func is node or _root(func) in _MODULES:
                node = above
            case ast.Assign():
                return _bound(node, parents)
            case _:
                return None


def _root(node: ast.AST) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
