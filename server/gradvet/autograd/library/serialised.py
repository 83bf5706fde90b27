"""Computed tensors where only leaves may go: deep copies and other processes."""

import ast

from gradvet.autograd.events_exit import GradTensorSerialised
from gradvet.autograd.held import held_tensors
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import NO, NO_FN, NOTHING, YES, Tensor
from gradvet.autograd.memory.values import Dict, Instance, Layer, Ref, Sequence, Tuple, Value

MOST_DEEP = 5


def copied(m: Machine, value: Value, site: ast.AST) -> None:
    """`copy.deepcopy(value)`: torch copies leaves only."""
    found = _computed(m, value, "", 0)
    if found is not None:
        _tell(m, site, "deepcopy", *found, direct=m.tensor(value) is not None)


def sent(m: Machine, value: Value, site: ast.AST) -> None:
    """A value is put into a queue between processes."""
    found = _computed(m, value, "", 0)
    if found is not None:
        _tell(m, site, "queue", *found, direct=m.tensor(value) is not None)


def from_worker(m: Machine, row: Value, site: ast.AST, how: str = "workers") -> None:
    """What a loader fetches in another process, a row or what was made of rows; the rest is looked at as if it could."""
    held = held_tensors(m, row)
    asking = next((state for _, state in held if state.has_graph), None)
    if asking is None:
        return
    _tell(m, site, how, asking, "", direct=False)
    for ref, _ in held:
        m.update(ref, _without_graph)


def _without_graph(content: object) -> object:
    if type(content) is not Tensor:
        return content
    return content._replace(requires_grad=NO, is_leaf=YES, grad_fn=NO_FN, nodes=NOTHING, leaves=NOTHING)


def _tell(m: Machine, site: ast.AST, how: str, state: Tensor, path: str, *, direct: bool) -> None:
    source = site.args[0] if isinstance(site, ast.Call) and site.args else None
    made = state.origin.node if state.origin is not None else None
    if how in ("workers", "collate") and made is not None:
        site, made = made, site  # the loader is innocent: it is told where the row comes from
    m.emit(GradTensorSerialised(site, m.where(), state, how, path, source, made, direct))


def _computed(m: Machine, value: Value, path: str, depth: int) -> tuple[Tensor, str] | None:
    """A tensor with a graph that surely lies in a value, and under which attributes."""
    if depth > MOST_DEEP:
        return None
    parts: list[tuple[str, Value]] = []
    if type(value) is Tuple:
        parts = [("", item) for item in value.items]
    elif type(value) is Ref:
        content = m.cells.get(value.address)
        if isinstance(content, Tensor):
            return (content, path) if content.has_graph else None
        if isinstance(content, Sequence):
            parts = [("", item) for item in content.items or ()]
            if content.rest is not None and content.nonempty:
                parts.append(("", content.rest))
        elif isinstance(content, Dict):
            parts = [("", item) for key, item in content.items if key not in content.perhaps]
        elif isinstance(content, Layer):
            parts = list(content.children)
        if isinstance(content, (Instance, Layer)):
            for name in m.attributes.get(value.address & ~1, ()):
                keys = (value.address, name), (value.address & ~1, name)
                if not name.startswith("#") and name != "grad" and m.store.perhaps.isdisjoint(keys):
                    parts.append((name, m.cells.get(keys[0])))
    for name, part in parts:
        found = _computed(m, part, f"{path}.{name}".strip("."), depth + 1)
        if found is not None:
            return found
    return None
