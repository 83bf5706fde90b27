"""What happens to leaves: a step that gives their name to a new tensor, an optimizer that is given none."""

import ast

from gradvet.autograd.events_leaf import LeafRebound, NonLeafOptimized
from gradvet.autograd.library import hooks
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import NO, NO_FN, NOTHING, YES, Origin, Tensor
from gradvet.autograd.memory.values import FALSE, Dict, Each, Ref, Sequence, Tuple, Value, const
from gradvet.autograd.python.calls import Call
from gradvet.autograd.python.names import lookup

MOST_STEPS_BACK = 4
MOVES = ("to()", "cuda()", "cpu()", "xpu()", "double()", "half()", "bfloat16()", "type()")
"""What gives the leaf itself where there is nothing to change, and a result elsewhere."""


def rebound(m: Machine, node: ast.Assign, value: Value) -> None:
    """`w = w - lr * w.grad`: the name of a leaf goes to what was computed from it and its gradient.

    Where it is no more than a loop's name for it, and is not read again, what it was computed from does not matter.
    """
    if m.judge is None or len(node.targets) != 1 or not isinstance(node.value, (ast.BinOp, ast.Call)):
        return
    new = m.tensor(value)
    if new is None or type(value) is not Ref:
        return
    target = node.targets[0]
    old, state = _held(m, target)
    if state is None or state.is_leaf != YES or old == value:
        return
    lost = YES in (state.requires_grad, state.parameter) and _is_lost_at_once(m, node, target)
    event = LeafRebound(node, m.where(), target, new.requires_grad == YES, None)
    if lost and _is_update_of(node.value, target, new):
        m.judge.leaves.tell(event, None)
        return
    if state.requires_grad != YES or (new.is_leaf == YES and new.requires_grad != NO):
        return
    if lost or not _has_grad_of(m, node.value, target):
        return
    cut = None
    if new.requires_grad == NO:
        cut = m.cut("rebound", ast.unparse(target), node, state.leaves, NOTHING, new.cuts)
        own = frozenset({cut})
        m.update(value, lambda t: t._replace(cuts=t.cuts | own) if type(t) is Tensor else t)
    m.judge.leaves.took_the_name(value, event, cut)


def _held(m: Machine, target: ast.expr) -> tuple[Value, Tensor | None]:
    """What a target holds before it is bound, looked at without effects."""
    match target:
        case ast.Name(id=name):
            value = lookup(m, name)
        case ast.Attribute(value=ast.Name(id=name), attr=attribute):
            value = m.cells.get((getattr(lookup(m, name), "address", -1), attribute))
        case ast.Subscript(value=ast.Name(id=name)):
            content = m.cells.get(getattr(lookup(m, name), "address", -1))
            value = content.element if isinstance(content, (Dict, Sequence)) else None
        case _:
            return None, None
    return value, m.tensor(value) if value is not None else None


def _same(node: ast.AST, target: ast.AST) -> bool:
    return isinstance(node, type(target)) and ast.unparse(node) == ast.unparse(target)


def _is_update_of(value: ast.expr, target: ast.expr, new: Tensor) -> bool:
    """Whether an expression computes from a leaf what the leaf should become, and does not just move it."""
    moved = new.origin is not None and new.origin.text in MOVES
    return not moved and any(_same(part, target) for part in ast.walk(value) if isinstance(part, ast.expr))


def _has_grad_of(m: Machine, value: ast.expr, target: ast.expr) -> bool:
    """Whether an expression is computed from the target and from a gradient."""
    parts = [part for part in ast.walk(value) if isinstance(part, ast.expr)]
    if not any(_same(part, target) for part in parts):
        return False
    return any(_from_grad(m.states[part].origin) for part in parts if part in m.states)


def _from_grad(origin: Origin | None, depth: int = 0) -> bool:
    if origin is None or depth > MOST_STEPS_BACK:
        return False
    return origin.text == ".grad" or any(_from_grad(part, depth + 1) for part in origin.inputs)


