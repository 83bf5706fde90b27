"""Calls: finding what is called, binding arguments, running the file's own functions, making classes and instances."""

import ast
import builtins
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from types import NoneType
from typing import NamedTuple

from gradvet.autograd.events import ModeDecorator
from gradvet.autograd.machine import (
    MODE,
    MODE_SETTER,
    MOST_CALLS_DEEP,
    MOST_RUNS_OF_ONE_FUNCTION,
    Frame,
    Machine,
)
from gradvet.autograd.memory.domain import GRAD, NO, NO_GRAD, Tensor
from gradvet.autograd.memory.store import Delta
from gradvet.autograd.memory.values import (
    NONE,
    Bound,
    Class,
    Const,
    Coroutine,
    Dict,
    Each,
    External,
    Function,
    Instance,
    Layer,
    Method,
    Mode,
    Number,
    Opaque,
    Partial,
    Ref,
    Sequence,
    Text,
    Tuple,
    Union,
    Unknown,
    Value,
    const,
    join,
    join_all,
    join_cells,
    refs,
)
from gradvet.autograd.python.generators import Yielded
from gradvet.autograd.python.names import globals_of

MOST_REMEMBERED = 6
MOST_COUNTED = 8
MOST_RUNS_COUNTED = 60
MOST_BLIND_RUNS = 3
MOST_BLIND_STEPS = 24
"""Of functions that clear gradients or make a step: one that is left out would be taken not to have done so."""
MOST_IN_ITSELF = 2
MOST_DOWN = 4
FIELD = "gradvet.field"
"""Stands for a dataclass field with a `default_factory`."""


class Call(NamedTuple):
    """One call: its arguments by position and by name.

    `star` and `stars` stand for those whose number is unknown.
    """

    node: ast.AST
    args: tuple[Value, ...]
    keywords: dict[str, Value] = {}  # noqa: RUF012  never changed
    star: Value | None = None
    stars: Value | None = None

    def argument(self, at: int | None, name: str) -> Value | None:
        """The argument given at this position or by this name, if it was given."""
        if name in self.keywords:
            return self.keywords[name]
        if at is not None and at < len(self.args):
            return self.args[at]
        return self.star

    def all_values(self) -> tuple[Value, ...]:
        """Every value that is passed."""
        extra = tuple(v for v in (self.star, self.stars) if v is not None)
        return (*self.args, *self.keywords.values(), *extra)

    def with_options(self, *names: str) -> "Call":
        """The same call with these options given, to nobody knows what, where `**options` may hold them."""
        if self.stars is None:
            return self
        return self._replace(keywords={**dict.fromkeys(names, self.stars), **self.keywords})

    def without_first(self) -> "Call":
        """The same call without its first argument."""
        return self._replace(args=self.args[1:])


class Managed(NamedTuple):
    """A generator-based context manager of the file that was called and waits for its `with`."""

    function: Function
    call: Call


class Member(NamedTuple):
    """A member of an enumeration; a value that is not plain is not kept."""

    name: str
    value: object


@dataclass(slots=True)
class ClassInfo:
    """A class of the file.

    `order` are the addresses of it and its bases, `external` the names of bases elsewhere.
    """

    name: str
    node: ast.ClassDef
    address: int
    order: tuple[int, ...] = ()
    external: frozenset[str] = frozenset()
    is_module: bool = False
    fields: list[str] = field(default_factory=list)
    unknown_base: bool = False

    def defines(self, name: str) -> list[ast.FunctionDef]:
        """The methods of a name that stand in its body."""
        return [part for part in self.node.body if isinstance(part, ast.FunctionDef) and part.name == name]

    @property
    def is_whole(self) -> bool:
        """Whether all its methods are in the file: its bases are, or have none of their own."""
        return not self.unknown_base and all(name.startswith(_WITHOUT_METHODS) for name in self.external)


_WITHOUT_METHODS = ("builtins.object", "abc.", "typing.Protocol", "typing.Generic")

