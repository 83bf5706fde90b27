"""`with` statements: grad modes, context managers of the file, and those of other packages."""

import ast
from collections.abc import Callable
from functools import reduce
from operator import or_

from gradvet.autograd.events import WithUncalled
from gradvet.autograd.events_mode import ModeRedundant
from gradvet.autograd.library import escapes
from gradvet.autograd.machine import MODE, Frame, Machine
from gradvet.autograd.memory.domain import GRAD, INFERENCE, NO_GRAD
from gradvet.autograd.memory.store import Seen
from gradvet.autograd.memory.values import (
    NONE,
    External,
    Instance,
    Mode,
    Ref,
    Stack,
    Union,
    Unknown,
    Value,
    atoms,
)
from gradvet.autograd.python.calls import Call, Managed, call_function, call_value
from gradvet.autograd.python.objects import assign, get_attribute

_GRAD_MODE_CLASSES = {
    "torch.no_grad",
    "torch.enable_grad",
    "torch.inference_mode",
    "torch.set_grad_enabled",
    "torch.autograd.no_grad",
    "torch.autograd.enable_grad",
    "torch.autograd.grad_mode.no_grad",
}


SUPPRESSING = "contextlib.suppress()"


def run_with(m: Machine, node: ast.With, at: int) -> bool:
    """Run a `with` statement from its item `at` on; whether its end is reached."""
    if at == len(node.items):
        return m.block(node.body)
    item = node.items[at]
    if _expects_to_raise(item.context_expr):
        m.meant_to_raise += 1
        try:
            return run_with(m, node, at + 1)
        finally:
            m.meant_to_raise -= 1
    before = m.mode
    manager = m.eval(item.context_expr)

    def body(entered: Value) -> bool:
        if item.optional_vars is not None:
            assign(m, item.optional_vars, entered, node)
        return run_with(m, node, at + 1)

    kind = type(manager)
    if kind is Mode:
        inner = manager.node in m.entered and manager.node is not item.context_expr
        if inner:
            escapes.entered_again(m, item.context_expr, manager.node)
            m.entered_twice.add(manager.node)
        _redundant(m, node, manager, item)
        m.mode_nodes.append(item.context_expr)
        m.entered.append(manager.node)

        def leave() -> int:
            """One object that is entered again inside itself has forgotten what was before it."""
            forgot = manager.node in m.entered_twice and not inner
            return manager.after(before) if forgot else before

        try:
            return in_mode(m, manager.after(before), before, lambda: body(manager), leave)
        finally:
            if not inner:
                m.entered_twice.discard(manager.node)
            m.mode_nodes.pop()
            m.entered.pop()
    if kind is Stack:
        return in_mode(m, before, before, lambda: body(manager))
    if kind is Union and any(type(atom) is Mode for atom in manager.atoms):
        # `with nullcontext() if train else no_grad():`
        return in_mode(m, _modes_after(manager, before), before, lambda: body(manager))
    if kind is Managed:
        return _managed(m, manager, body)
    if kind is External and manager.name.endswith("autocast()"):
        return _in_autocast(m, item.context_expr, lambda: body(manager))
    if kind is External and manager.name == SUPPRESSING:
        return _suppressed(m, lambda: body(NONE))
    if kind is External and manager.name in _GRAD_MODE_CLASSES:
        m.emit(WithUncalled(item.context_expr, m.where(), manager.name))
        # What comes after the line that raises is looked at as if the mode were on that was meant.
        meant = _modes_after(call_value(m, manager, Call(item.context_expr, ())), before)
        return in_mode(m, meant, before, lambda: body(Unknown("`with` raises here")))
    if kind is Ref and type(m.cells.get(manager.address)) is Instance:
        enter = get_attribute(m, manager, "__enter__", item.context_expr)
        entered = call_value(m, enter, Call(item.context_expr, ()))
        alive = body(entered)
        leave = get_attribute(m, manager, "__exit__", item.context_expr)
        call_value(m, leave, Call(item.context_expr, (NONE, NONE, NONE)))
        return alive
    return body(manager)


def _in_autocast(m: Machine, entered: ast.expr, body: Callable[[], bool]) -> bool:
    """Run a body whose ops may compute in another type."""
    m.autocasts.append(entered)
    try:
        return body()
    finally:
        m.autocasts.pop()


