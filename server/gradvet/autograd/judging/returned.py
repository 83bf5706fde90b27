"""What a training step gives back: values without a graph, and among them one that was left with it."""

import ast
from collections.abc import Iterator

from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import Tensor

_CUTS = frozenset({"detach", "item", "tolist", "numpy"})


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


def _is_cut(part: ast.expr) -> bool:
    """Whether an expression ends in `.detach()`, `.item()` or the like, or is a `float(...)`."""
    while isinstance(part, (ast.Call, ast.Attribute)):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Name):
            return part.func.id == "float"
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in _CUTS:
            return True
        part = part.func if isinstance(part, ast.Call) else part.value
    return False