External_ = Callable[[Machine, str, Call], Value]
CALL_EXTERNAL: list[External_] = []
CALL_METHOD: list[Callable[[Machine, Method, Call], Value]] = []
HANDED_OVER: list[Callable[[Machine, Call], None]] = []
MAKE_BASE: list[Callable[[Machine, Ref, int, Call], None]] = []
WAITING_MODE: list[Callable[[list[tuple[int, ast.AST | None]]], Mode | None]] = []
LAMBDA_RAN: list[Callable[[Machine, ast.Lambda, Value], None]] = []
INSIDE: list[Callable[[Machine, Function, Call], Value]] = []
CALL_OBJECT: list[Callable[[Machine, Ref, Call], Value]] = []


def call_value(m: Machine, function: Value, call: Call) -> Value:
    """Call a value."""
    kind = type(function)
    if kind is External:
        return CALL_EXTERNAL[0](m, function.name, call)
    if kind is Method:
        return CALL_METHOD[0](m, function, call)
    if kind is Function:
        return call_function(m, function, call)
    if kind is Bound:
        inner = function.function
        if type(inner) is Function:
            return call_function(m, inner, call._replace(args=(function.receiver, *call.args)))
        return call_value(m, inner, call._replace(args=(function.receiver, *call.args)))
    if kind is Class:
        return instantiate(m, function, call)
    if kind is Ref:
        return _call_object(m, function, call)
    if kind is Partial:
        keywords = {**dict(function.keywords), **call.keywords}
        return call_value(
            m, function.function, call._replace(args=(*function.args, *call.args), keywords=keywords)
        )
    if kind is Mode:
        return _apply_mode(m, function, call)
    if kind is Union or kind is Each:
        parts = function.atoms if kind is Union else function.refs
        return _call_each(m, parts, call, one_of=kind is Union)
    return unknown_call(m, call, CALLED)


def _call_each(m: Machine, functions: tuple[Value, ...], call: Call, *, one_of: bool) -> Value:
    """Call whichever it is: every alternative from the same state, joined."""
    methods = [function for function in functions if type(function) is Method]
    rest = [function for function in functions if type(function) not in (Method, Const)]
    names = {method.name for method in methods}
    if len(names) == 1 and names <= _ALIKE and all(type(function) is Unknown for function in rest):
        # Whichever it is, the line tells of it alike: what is learnt must not be lost where the ways meet again.
        receivers = join_all([method.receiver for method in methods])
        found = CALL_METHOD[0](m, methods[0]._replace(receiver=receivers), call)
        return join(found, unknown_call(m, call, CALLED)) if rest else found
    mark = m.store.mark()
    ends, values, told = [], [], []
    overwritten = None if m.judge is None else m.judge.overwritten
    changes = len(overwritten.told) if overwritten is not None else 0
    first = next((at for at, function in enumerate(functions) if _is_open(m, function)), 0)
    for number, function in enumerate(functions):
        if function == NONE or type(function) is Const:
            continue
        begins = len(m.events)
        # What several unknown things give is one unknown thing: their number would double at each call.
        m.one_of_several += one_of
        with m.numbered(call.node, first if _is_open(m, function) else number):
            values.append(call_value(m, function, call))
        m.one_of_several -= one_of
        ends.append(m.store.take(mark))
        if not m.is_unknown(getattr(function, "receiver", function)):
            told.append((begins, len(m.events)))
    if not ends:
        return unknown_call(m, call, "the result of a call of None")
    m.store.merge(ends)
    if overwritten is not None and len(ends) > 1:
        overwritten.perhaps(changes)
    if one_of:
        _keep_what_all_tell(m, call.node, told)
    return join_all(values)


def _keep_what_all_tell(m: Machine, site: ast.AST, told: list[tuple[int, int]]) -> None:
    """What happens at a call whichever of several things is meant holds; what happens with one of them may not.

    `told` is where the events of each begin and end.
    """
    if not any(end - begins for begins, end in told):
        return
    kinds = [{type(event) for event in m.events[begins:end] if event.node is site} for begins, end in told]
    common = set.intersection(*kinds)
    for begins, end in reversed(told):
        m.events[begins:end] = [e for e in m.events[begins:end] if e.node is not site or type(e) in common]


def _is_open(m: Machine, function: Value) -> bool:
    """Whether nothing is known of what is called, or of that whose method it is."""
    called = function.receiver if type(function) is Method else function
    return type(called) is Ref and type(m.cells.get(called.address)) is Opaque