def _suppressed(m: Machine, body: Callable[[], bool]) -> bool:
    """Run a body that may end after each of its statements."""
    base = m.store.mark()
    low, seen = m.store.low, Seen(base, whole=False)
    m.frames[-1].raises.append(seen)
    alive = body()
    m.frames[-1].raises.pop()
    m.store.low = min(low, base)
    ends = [seen.cells, *([m.store.delta(base)] if alive else [])]
    m.store.undo(base)
    m.store.merge(ends)
    return True


def _redundant(m: Machine, node: ast.With, manager: Mode, item: ast.withitem) -> None:
    """`with torch.no_grad()` where a `with` or a decorator of the same function has turned grad mode off already."""
    off = m.mode in (NO_GRAD, INFERENCE) and not manager.modes & GRAD and manager.modes != INFERENCE
    opened = m.mode_nodes[m.frames[-1].modes_before :]
    decorators = getattr(m.frames[-1].node, "decorator_list", ())
    outer = opened or [place for place in m.mode_nodes if place in decorators]
    if off and outer and manager.node is item.context_expr:
        m.emit(ModeRedundant(item.context_expr, m.where(), outer[-1], alone=len(node.items) == 1))


def _expects_to_raise(node: ast.expr) -> bool:
    """Whether this is the context of a test (pytest's or unittest's) whose block is to raise."""
    match node:
        case ast.Call(ast.Name(name) | ast.Attribute(attr=name)):
            return name in ("raises", "assertRaises", "assertRaisesRegex")
    return False


def _modes_after(entered: Value, before: int) -> int:
    """The grad modes after one of several things is entered; what is no grad mode leaves it as it is."""
    return reduce(or_, (atom.after(before) if type(atom) is Mode else before for atom in atoms(entered)))


def enter_or_exit(m: Machine, mode: Mode, name: str) -> Value:
    """`guard.__enter__()` and `guard.__exit__(...)` on a grad mode: it lasts from the one to the other."""
    kept = f"before {id(mode.node)}"
    if name == "__enter__":
        m.store.set(kept, m.mode)
        m.store.set(MODE, mode.after(m.mode))
    elif kept in m.cells:
        m.store.set(MODE, m.cells[kept])
    return NONE


def stack_method(m: Machine, name: str, call: Call) -> Value | None:
    """A method of an `ExitStack`; None where nothing is known of it."""
    if name not in ("enter_context", "enter_async_context") or not call.args:
        return None
    entered = call.args[0]
    m.store.set(MODE, _modes_after(entered, m.mode))
    return entered


def in_mode(
    m: Machine, modes: int, before: int, body: Callable[[], bool], leave: Callable[[], int] | None = None
) -> bool:
    """Run a body in a grad mode; every way out of it restores the mode before, or what `leave` tells then."""
    frame = m.frames[-1]
    met = frame.ways_out()
    seen = frame.raises[-1] if frame.raises else None
    outside = seen.cells.get(MODE, before) if seen is not None else before
    m.store.set(MODE, modes)
    alive = body()
    after = before if leave is None else leave()
    _restore_on_early_exits(frame, met, after)
    if seen is not None and MODE in seen.cells:  # an exception leaves the block as well
        seen.cells[MODE] = outside | after
    m.store.set(MODE, after)
    return alive


def _restore_on_early_exits(frame: Frame, since: tuple[int, int, int], before: int) -> None:
    """Every `return`, `break` and `continue` since then leaves the block, and so its grad mode."""
    frame.leave(since, lambda delta, _: {**delta, MODE: before})


def _managed(m: Machine, manager: Managed, body: Callable[[Value], bool]) -> bool:
    """Run a generator-based context manager of the file around the body: the body runs at its `yield`."""
    outside = m.frames
    before = m.mode
    met = outside[-1].ways_out()
    outcome = [True]

    def at_yield(value: Value) -> Value:
        inside = m.frames
        m.frames = outside
        try:
            outcome[0] = body(value)
        finally:
            m.frames = inside
        return NONE

    m.frames = list(outside)
    try:
        call_function(m, manager.function, manager.call, taker=at_yield)
    finally:
        m.frames = outside
    _restore_on_early_exits(outside[-1], met, before)
    return outcome[0]
