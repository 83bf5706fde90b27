"""What each kind of statement does. Each tells whether the statement after it is reached."""

import ast
from collections.abc import Callable
from typing import Any

from gradvet.autograd.events import ModeStatement
from gradvet.autograd.library import batches, flags, forgotten, layers, leaves
from gradvet.autograd.machine import EXECUTE, Machine
from gradvet.autograd.memory.domain import NO, YES
from gradvet.autograd.memory.store import Delta, Seen
from gradvet.autograd.memory.values import NONE, Const, External, Function, Mode, Unknown, Value
from gradvet.autograd.python.calls import Managed, decorate, define_class
from gradvet.autograd.python.contexts import run_with, would_switch
from gradvet.autograd.python.control import fork, narrow, truth
from gradvet.autograd.python.expressions import defaults_of
from gradvet.autograd.python.imports import named_by
from gradvet.autograd.python.loops import run_for, run_while
from gradvet.autograd.python.names import bind, unbind
from gradvet.autograd.python.objects import assign, delete_item, get_attribute, get_item
from gradvet.autograd.python.operators import in_place
from gradvet.autograd.python.patterns import match


def executes(*kinds: type) -> Callable[[Callable[[Machine, Any], bool]], Callable[[Machine, Any], bool]]:
    """Register what these kinds of statement do."""

    def register(function: Callable[[Machine, Any], bool]) -> Callable[[Machine, Any], bool]:
        EXECUTE.update(dict.fromkeys(kinds, function))
        return function

    return register


@executes(ast.Expr)
def _expr(m: Machine, node: ast.Expr) -> bool:
    if isinstance(node.value, ast.Constant):
        return True
    m.lone.add(node.value)
    value = m.eval(node.value)
    flags.statement(m, node)
    forgotten.statement(m, node, value)
    if type(value) is Mode and value.name and value.node is node.value:
        m.emit(ModeStatement(node, m.where(), value.name))
    elif type(value) is Managed and value.call.node is node.value and would_switch(m, value):
        m.emit(ModeStatement(node, m.where(), getattr(value.function.node, "name", "it")))
    return not _ends_attempt(m, value)


@executes(ast.Assign)
def _assign(m: Machine, node: ast.Assign) -> bool:
    if isinstance(node.value, (ast.Call, ast.GeneratorExp)) and isinstance(
        node.targets[0], (ast.Name, ast.Attribute)
    ):
        m.put_off.add(node.value)
    value = m.eval(node.value)
    if _ends_attempt(m, value):
        return False
    forgotten.rebound(m, node, value)
    leaves.rebound(m, node, value)
    for target in node.targets:
        assign(m, target, value, node)
    return True


def _ends_attempt(m: Machine, value: Value) -> bool:
    """Whether reading an attribute that is not there leaves a `try`; elsewhere it is taken to be there nevertheless."""
    raises = m.frames[-1].raises
    if value == layers.NOT_THERE and raises:
        m.capture_raise()
    return value == layers.NOT_THERE and bool(raises)


@executes(ast.AnnAssign)
def _ann_assign(m: Machine, node: ast.AnnAssign) -> bool:
    if node.value is not None:
        assign(m, node.target, m.eval(node.value), node)
    else:
        flags.statement(m, node)
    return True


@executes(ast.AugAssign)
def _aug_assign(m: Machine, node: ast.AugAssign) -> bool:
    target = node.target
    match target:
        case ast.Name():
            current = m.eval(m.read_first(target))
            result = in_place(m, node, node.op, current, m.eval(node.value))
            bind(m, target.id, result)
        case ast.Attribute():
            holder = m.eval(target.value)
            current = get_attribute(m, holder, target.attr, target)
            result = in_place(m, node, node.op, current, m.eval(node.value))
            assign(m, target, result, node, holder=holder, again=True)
        case ast.Subscript():
            holder = m.eval(target.value)
            key = m.eval(target.slice)
            current = get_item(m, holder, key, target)
            result = in_place(m, node, node.op, current, m.eval(node.value))
            assign(m, target, result, node, holder=holder, key=key, again=True)
    return True