_ALIKE = frozenset({"backward", "zero_grad", "step"})
"""Methods that are taken to be called on each of the alternatives: what is cleared is also what makes the step."""
CALLED = "the result of a call that is not known"


def unknown_call(
    m: Machine,
    call: Call,
    reason: str,
    callee: Value | None = None,
    *,
    clears: bool = True,
    runs: bool = True,
) -> Value:
    """The result of a call that cannot be followed; `callee` is what is called when that is not known itself.

    It is known not to clear gradients where it is not followed only because it was followed often enough before, and
    not to run a backward where it is torch's.
    """
    if m.judge is not None:
        if not _is_builtin(call):
            for note in HANDED_OVER if runs else ():
                note(m, call)
            m.judge.protocol.unfollowed(call, clears=clears, runs=runs)
        if m.judge.snapshots.taken:
            m.judge.snapshots.handed_over(call.all_values())
    called = () if callee is None else (callee,)
    return m.unknown(call.node, reason, (*called, *call.all_values()), "call")


def _is_builtin(call: Call) -> bool:
    """Whether a call is one of `print`, `len` and their like."""
    func = call.node.func if isinstance(call.node, ast.Call) else None
    return isinstance(func, ast.Name) and hasattr(builtins, func.id)


def _call_object(m: Machine, ref: Ref, call: Call) -> Value:
    return CALL_OBJECT[0](m, ref, call)


def _apply_mode(m: Machine, mode: Mode, call: Call) -> Value:
    """A grad mode used as a decorator."""
    target = call.args[0] if call.args else None
    if type(target) is Function:
        return target._replace(modes=(*target.modes, mode)) if target.kind != "async" else target
    return target if target is not None else unknown_call(m, call, "a decorated value")


# -- functions of the file


def _is_left_to_others(node: ast.AST) -> bool:
    """Whether all that a function does is to raise `NotImplementedError`: what is run is that of a subclass."""
    match node:
        case ast.FunctionDef(
            body=[*before, ast.Raise(exc=ast.Name(id=name) | ast.Call(func=ast.Name(id=name)))]
        ):
            words = all(isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant) for one in before)
            return words and name == "NotImplementedError"
    return False


def call_function(
    m: Machine,
    function: Function,
    call: Call,
    taker: Callable[[Value], Value] | None = None,
) -> Value:
    """Run a function of the file with these arguments; a generator that is only named waits until it is begun."""
    if function.inside:
        return INSIDE[0](m, function, call)
    node = function.node
    if taker is None and _begins_later(m, function, call):
        return waiting(m, call.node, function, call)
    m.reached.add(node)
    if m.mode & GRAD:
        m.recorded.add(node)
    if function.kind == ABSTRACT or _is_left_to_others(node):
        return unknown_call(
            m, call, f"the result of `{getattr(node, 'name', 'a method')}`, which is abstract"
        )
    if function.kind == "contextmanager" and taker is None:
        return Managed(function, call)
    runs = m.runs.get(node, 0)
    name = getattr(node, "name", "a lambda")
    if taker is None and m.imports is not None and not m.imports.follows(m, function, call.node):
        return unknown_call(m, call, f"the result of `{name}`, which is not followed any more")
    if runs >= MOST_RUNS_OF_ONE_FUNCTION:
        m.limit(f"`{name}` was run {runs} times; what comes after that is not followed")
        m.cut_short = m.graph_unseen = True
        m.unseen(node)
        return unknown_call(m, call, f"the result of `{name}`, which was run too often")
    if len(m.frames) > MOST_CALLS_DEEP or (runs > 1 and _recursion(m, function, call)):
        m.cut_short = True
        m.graph_unseen |= any(_holds_graph(m, value) for value in call.all_values())
        m.unseen(node)
        return unknown_call(m, call, f"the result of `{name}`, which was called too deep")
    if m.alone and len(m.frames) > 1 and _tells_nothing(m, function, call):
        clears = not m.info(node).attributes.isdisjoint(("grad", "zero_grad"))
        return unknown_call(m, call, f"the result of `{name}`, called with nothing known", clears=clears)
    m.runs[node] = runs + 1
    if m.wrapped:
        m.unseen(node, "a function transform, which computes on tensors of its own")
    info = m.info(node)
    context = m.context(call.node)
    scope = m.scope(context, node, function.scope)
    frame = Frame(node, info, scope, context, 0)
    frame.owner = function.owner
    frame.call = call
    if isinstance(call.node, ast.Call) and len(call.args) - len(call.node.args) <= 1:
        m.passed.setdefault(call.node, deque(maxlen=MOST_REMEMBERED)).append((call.args, call.keywords, info))
    m.frames.append(frame)
    m.calls.append(call.node)
    mark = m.store.mark()
    try:
        _bind_arguments(m, function, call, frame)
        frame.receiver = (
            m.cells.get((scope, info.parameters[0])) if function.owner and info.parameters else None
        )
        value = _run_body(m, function, frame, taker)
        m.store.settle(mark)
        return Coroutine(value) if function.kind == "async" and not frame.info.is_generator else value
    finally:
        m.frames.pop()
        m.calls.pop()


