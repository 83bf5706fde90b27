"""`with` statements: grad modes, context managers of the file, and those of other packages."""

import ast
from collections.abc import Callable
from functools import partial, reduce
from operator import or_

from gradvet.autograd.events import WithUncalled
from gradvet.autograd.events_mode import ModeRedundant
from gradvet.autograd.library import escapes
from gradvet.autograd.machine import MODE, MODE_SETTER, Frame, Machine
from gradvet.autograd.memory.domain import GRAD, INFERENCE, NO_GRAD, NOTHING
from gradvet.autograd.memory.store import Delta, Seen
from gradvet.autograd.memory.values import (
    NONE,
    External,
    Function,
    Instance,
    Mode,
    Stack,
    Union,
    Unknown,
    Value,
    atoms,
)
from gradvet.autograd.python.calls import INSIDE, Call, Managed, call_function, call_value
from gradvet.autograd.python.control import fork
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

    return _entered(m, node, item, manager, before, body)


def _entered(
    m: Machine, node: ast.With, item: ast.withitem, manager: Value, before: int, body: Callable[[Value], bool]
) -> bool:
    """Run a body inside a manager, or inside each of several that it may be; `before` it was made, this was the mode."""

    def way(atom: Value) -> tuple[bool, Value]:
        return _entered(m, node, item, atom, before, body), None

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
    if kind is External and manager.name.endswith("autocast()"):
        return _in_autocast(m, item.context_expr, lambda: body(manager))
    if kind is External and manager.name in _PACKING:
        with m.packing(NOTHING):
            return body(manager)
    if kind is Union and any(_is_of_the_file(m, atom) for atom in manager.atoms):
        return fork(m, [partial(way, atom) for atom in manager.atoms])[0]
    if _is_of_the_file(m, manager):
        return inside(m, manager, item.context_expr, body)
    if kind is External and manager.name == SUPPRESSING:
        return _suppressed(m, lambda: body(NONE))
    if kind is External and manager.name in _GRAD_MODE_CLASSES:
        m.emit(WithUncalled(item.context_expr, m.where(), manager.name))
        # What comes after the line that raises is looked at as if the mode were on that was meant.
        meant = _modes_after(call_value(m, manager, Call(item.context_expr, ())), before)
        return in_mode(m, meant, before, lambda: body(Unknown("`with` raises here")))
    return body(manager)


_PACKING = frozenset({"torch.autograd.graph.saved_tensors_hooks()", "torch.autograd.graph.save_on_cpu()"})
"""Contexts in which hooks keep what ops save: what is changed in place then is not found out (measured)."""


def _in_autocast(m: Machine, entered: ast.expr, body: Callable[[], bool]) -> bool:
    """Run a body whose ops may compute in another type."""
    m.autocasts.append(entered)
    try:
        return body()
    finally:
        m.autocasts.pop()


def _is_of_the_file(m: Machine, manager: Value) -> bool:
    """Whether a manager is a generator or an object of the file."""
    return type(manager) is Managed or type(m.cells.get(getattr(manager, "address", -1))) is Instance


def inside(m: Machine, manager: Value, site: ast.AST, body: Callable[[Value], bool]) -> bool:
    """Run a body inside a context manager of the file; every way out of it passes by the manager's end."""
    if type(manager) is Managed:
        return _managed(m, manager, body)
    before = m.mode
    entered = call_value(m, get_attribute(m, manager, "__enter__", site), Call(site, ()))

    def leave() -> None:
        way_out = get_attribute(m, manager, "__exit__", site)
        call_value(m, way_out, Call(site, (NONE, NONE, NONE)))

    def left(delta: Delta, base: int) -> Delta:
        here = m.store.mark()
        m.store.apply(delta)
        leave()
        changed = m.store.delta(base)
        m.store.undo(here)
        return changed

    frame, mark = m.frames[-1], m.store.mark()
    met = frame.ways_out()
    seen = frame.raises[-1] if frame.raises else None
    outside = seen.cells.get(MODE, before) if seen is not None else before
    alive = body(entered)
    if frame.ways_out() != met:
        end = m.store.take(mark)
        frame.leave(met, left)
        m.store.apply(end)
    leave()
    setter = m.setters.get(m.cells.get(MODE_SETTER, -1))
    if m.judge is not None and before == GRAD and m.mode == NO_GRAD and setter is not None:
        content = m.cells.get(getattr(manager, "address", -1))
        if type(content) is Instance:
            m.judge.modes.block_ends(m.classes[content.owner].node, setter)
    if seen is not None and MODE in seen.cells:  # an exception leaves the block as well
        seen.cells[MODE] = outside | m.mode
    return alive


def _run_inside(m: Machine, function: Function, call: Call) -> Value:
    """Run a function that a context manager of the file decorates."""
    result: list[Value] = [NONE]

    def body(_: Value) -> bool:
        result[0] = call_value(m, function._replace(inside=function.inside[:-1]), call)
        return True

    inside(m, function.inside[-1], call.node, body)
    return result[0]


INSIDE.append(_run_inside)


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
    if type(entered) is Managed:
        return _begun(m, entered)
    if type(m.cells.get(getattr(entered, "address", -1))) is Instance:
        return call_value(m, get_attribute(m, entered, "__enter__", call.node), Call(call.node, ()))
    m.store.set(MODE, _modes_after(entered, m.mode))
    return entered


def _begun(m: Machine, manager: Managed) -> Value:
    """A manager of the file that is entered and not left here: the grad mode at its `yield` lasts."""
    at_yield: list[tuple[int, Value]] = []

    def taken(value: Value) -> Value:
        at_yield.append((m.mode, value))
        return NONE

    before = m.mode
    call_function(m, manager.function, manager.call, taker=taken)
    m.store.set(MODE, reduce(or_, (mode for mode, _ in at_yield), 0) or before)
    return at_yield[0][1] if at_yield else NONE


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


def would_switch(m: Machine, manager: Managed) -> bool:
    """Whether a block inside this manager would run in another grad mode; the machine is left as it was."""
    before, mark = m.mode, m.store.mark()
    met: list[int] = []

    def body(_: Value) -> bool:
        met.append(m.mode)
        return True

    _managed(m, manager, body)
    m.store.undo(mark)
    return bool(met) and all(mode != before for mode in met)


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