def _is_lost_at_once(m: Machine, node: ast.Assign, target: ast.expr) -> bool:
    """Whether the target is the variable of the loop around and is not read again in it."""
    if not isinstance(target, ast.Name):
        return False
    scope = m.frames[-1].node
    for loop in ast.walk(scope):
        if not isinstance(loop, ast.For) or not any(part is node for part in ast.walk(loop)):
            continue
        bound = {part.id for part in ast.walk(loop.target) if isinstance(part, ast.Name)}
        if target.id in bound:
            end = (node.end_lineno or node.lineno, node.end_col_offset or 0)
            return not any(
                isinstance(part, ast.Name)
                and part.id == target.id
                and isinstance(part.ctx, ast.Load)
                and (part.lineno, part.col_offset) > end
                for part in ast.walk(loop)
            )
    return False


def optimized(m: Machine, call: Call, given: Value) -> None:
    """An optimizer takes leaves only (torch.optim.Optimizer.add_param_group); `differentiable=True` lifts that."""
    node = call.node
    if not isinstance(node, ast.Call) or call.keywords.get("differentiable", FALSE) != FALSE:
        return
    source = node.args[0] if node.args else next((k.value for k in node.keywords if k.arg == "params"), None)
    if source is None:
        return
    for value, place in _parts(m, given, source):
        state = m.tensor(value)
        if state is None or state.requires_grad != YES:
            continue
        if any(hooks.retains(m, r) or (r.address, "grad") in m.cells for r, _ in m.tensors(value)):
            continue  # retain_grad() makes it welcome
        moved = [s for _, s in m.tensors(value) if s.origin is not None and s.origin.text in MOVES]
        if state.is_leaf == NO:
            m.emit(NonLeafOptimized(node, m.where(), state, place, certain=True))
            _take_for_leaf(m, value)
        elif moved and state.is_leaf & NO:
            m.emit(NonLeafOptimized(node, m.where(), moved[0], place, certain=False))


def _take_for_leaf(m: Machine, value: Value) -> None:
    """What comes after the line that raises is looked at as if the leaf were there that was meant."""
    for ref, _ in m.tensors(value):
        own = frozenset({ref.address})
        leaf = {"is_leaf": YES, "grad_fn": NO_FN, "nodes": NOTHING, "leaves": own}
        m.update(ref, lambda t, leaf=leaf: t._replace(**leaf) if type(t) is Tensor else t)  # type: ignore[misc]


def _parts(m: Machine, given: Value, source: ast.expr) -> list[tuple[Value, ast.expr]]:
    """The tensors that an optimizer is given, in groups or not, each with its expression where it has one of its own."""
    content = m.cells.get(getattr(given, "address", -1))
    items: list[Value] = []
    if type(content) is Sequence:
        items = [v for v in (*(content.items or ()), content.rest) if v is not None]
    elif type(given) is Tuple:
        items = list(given.items)
    elif type(given) is Each:
        items = list(given.refs)
    places: list[ast.expr] = [source] * len(items)
    if isinstance(source, (ast.List, ast.Tuple)) and len(source.elts) == len(items):
        places = source.elts
    found: list[tuple[Value, ast.expr]] = []
    for item, place in zip(items, places, strict=True):
        group = m.cells.get(getattr(item, "address", -1))
        inner = group.get(const("params")) if type(group) is Dict else None
        if inner is None or m.tensor(inner) is not None:
            found.append((item if inner is None else inner, place))
        else:
            found += _parts(m, inner, _written_in(place))
    return found


def _written_in(group: ast.expr) -> ast.expr:
    """The parameters of a group, where it is written out."""
    match group:
        case ast.Dict(keys=keys, values=values):
            for key, value in zip(keys, values, strict=True):
                if isinstance(key, ast.Constant) and key.value == "params":
                    return value
    return group