NOT_BEGUN = "a generator that has not begun"
WAITS, RAN = "#waits", "#ran"
"""Cells of a generator: how it is begun, and in which grad modes (a bit set) it has run already."""


def _begins_later(m: Machine, function: Function, call: Call) -> bool:
    """Whether a call only names a generator: its body runs where it is gone through, in the grad mode of that place."""
    if call.node not in m.put_off and call.node not in m.lone:
        return False
    plain = call.star is None and call.stars is None and function.kind not in ("contextmanager", ABSTRACT)
    return plain and not isinstance(function.node, ast.Lambda) and m.info(function.node).is_generator


def waiting(m: Machine, node: ast.AST, function: Value, call: Call) -> Ref:
    """Something lazy that is only named: it runs when it is gone through, in the frame that made it."""
    ref = m.new(node, Opaque(NOT_BEGUN, call.args), "waiting")
    m.write_cell(ref, WAITS, Partial(function, call.args, tuple(call.keywords.items())))
    m.store.set((ref.address, RAN), 0)
    m.waiting[ref.address] = m.frames[-1]
    return ref


def begin(m: Machine, ref: Ref) -> None:
    """A generator is gone through: its body runs, once for each grad mode in which that happens."""
    if ref.address & ~1 not in m.waiting:
        return
    waits, ran = m.cells.get((ref.address, WAITS)), m.cells.get((ref.address, RAN))
    if type(waits) is not Partial or type(ran) is not int or not m.mode & ~ran:
        return  # nothing waits there, or it ran in this mode
    m.store.set((ref.address, RAN), ran | m.mode)
    mark = m.store.mark()
    site = m.made_at(ref.address)
    m.put_off.discard(site)
    m.frames.append(m.waiting[ref.address & ~1])
    if isinstance(site, ast.expr) and not isinstance(site, ast.Call):
        value = m.eval(site)
    else:
        value = call_value(m, waits.function, Call(site, waits.args, dict(waits.keywords)))
    m.frames.pop()
    content = m.cells.get(getattr(value, "address", -1))
    if type(content) is Sequence:
        held = m.cells[ref.address]
        m.store.set(
            ref.address, content if type(held) is not Sequence else join_cells(held, _any_of(content))
        )
        mode = m.cells.get((value.address, "#mode"))
        if mode is not None:
            m.write_cell(ref, "#mode", mode)
    if ran:
        m.store.merge([m.store.take(mark), {}])


def _any_of(content: Sequence) -> Sequence:
    """The same elements, any number of them."""
    return Sequence(content.kind, None, content.element)


def _tells_nothing(m: Machine, function: Function, call: Call) -> bool:
    """Whether a function has been run often enough with arguments of which nothing is known: a method, on one object."""
    receiver = m.only(call.args[0]) if function.owner and call.args else 0
    key = (function.node, m.mode, receiver)
    for value in call.all_values():
        for atom in m.alternatives(value):
            content = m.cells.get(getattr(atom, "address", -1))
            if type(content) in (Tensor, Layer, Sequence, Dict) or type(atom) in (Tuple, Function, Bound):
                return False
            if type(content) is Instance and m.classes[content.owner].is_module:
                return False
    ran = m.blind_runs.get(key, 0)
    m.blind_runs[key] = ran + 1
    steps = not m.info(function.node).attributes.isdisjoint(("zero_grad", "step", "backward"))
    return ran >= (MOST_BLIND_STEPS if steps else MOST_BLIND_RUNS)