@executes(ast.If)
def _if(m: Machine, node: ast.If) -> bool:
    test = m.eval(node.test)
    batches.decides(m, node.test, test)
    known = truth(m, test)
    ways: list[Callable[[], tuple[bool, Value]]] = []
    for outcome, body in ((True, node.body), (False, node.orelse)):
        if known == (NO if outcome else YES):
            continue

        def way(body: list[ast.stmt] = body, *, outcome: bool = outcome) -> tuple[bool, Value]:
            return narrow(m, node.test, outcome) and m.block(body), None

        ways.append(way)
    if len(ways) == 1:
        return ways[0]()[0]
    return fork(m, ways)[0]


@executes(ast.For, ast.AsyncFor)
def _for(m: Machine, node: ast.For) -> bool:
    return run_for(m, node)


@executes(ast.While)
def _while(m: Machine, node: ast.While) -> bool:
    return run_while(m, node)


@executes(ast.With, ast.AsyncWith)
def _with(m: Machine, node: ast.With) -> bool:
    return run_with(m, node, 0)


@executes(ast.Return)
def _return(m: Machine, node: ast.Return) -> bool:
    value = m.eval(node.value) if node.value is not None else NONE
    if m.judge is not None and node.value is not None:
        m.judge.returned(node.value)
    frame = m.frames[-1]
    if isinstance(frame.node, (ast.FunctionDef, ast.AsyncFunctionDef)) and frame.node.body[-1] is node:
        frame.given = value  # at the very end, so the present state is what the call leaves
    else:
        frame.returns.append((m.store.delta(frame.base), value))
    return False


@executes(ast.Break, ast.Continue)
def _leave(m: Machine, node: ast.Break | ast.Continue) -> bool:
    if not m.frames[-1].loops:  # Python's parser lets that pass, its compiler does not
        return True
    loop = m.frames[-1].loops[-1]
    ways = loop.breaks if isinstance(node, ast.Break) else loop.continues
    ways.append(m.store.delta(loop.base))
    return False


@executes(ast.Raise)
def _raise(m: Machine, node: ast.Raise) -> bool:
    if node.exc is not None:
        m.eval(node.exc)
    if m.frames[-1].raises:
        m.capture_raise()
    return False


@executes(ast.Try, *([ast.TryStar] if hasattr(ast, "TryStar") else []))
def _try(m: Machine, node: ast.Try) -> bool:
    frame = m.frames[-1]
    base = m.store.mark()
    low, seen = m.store.low, Seen(base, whole=bool(node.finalbody))
    frame.raises.append(seen)
    met = frame.ways_out()
    alive = m.block(node.body)
    frame.raises.pop()
    m.store.low = min(low, base)
    if alive and node.orelse:
        alive = m.block(node.orelse)
    ends = [m.store.delta(base)] if alive else []
    if node.handlers:
        m.store.undo(base)
        m.store.apply(seen.cells)
        start = m.store.mark()
        for handler in node.handlers:
            if handler.type is not None:
                m.eval(handler.type)
            if handler.name:
                bind(m, handler.name, Unknown("an exception"))
            if m.block(handler.body):
                ends.append(m.store.delta(base))
            m.store.undo(start)
    m.store.undo(base)
    if node.finalbody:
        frame.leave(met, lambda delta, base: _after_finally(m, node, delta, base))
    if not ends:
        if node.finalbody and frame.ways_out() == met:
            m.store.apply(seen.last)  # only an exception leads here
            m.block(node.finalbody)
            m.store.undo(base)
        return False
    m.store.merge(ends)
    return m.block(node.finalbody) if node.finalbody else True


