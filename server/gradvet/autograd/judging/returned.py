"""What a training step gives back: values without a graph, and among them one that was left with it."""

import ast
from collections.abc import Iterator

from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import Tensor
from gradvet.syntax.tree import walk

_CUTS = frozenset({"detach", "item", "tolist", "numpy"})
_COMPUTES = frozenset({
    "mean", "sum", "neg", "exp", "log", "pow", "abs", "square", "squeeze", "unsqueeze", "clamp", "clip", "float", "view",
    "reshape", "flatten", "to",
})  # fmt: skip
"""Methods of tensors whose gradient goes on to the tensor."""
MOST_STEPS_BACK = 12
FEWEST_CUTS = 2
"""One value that is detached beside others may be so for a reason of its own."""


def left_with_graph(m: Machine, value: ast.expr) -> Iterator[tuple[ast.expr, Tensor]]:
    """Of the parts of a tuple or dict of which others are cut from their graphs, those that carry one."""
    parts = (
        value.elts if isinstance(value, ast.Tuple) else value.values if isinstance(value, ast.Dict) else []
    )
    if not any(_is_cut(part) for part in parts):
        return
    for part in parts:
        state = m.states.get(part)
        if state is not None and state.has_graph and state.nodes and not _is_cut(part):
            yield part, state


def left_beside(value: ast.expr) -> Iterator[ast.expr]:
    """Of the entries of a dict that is returned beside their sum, the one that is not detached as all others are."""
    if not isinstance(value, ast.Tuple):
        return
    for display in value.elts:
        parts = display.values if isinstance(display, ast.Dict) else []
        bare = [part for part in parts if not _is_cut(part)]
        if len(bare) != 1 or len(parts) < 3 or not isinstance(bare[0], ast.Subscript):  # noqa: PLR2004
            continue
        terms = ast.unparse(bare[0].value)
        alike = all(ast.unparse(part).startswith(f"{terms}[") for part in parts)
        summed = any(ast.unparse(other) == f"sum({terms}.values())" for other in value.elts)
        if alike and summed:
            yield bare[0]


def left_beside_cuts(value: ast.expr, function: ast.AST) -> Iterator[ast.expr]:
    """Of what a training step returns, of which others are detached, what it has of the loss and not detached."""
    parts = value.elts if isinstance(value, ast.Tuple) else []
    bare = [part for part in parts if isinstance(part, ast.Name | ast.Attribute)]
    if not bare or sum(_is_cut(part) for part in parts) < FEWEST_CUTS:
        return
    made = _made_in(function)
    behind = _behind(_losses_of(function), made)
    for part in bare:
        own = ast.unparse(part)
        if isinstance(part, ast.Attribute):
            if own in behind and own in _detached_in(function):
                yield part  # what it is, only who detaches it elsewhere can know
        elif own in behind or any(
            not behind.isdisjoint(_used_in(given, made)) for given in made.get(own, ())
        ):
            yield part


def _detached_in(function: ast.AST) -> set[str]:
    """What a function detaches."""
    return {
        ast.unparse(node.func.value)
        for node in walk(function)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "detach"
    }


def _losses_of(function: ast.AST) -> set[str]:
    """The names from which a function itself runs backward."""
    return {
        node.func.value.id
        for node in walk(function)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "backward"
        and isinstance(node.func.value, ast.Name)
    }


def _made_in(function: ast.AST) -> dict[str, list[ast.expr]]:
    """What a function assigns to its names."""
    made: dict[str, list[ast.expr]] = {}
    for node in walk(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                made.setdefault(name, []).append(value)
    return made


def _behind(names: set[str], made: dict[str, list[ast.expr]]) -> set[str]:
    """The names and attributes from which some were made, with nothing cut on the way."""
    found, queue = set(names), list(names)
    for number, name in enumerate(queue):
        for given in made.get(name, ()) if number < MOST_STEPS_BACK else ():
            new = _used_in(given, made) - found
            found |= new
            queue += sorted(new)
    return found - names


def _used_in(given: ast.expr, made: dict[str, list[ast.expr]]) -> set[str]:
    """The names and attributes that an expression is computed from, but for what is cut or given by other calls."""
    found: set[str] = set()
    stack: list[ast.AST] = [given]
    while stack:
        node = stack.pop()
        match node:
            case ast.Name() | ast.Attribute():
                found.add(ast.unparse(node))
            case ast.Call(func=ast.Attribute(value=held, attr=name)) if name in _COMPUTES:
                is_function = isinstance(held, ast.Name) and held.id not in made
                stack += node.args if is_function else [held]
            case ast.Call(func=ast.Attribute(value=ast.Name(id=module))) if module not in made:
                stack += node.args  # `torch.max(a, b)`
            case ast.BinOp() | ast.UnaryOp() | ast.IfExp() | ast.Tuple() | ast.List():
                stack += list(ast.iter_child_nodes(node))
    return found


def _is_cut(part: ast.expr) -> bool:
    """Whether an expression ends in `.detach()`, `.item()` or the like, or is a `float(...)`."""
    while isinstance(part, (ast.Call, ast.Attribute)):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Name):
            return part.func.id == "float"
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in _CUTS:
            return True
        part = part.func if isinstance(part, ast.Call) else part.value
    return False