def _recursion(m: Machine, function: Function, call: Call) -> bool:
    """Whether the function is already running twice; or as deep as is allowed to one that goes down into something.

    A number that is known and differs each time counts the calls: that goes down too. So do wrappers of wrappers,
    which have each captured another function.
    """
    frames = [frame for frame in m.frames if frame.node is function.node and frame.call is not None]
    running: list[Call] = [frame.call for frame in frames]
    if running and m.alone and _asks_the_same(m, running[-1], call):
        return True
    if len(running) < MOST_IN_ITSELF:
        return False
    closures = {function.scope, *(m.scope_parents.get(frame.own, 0) for frame in frames)}
    if len(closures) > len(running):
        return len(running) >= MOST_DOWN
    known = [given.args for given in (*running, call)]
    if all(_is_known(m, args) for args in known) and len(set(known)) == len(known) and not _has_number(call):
        return len(running) >= MOST_DOWN
    counted = any(
        type(value) is Const
        and value.kind == "int"
        and all(at >= len(given.args) or given.args[at] != value for given in running)
        for at, value in enumerate(call.args)
    )
    return not counted or len(running) >= MOST_COUNTED or m.runs.get(function.node, 0) > MOST_RUNS_COUNTED


def _holds_graph(m: Machine, value: Value) -> bool:
    """Whether something that is handed over may bring a graph: a function that is handed none uses none."""
    for ref in refs(value):
        content = m.cells.get(ref.address)
        if type(content) is Tensor and content.requires_grad == NO:
            continue
        if type(content) is not Opaque:
            return True
        match content.origin.node if content.origin is not None else None:
            case ast.Call(func=ast.Attribute(attr="values" | "items" | "keys"), args=[]):
                if any(_holds_graph(m, part) for part in content.inputs):
                    return True
            case ast.Call() | ast.BinOp():
                return True
    return type(value) is Tuple and any(_holds_graph(m, item) for item in value.items)


def _asks_the_same(m: Machine, before: Call, now: Call) -> bool:
    """Whether a call tells no more than the one around it: what is not the same is as unknown as it was there."""
    olds, news = before.all_values(), now.all_values()
    return (
        len(olds) == len(news)
        and before.keywords.keys() == now.keywords.keys()
        and all(
            old == new or (m.is_unknown(old) and m.is_unknown(new))
            for old, new in zip(olds, news, strict=True)
        )
    )


def _has_number(call: Call) -> bool:
    return any(type(value) is Const and value.kind == "int" for value in call.args)


def _is_known(m: Machine, args: tuple[Value, ...]) -> bool:
    """Whether something is known of what a function is called with."""
    contents = [m.cells.get(arg.address) if type(arg) is Ref else arg for arg in args]
    return any(type(c) not in (Opaque, Unknown, Const, Number, Text, NoneType) for c in contents)


def _bind_arguments(m: Machine, function: Function, call: Call, frame: Frame) -> None:
    info, scope = frame.info, frame.scope
    given = dict(call.keywords)
    defaults = dict(function.defaults)
    args = call.args
    for at, name in enumerate(info.parameters):
        if at < len(args):
            value = args[at]
        elif name in given:
            value = given.pop(name)
        elif call.star is not None:
            value = join(defaults[name], call.star) if name in defaults else call.star
        elif name in defaults:
            value = defaults[name] if call.stars is None else join(defaults[name], call.stars)
        else:
            value = call.stars if call.stars is not None else Unknown(f"argument `{name}` was not given")
        m.store.set((scope, name), value)
    for name in info.keyword_only:
        value = given.pop(name, None)
        if value is None and name in defaults:
            value = defaults[name] if call.stars is None else join(defaults[name], call.stars)
        elif value is None:
            value = call.stars if call.stars is not None else Unknown(f"argument `{name}`")
        m.store.set((scope, name), value)
    if info.star:
        extra = args[len(info.parameters) :]
        value = (
            Tuple(extra)
            if call.star is None
            else m.new(function.node, Sequence("tuple", None, join_all([*extra, call.star])), "star")
        )
        m.store.set((scope, info.star), value)
    if info.stars:
        content = Dict(tuple((const(name), value) for name, value in given.items()), call.stars)
        m.store.set((scope, info.stars), m.new(function.node, content, "stars"))