def _after_finally(m: Machine, node: ast.Try, delta: Delta, base: int) -> Delta | None:
    """What a way out of the statement has changed when `finally` has run; None where `finally` leaves by itself."""
    here = m.store.mark()
    m.store.apply(delta)
    alive = m.block(node.finalbody)
    changed = m.store.delta(base) if alive else None
    m.store.undo(here)
    return changed


@executes(ast.Assert)
def _assert(m: Machine, node: ast.Assert) -> bool:
    test = m.eval(node.test)
    batches.decides(m, node.test, test)
    if m.judge is not None:
        m.judge.evaluations.asserted(node)
    return truth(m, test) != NO and narrow(m, node.test, True)


@executes(ast.Delete)
def _delete(m: Machine, node: ast.Delete) -> bool:
    for target in node.targets:
        match target:
            case ast.Name(id=name):
                unbind(m, name)
            case ast.Subscript(value=ast.Attribute(value=holder, attr="_parameters"), slice=key):
                name = m.eval(key)
                if type(name) is Const and name.kind == "str":
                    layers.delete_part(m, m.eval(holder), name.value)
            case ast.Subscript(value=holder, slice=key):
                delete_item(m, m.eval(holder), m.eval(key), target)
            case ast.Attribute(value=holder, attr=name):
                layers.delete_part(m, m.eval(holder), name)
    return True


@executes(ast.Import)
def _import(m: Machine, node: ast.Import) -> bool:
    for alias in node.names:
        name = alias.name if alias.asname else alias.name.partition(".")[0]
        value: Value = External(name)
        if m.imports is not None:
            value = m.imports.imported(m, alias.name, first=not alias.asname)
        bind(m, alias.asname or name, value)
    return True


@executes(ast.ImportFrom)
def _import_from(m: Machine, node: ast.ImportFrom) -> bool:
    module = named_by(node)
    for alias in node.names:
        if alias.name != "*":
            value: Value = External(f"{module}.{alias.name}")
            if m.imports is not None:
                value = m.imports.imported(m, module, alias.name)
            bind(m, alias.asname or alias.name, value)
        elif m.imports is not None:
            m.imports.star(m, module)
        else:
            m.star_imports.setdefault(m.global_scope, []).append(module)
    return True


@executes(ast.FunctionDef, ast.AsyncFunctionDef)
def _function(m: Machine, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    frame = m.frames[-1]
    # A class body is no scope for the functions in it.
    scope = frame.scope if not isinstance(frame.node, ast.ClassDef) else m.scope_parents[frame.scope]
    kind = "async" if isinstance(node, ast.AsyncFunctionDef) else ""
    function = Function(node, scope, defaults_of(m, node.args), frame.owner, (), kind)
    m.defined.setdefault(node, function)
    value = decorate(m, node, function)
    if isinstance(value, Function):
        m.defined[node] = value
    bind(m, node.name, value)
    return True


@executes(ast.ClassDef)
def _class(m: Machine, node: ast.ClassDef) -> bool:
    bind(m, node.name, define_class(m, node))
    return True


@executes(ast.Global, ast.Nonlocal, ast.Pass)
def _nothing(m: Machine, node: ast.stmt) -> bool:
    return True


@executes(ast.Match)
def _match(m: Machine, node: ast.Match) -> bool:
    subject = m.eval(node.subject)
    mark = m.store.mark()
    ends: list[Delta] = []
    goes_on = True
    for case in node.cases:
        known = match(m, case.pattern, subject)
        if known != NO and case.guard is not None:
            known &= truth(m, m.eval(case.guard)) | (known & NO)
        if known != NO:
            entered = m.store.mark()
            if m.block(case.body):
                ends.append(m.store.delta(mark))
            m.store.undo(entered)
        if known == YES:
            goes_on = False
            break
    if goes_on:
        ends.append(m.store.delta(mark))
    m.store.undo(mark)
    if ends:
        m.store.merge(ends)
    return bool(ends)


for _kind in ast.stmt.__subclasses__():
    EXECUTE.setdefault(_kind, _nothing)