def _run_body(m: Machine, function: Function, frame: Frame, taker: Callable[[Value], Value] | None) -> Value:
    node = function.node
    before = m.mode
    depth = len(m.mode_nodes)
    for mode in function.modes:
        m.store.set(MODE, mode.after(m.mode))
        m.mode_nodes.append(mode.node)
    frame.modes_before = len(m.mode_nodes)
    frame.base = m.store.mark()
    if isinstance(node, ast.Lambda):
        value = m.eval(node.body)
        m.store.set(MODE, before if function.modes else m.mode)
        if LAMBDA_RAN:
            LAMBDA_RAN[0](m, node, value)
        del m.mode_nodes[depth:]
        _forget(m, frame)
        return value
    yielded = Yielded(m, node, frame) if frame.info.is_generator else None
    if yielded is not None:
        frame.yields = taker or yielded.collect
    alive = m.block(node.body) or frame.given is not None
    del m.mode_nodes[depth:]
    ends: list[Delta] = [delta for delta, _ in frame.returns]
    values: list[Value] = [value for _, value in frame.returns]
    if alive:
        values.append(NONE if frame.given is None else frame.given)
    if m.judge is not None and not function.modes and m.setters:
        left = [*ends, *([m.store.delta(frame.base)] if alive else [])]
        m.judge.modes.function_ends(frame, before, [_mode_at(m, delta, before) for delta in left])
    if ends:
        if alive:
            ends.append(m.store.delta(frame.base))
        m.store.undo(frame.base)
        m.store.merge(ends)
    if function.modes:
        m.store.set(MODE, before)
    result = join_all(values) if values else Unknown(f"`{node.name}` never returns")
    _forget(m, frame)
    if yielded is not None:
        ref = m.new(node, yielded.taken(), "gen")
        waits = WAITING_MODE[0](frame.waits)
        if waits is not None:
            m.write_cell(ref, "#mode", waits)
        return ref
    return result


def _mode_at(m: Machine, delta: Delta, before: int) -> tuple[int, ast.AST | None]:
    """The grad mode on one way out of a function, and the `set_grad_enabled` that set it last."""
    setter = delta.get(MODE_SETTER)
    mode = delta.get(MODE)
    return (before if mode is None else mode), (m.setters.get(setter) if type(setter) is int else None)


def _forget(m: Machine, frame: Frame) -> None:
    """Locals end with their call, unless a closure may still see them: only then do they keep objects alive."""
    if frame.info.keeps_locals:
        return
    for name in frame.info.names:
        if (frame.scope, name) in m.cells:
            m.store.set((frame.scope, name), None)


# -- decorators


ABSTRACT = "abstract"
"""What a function is that only subclasses define: what it gives is not known, whatever its body says."""
MOST_STEPS_OF_A_DECORATOR = 200
_OF_METHODS = frozenset({"torch.autograd.function.once_differentiable"})
"""Decorators of torch that give a method back."""
_PLAIN_DECORATORS = {
    "builtins.property": "property",
    "functools.cached_property": "property",
    "builtins.staticmethod": "staticmethod",
    "builtins.classmethod": "classmethod",
    "contextlib.contextmanager": "contextmanager",
    "contextlib.asynccontextmanager": "contextmanager",
    "abc.abstractmethod": ABSTRACT,
}


_DISPATCHING = frozenset({"functools.singledispatch", "functools.singledispatchmethod"})


def setter_of(name: str) -> str:
    """The cell of a class that holds the setter of a property."""
    return f"#set {name}"


def decorate(m: Machine, node: ast.FunctionDef | ast.AsyncFunctionDef, function: Function) -> Value:
    """Apply the decorators of a function, the innermost first."""
    value: Value = function
    for decorator in reversed(node.decorator_list):
        before = m.mode
        applied = m.eval(decorator)
        m.store.set(MODE, before)  # `@torch.set_grad_enabled(False)` acts only while the function runs
        if type(value) is not Function:
            continue
        if type(applied) is External:
            if value.kind == ABSTRACT:
                continue
            if applied.name in _DISPATCHING:
                return Unknown("a function that is one of several")
            if applied.name in _PLAIN_DECORATORS:
                value = value._replace(kind=_PLAIN_DECORATORS[applied.name] or value.kind)
            elif applied.name in ("torch.no_grad", "torch.inference_mode", "torch.enable_grad"):
                value = call_value(m, call_value(m, applied, Call(decorator, ())), Call(decorator, (value,)))
            elif applied.name in _OF_METHODS or (
                applied.name.startswith("torch.") and not isinstance(m.frames[-1].node, ast.ClassDef)
            ):
                wrapped = call_value(m, applied, Call(decorator, (value,)))
                value = wrapped if type(wrapped) in (Function, Partial) else value
        elif type(applied) is Mode:
            m.emit(ModeDecorator(decorator, m.where(), node))
            value = _apply_mode(m, applied, Call(decorator, (value,)))
        elif type(applied) is Function:
            wrapped = _applied(m, applied, Call(decorator, (value,)))
            value = wrapped if type(wrapped) is Function or _is_callable(m, wrapped) else value
        elif type(applied) is Managed or _has(m, applied, "__enter__"):
            value = value._replace(inside=(*value.inside, applied))
        elif type(applied) in (Class, Bound) or _is_callable(m, applied):
            wrapped = call_value(m, applied, Call(decorator, (value,)))
            value = wrapped if type(wrapped) in (Function, Bound) or _is_callable(m, wrapped) else value
        elif type(decorator) is ast.Attribute and decorator.attr in ("setter", "deleter", "getter"):
            if decorator.attr == "setter":
                m.store.set((m.frames[-1].scope, setter_of(node.name)), value)
            return m.cells.get((m.frames[-1].scope, node.name), value)
    return value


def _applied(m: Machine, decorator: Function, call: Call) -> Value:
    """What a decorator makes of a function or class.

    One of another module that takes long, as it writes documentation or the like, is taken to give back what it got.
    """
    if globals_of(m, decorator.scope) == m.global_scope:
        return call_function(m, decorator, call)
    if decorator.node in m.too_long:
        return call.args[0]
    with m.at_most(MOST_STEPS_OF_A_DECORATOR) as whole:
        value = call_function(m, decorator, call)
    if whole():
        return value
    m.too_long.add(decorator.node)
    m.limit("what a decorator of another module does was not followed to its end")
    return call.args[0]


def method_of(m: Machine, value: Value, name: str) -> Value | None:
    """The method of this name that the class of an object has; None for what is no object of a class of the file."""
    content = m.cells.get(getattr(value, "address", -1))
    return find_in_class(m, content.owner, name) if type(content) is Instance else None


def _is_callable(m: Machine, value: Value) -> bool:
    """Whether a value is an object of the file that can be called."""
    return _has(m, value, "__call__")


def _has(m: Machine, value: Value, name: str) -> bool:
    """Whether a value is an object of the file whose class has this method."""
    return type(value) is Ref and method_of(m, value, name) is not None


# -- classes


def define_class(m: Machine, node: ast.ClassDef) -> Value:
    """Run a class body and make its class."""
    bases = [m.eval(base) for base in node.bases]
    for keyword in node.keywords:
        m.eval(keyword.value)
    outer = m.frames[-1]
    context = m.context(node)
    parent = outer.scope if not isinstance(outer.node, ast.ClassDef) else m.scope_parents[outer.scope]
    address = m.scope(context, node, parent)
    info = ClassInfo(node.name, node, address)
    order = [address]
    external: set[str] = set()
    for base in [atom for value in bases for atom in m.alternatives(value)]:
        if type(base) is Class and base.address in m.classes:
            order += [a for a in m.classes[base.address].order if a not in order]
            external |= m.classes[base.address].external
            info.fields += m.classes[base.address].fields
            info.unknown_base |= m.classes[base.address].unknown_base
        elif type(base) is External:
            external.add(base.name)
        else:
            info.unknown_base = True
    info.order = tuple(order)
    info.external = frozenset(external)
    info.is_module = any(_is_module_class(name) for name in external)
    m.classes[address] = info
    frame = Frame(node, m.info(node), address, context, m.store.mark())
    frame.owner = address
    m.frames.append(frame)
    m.block(node.body)
    m.frames.pop()
    for statement in node.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            info.fields.append(statement.target.id)
    if external & ENUMS:
        _name_members(m, info)
    for decorator in node.decorator_list:
        before = m.mode
        applied = m.eval(decorator)
        m.store.set(MODE, before)
        if type(applied) is Mode:
            m.emit(ModeDecorator(decorator, m.where(), node))
            own = m.cells.get((address, "__init__"))
            if type(own) is Function and applied.modes & NO_GRAD:
                m.store.set((address, "__init__"), own._replace(modes=(*own.modes, applied)))
        elif type(applied) is Function:
            made = _applied(m, applied, Call(decorator, (Class(address),)))
            if type(made) is Class and made.address in m.classes:
                return made
    return Class(address)


ENUMS = frozenset({"enum.Enum", "enum.Flag"})
"""Bases whose members are no numbers and no texts, whatever their values are."""


def _name_members(m: Machine, info: ClassInfo) -> None:
    """The members of an enumeration: constants of a kind of their own, which know their name and their value."""
    for statement in info.node.body:
        for target in statement.targets if isinstance(statement, ast.Assign) else ():
            if isinstance(target, ast.Name) and not target.id.startswith("_"):
                value = m.cells.get((info.address, target.id))
                known = value.value if type(value) is Const else None
                m.store.set((info.address, target.id), Const(info.name, Member(target.id, known)))


def members_of_enum(m: Machine, address: int) -> tuple[Value, ...] | None:
    """What one meets who goes through a class: the members of an enumeration, in the order of their definition."""
    info = m.classes.get(address)
    if info is None or not info.external & ENUMS:
        return None
    found = [
        m.cells.get((address, target.id))
        for statement in info.node.body
        for target in (statement.targets if isinstance(statement, ast.Assign) else ())
        if isinstance(target, ast.Name)
    ]
    return tuple(value for value in found if type(value) is Const and type(value.value) is Member)


def _is_module_class(name: str) -> bool:
    parts = name.split(".")
    return parts[:2] == ["torch", "nn"] or parts[-1] in ("LightningModule", "PreTrainedModel")


def find_in_class(m: Machine, address: int, name: str, after: int = 0) -> Value | None:
    """A class attribute, looked up through the bases; `after` skips all up to and with that class."""
    info = m.classes.get(address)
    if info is None:
        return None
    order = info.order
    if after in order:
        order = order[order.index(after) + 1 :]
    for base in order:
        value = m.cells.get((base, name))
        if value is not None:
            return value
    return None


def make_base(m: Machine, ref: Ref, owner: int, call: Call) -> None:
    """What the constructors of the bases from elsewhere do."""
    for make in MAKE_BASE:
        make(m, ref, owner, call)


def instantiate(m: Machine, cls: Class, call: Call) -> Value:
    """Make an instance of a class of the file and run its `__init__`."""
    info: ClassInfo = m.classes[cls.address]
    if "typing.NamedTuple" in info.external:
        items = (
            call.argument(at, name) or find_in_class(m, cls.address, name)
            for at, name in enumerate(info.fields)
        )
        return Tuple(tuple(item if item is not None else Unknown() for item in items), tuple(info.fields))
    ref = m.new(call.node, Instance(cls.address), f"instance of {cls.address}")
    if m.classes[cls.address].is_module:
        m.write_cell(ref, "training", const(True))
    init = find_in_class(m, cls.address, "__init__")
    if init is not None:
        call_value(m, Bound(init, ref), call)
    elif info.is_module or (info.external and not info.fields):
        make_base(m, ref, cls.address, call)
    elif info.fields:
        for at, name in enumerate(info.fields):
            value = call.argument(at, name)
            if value is None:
                value = find_in_class(m, cls.address, name)
                if type(value) is Partial and value.function == External(FIELD):
                    with m.numbered(call.node, at % 60):
                        value = call_value(m, value.args[0], Call(call.node, ()))
            m.write_cell(ref, name, value if value is not None else Unknown(f"field `{name}`"))
        post = find_in_class(m, cls.address, "__post_init__")
        if post is not None:
            call_value(m, Bound(post, ref), Call(call.node, ()))
    return ref
