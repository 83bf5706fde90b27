"""What each kind of expression evaluates to."""

import ast
from collections.abc import Callable
from typing import Any

from gradvet.autograd.library import batches, escapes, forgotten
from gradvet.autograd.machine import EVALUATE, MODE, Loop, Machine
from gradvet.autograd.memory.domain import MAYBE, NO, YES
from gradvet.autograd.memory.scopes import comprehended
from gradvet.autograd.memory.values import (
    FALSE,
    NONE,
    TRUE,
    Bound,
    Class,
    Const,
    Coroutine,
    Dict,
    External,
    Function,
    Number,
    Range,
    Ref,
    Sequence,
    Slice,
    Text,
    Tuple,
    Union,
    Unknown,
    Value,
    const,
    join,
    join_all,
)
from gradvet.autograd.python.calls import Call, call_value, waiting
from gradvet.autograd.python.control import fork, is_none, narrow, truth
from gradvet.autograd.python.names import bind, builds_modules, lookup
from gradvet.autograd.python.objects import (
    assign,
    element_of,
    get_attribute,
    get_item,
    is_thinned,
    items_of,
    least,
)
from gradvet.autograd.python.operators import LONGEST_TEXT, binary, compare, same_class, unary

MOST_TUPLES_DEEP = 5


def evaluates(*kinds: type) -> Callable[[Callable[[Machine, Any], Value]], Callable[[Machine, Any], Value]]:
    """Register what these kinds of expression mean."""

    def register(function: Callable[[Machine, Any], Value]) -> Callable[[Machine, Any], Value]:
        EVALUATE.update(dict.fromkeys(kinds, function))
        return function

    return register


@evaluates(ast.Constant)
def _constant(m: Machine, node: ast.Constant) -> Value:
    return const(node.value)


@evaluates(ast.Name)
def _name(m: Machine, node: ast.Name) -> Value:
    return lookup(m, node.id)


@evaluates(ast.Attribute)
def _attribute(m: Machine, node: ast.Attribute) -> Value:
    return get_attribute(m, m.eval(node.value), node.attr, node)


@evaluates(ast.Subscript)
def _subscript(m: Machine, node: ast.Subscript) -> Value:
    holder = m.eval(node.value)
    return get_item(m, holder, m.eval(node.slice), node)


@evaluates(ast.Slice)
def _slice(m: Machine, node: ast.Slice) -> Value:
    for part in (node.lower, node.upper, node.step):
        if part is not None:
            bound = m.tensor(m.eval(part))
            if bound is not None:
                batches.read(m, node, bound, "slice")
    return Slice()


@evaluates(ast.Call)
def _call(m: Machine, node: ast.Call) -> Value:
    if isinstance(node.func, ast.Attribute):
        function = get_attribute(m, m.eval(node.func.value), node.func.attr, node.func, called=True)
    else:
        function = m.eval(node.func)
    args: list[Value] = []
    star = None
    for arg in node.args:
        if isinstance(arg, ast.GeneratorExp):
            m.consumed.add(arg)
        if isinstance(arg, ast.Starred):
            value = m.eval(arg.value)
            known = items_of(m, value)
            if known is not None and star is None:
                args.extend(known)
            else:
                element = element_of(m, value, arg)
                star = element if star is None else join(star, element)
        elif star is None:
            args.append(m.eval(arg))
        else:
            star = join(star, m.eval(arg))
    keywords: dict[str, Value] = {}
    stars = None
    for keyword in node.keywords:
        value = m.eval(keyword.value)
        if keyword.arg is not None:
            keywords[keyword.arg] = value
            continue
        content = m.cells.get(getattr(value, "address", -1))
        if type(content) is Dict:
            keywords.update({key.value: v for key, v in content.items if key.kind == "str"})
            stars = content.rest if content.rest is not None else stars
        else:
            stars = Unknown("keyword arguments that are not known")
    call = Call(node, tuple(args), keywords, star, stars)
    value = call_value(m, function, call)
    if m.judge is not None:
        if m.judge.doubles.active:
            m.judge.doubles.called(function, call, value)
        if type(function) is Bound and isinstance(node.func, ast.Attribute) and node.func.attr == "forward":
            m.judge.forward_called(function.receiver, node, value)
        m.judge.evaluations.called(node, value)
        m.judge.thrown_away.called(node, function, value)
    return value


@evaluates(ast.BinOp)
def _binop(m: Machine, node: ast.BinOp) -> Value:
    left = m.eval(node.left)
    return binary(m, node, node.op, left, m.eval(node.right))


@evaluates(ast.UnaryOp)
def _unaryop(m: Machine, node: ast.UnaryOp) -> Value:
    value = m.eval(node.operand)
    if isinstance(node.op, ast.Not):
        known = truth(m, value)
        return TRUE if known == NO else FALSE if known == YES else Number("bool")
    return unary(m, node, node.op, value)


@evaluates(ast.BoolOp)
def _boolop(m: Machine, node: ast.BoolOp) -> Value:
    stops_at = YES if isinstance(node.op, ast.Or) else NO
    return _bool_rest(m, node.values, stops_at)


def _bool_rest(m: Machine, values: list[ast.expr], stops_at: int) -> Value:
    first = m.eval(values[0])
    if len(values) == 1:
        return first
    known = truth(m, first)
    if known == stops_at:
        return first
    goes_on = stops_at == NO
    if known != MAYBE:
        return _bool_rest(m, values[1:], stops_at)

    def stop() -> tuple[bool, Value]:
        alive = narrow(m, values[0], not goes_on)
        return alive, _only(m, first, truth_is=not goes_on)

    def go_on() -> tuple[bool, Value]:
        return (True, _bool_rest(m, values[1:], stops_at)) if narrow(m, values[0], goes_on) else (False, None)

    alive, value = fork(m, [stop, go_on])
    return value if alive and value is not None else first


def _only(m: Machine, value: Value, *, truth_is: bool) -> Value:
    """The alternatives of a value that may have this truth."""
    rejected = NO if truth_is else YES
    kept = [atom for atom in m.alternatives(value) if truth(m, atom) != rejected]
    return join_all(kept) if kept else value


@evaluates(ast.IfExp)
def _ifexp(m: Machine, node: ast.IfExp) -> Value:
    test = m.eval(node.test)
    batches.decides(m, node.test, test)
    known = truth(m, test)
    ways: list[Callable[[], tuple[bool, Value]]] = []
    for outcome, branch in ((True, node.body), (False, node.orelse)):
        if known == (NO if outcome else YES):
            continue

        def way(branch: ast.expr = branch, *, outcome: bool = outcome) -> tuple[bool, Value]:
            return (True, m.eval(branch)) if narrow(m, node.test, outcome) else (False, None)

        ways.append(way)
    alive, value = fork(m, ways)
    if type(test) is Number and test.cuts and type(value) is Number:
        return Number(
            value.kind, value.cuts | test.cuts
        )  # which number it is was decided by one that was cut
    return value if alive and value is not None else Unknown("neither branch is possible")


@evaluates(ast.Compare)
def _compare(m: Machine, node: ast.Compare) -> Value:
    left = m.eval(node.left)
    if len(node.ops) == 1:
        right = m.eval(node.comparators[0])
        op = node.ops[0]
        if isinstance(op, (ast.Is, ast.IsNot)):
            return _identity(m, left, right, positive=isinstance(op, ast.Is))
        return compare(m, node, op, left, right)
    for comparator in node.comparators:
        m.eval(comparator)
    return Number("bool")


def _identity(m: Machine, left: Value, right: Value, *, positive: bool) -> Value:
    known = MAYBE
    if right == NONE:
        known = is_none(m, left)
    elif type(left) is Const and type(right) is Const:
        known = YES if left == right else NO
    elif type(left) in (External, Class) and type(right) in (External, Class):
        known = same_class(left, right)
    if known == MAYBE:
        return Number("bool")
    return TRUE if (known == YES) is positive else FALSE


@evaluates(ast.Tuple)
def _tuple(m: Machine, node: ast.Tuple) -> Value:
    items = _elements(m, node.elts)
    if items is None:
        return m.new(node, Sequence("tuple", None, _any_element(m, node.elts)))
    if any(_is_deep(item) for item in items):
        return m.new(node, Sequence("tuple", None, join_all(items), nonempty=True))
    return Tuple(tuple(items))


def _is_deep(value: Value, left: int = MOST_TUPLES_DEEP) -> bool:
    """Whether a tuple holds tuples that hold tuples, and so on, more than anybody means to take apart."""
    return type(value) is Tuple and (left == 0 or any(_is_deep(item, left - 1) for item in value.items))


@evaluates(ast.List, ast.Set)
def _list(m: Machine, node: ast.List | ast.Set) -> Value:
    kind = "list" if isinstance(node, ast.List) else "set"
    items = _elements(m, node.elts)
    if items is None:
        return m.new(node, Sequence(kind, None, _any_element(m, node.elts)))
    return m.new(node, Sequence(kind, tuple(items)))


def _elements(m: Machine, nodes: list[ast.expr]) -> list[Value] | None:
    """The values one by one, or None when a star makes their number unknown."""
    out: list[Value] = []
    for node in nodes:
        if isinstance(node, ast.Starred):
            known = items_of(m, m.eval(node.value))
            if known is None:
                return None
            out.extend(known)
        else:
            out.append(m.eval(node))
    return out


def _any_element(m: Machine, nodes: list[ast.expr]) -> Value | None:
    return join_all(
        [element_of(m, m.eval(n.value), n) if isinstance(n, ast.Starred) else m.eval(n) for n in nodes]
    )


@evaluates(ast.Dict)
def _dict(m: Machine, node: ast.Dict) -> Value:
    known: dict[Const, Value] = {}
    rest: Value | None = None
    keys: Value | None = None
    for key_node, value_node in zip(node.keys, node.values):
        value = m.eval(value_node)
        forgotten.kept(m, value, value_node)
        if key_node is None:
            other = m.cells.get(getattr(value, "address", -1))
            if type(other) is Dict:
                known.update(other.items)
                rest, keys = other.rest if other.rest is not None else rest, other.keys or keys
            else:
                rest, keys = Unknown("an unpacked mapping"), Unknown()
            continue
        key = m.eval(key_node)
        if type(key) is Const:
            known[key] = value
        else:
            rest = value if rest is None else join(rest, value)
            keys = key if keys is None else join(keys, key)
    filled = None not in node.keys and bool(node.keys)
    return m.new(node, Dict(tuple(known.items()), rest, keys, nonempty=filled))


@evaluates(ast.JoinedStr)
def _joined(m: Machine, node: ast.JoinedStr) -> Value:
    """An f-string; its text is known when all its parts are plain words and whole numbers: the name of an attribute."""
    words: list[str] = []
    for part in node.values:
        if isinstance(part, ast.Constant):
            words.append(str(part.value))
        elif isinstance(part, ast.FormattedValue):
            value = m.eval(part.value)
            forgotten.used(m, value, part.value, "shown")
            plain = type(value) is Const and value.kind in ("str", "int")
            if plain and part.conversion == NO_CONVERSION and part.format_spec is None:
                words.append(str(value.value))
    text = "".join(words)
    return const(text) if len(words) == len(node.values) and len(text) <= LONGEST_TEXT else Text()


@evaluates(ast.Lambda)
def _lambda(m: Machine, node: ast.Lambda) -> Value:
    escapes.lambda_made(m, node)
    return Function(node, m.frames[-1].scope, defaults_of(m, node.args))


def defaults_of(m: Machine, args: ast.arguments) -> tuple[tuple[str, Value], ...]:
    """Evaluate the defaults of a function, as `def` does."""
    positional = [*args.posonlyargs, *args.args]
    pairs = [
        (arg.arg, m.eval(default))
        for arg, default in zip(
            positional[len(positional) - len(args.defaults) :], args.defaults, strict=False
        )
    ]
    pairs += [
        (arg.arg, m.eval(d))
        for arg, d in zip(args.kwonlyargs, args.kw_defaults, strict=False)
        if d is not None
    ]
    return tuple(pairs)


@evaluates(ast.NamedExpr)
def _walrus(m: Machine, node: ast.NamedExpr) -> Value:
    value = m.eval(node.value)
    bind(m, node.target.id, value)
    return value


@evaluates(ast.Starred)
def _starred(m: Machine, node: ast.Starred) -> Value:
    return m.eval(node.value)


@evaluates(ast.Await)
def _await(m: Machine, node: ast.Await) -> Value:
    value = m.eval(node.value)
    escapes.suspended(m, node, "await")
    return awaited(value)


def awaited(value: Value) -> Value:
    """What `await` gives."""
    if type(value) is Coroutine:
        return value.value
    if type(value) is Union:
        return join_all([awaited(atom) for atom in value.atoms])
    return value


@evaluates(ast.Yield)
def _yield(m: Machine, node: ast.Yield) -> Value:
    value = m.eval(node.value) if node.value is not None else NONE
    escapes.suspended(m, node, "yield")
    taker = m.frames[-1].yields
    return taker(value) if taker is not None else Unknown("what is sent to a generator")


@evaluates(ast.YieldFrom)
def _yield_from(m: Machine, node: ast.YieldFrom) -> Value:
    value = m.eval(node.value)
    escapes.suspended(m, node, "yield")
    frame = m.frames[-1]
    items = items_of(m, value)
    if frame.yields is not None and items is not None:
        for item in items:
            frame.yields(item)
    elif frame.yields is not None:
        frame.loops.append(Loop(node, m.store.mark()))  # as often as there is something
        frame.yields(element_of(m, value, node))
        frame.loops.pop()
    return Unknown("what a generator returns")


@evaluates(ast.ListComp, ast.SetComp, ast.GeneratorExp)
def _comprehension(m: Machine, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Value:
    kind = {ast.ListComp: "list", ast.SetComp: "set", ast.GeneratorExp: "generator"}[type(node)]
    before = m.mode
    if node in m.put_off and escapes.own_mode(m) is None:
        return _walked_once(m, waiting(m, node, NONE, Call(node, ())))
    started = escapes.mode_of_lazy(m, node) if kind == "generator" else before
    m.store.set(MODE, started)
    found, thinned, shortest = _comprehend(m, node, node.generators, lambda: m.eval(node.elt))
    if kind == "generator" and (m.mode == started or node not in m.consumed):
        m.store.set(MODE, before if m.mode == started else before | m.mode)
    if isinstance(found, list):
        made = m.new(node, Sequence(kind, tuple(found)))
    elif found is None:
        made = m.new(node, Sequence(kind))  # nothing is let in
    else:
        filtered = any(generator.ifs for generator in node.generators)
        nonempty = not filtered and not thinned and shortest != 0
        fewest = None if filtered or len(node.generators) > 1 else shortest
        made = m.new(node, Sequence(kind, None, found, nonempty=nonempty, thinned=thinned, shortest=fewest))
    if kind == "generator":
        escapes.lazy(m, node, made)
        return _walked_once(m, made)
    return made


def _walked_once(m: Machine, made: Ref) -> Ref:
    """A generator: who walks it a second time finds nothing in it."""
    if m.judge is not None:
        m.judge.protocol.generator(made)
    return made


@evaluates(ast.DictComp)
def _dict_comprehension(m: Machine, node: ast.DictComp) -> Value:
    found, _, _ = _comprehend(m, node, node.generators, lambda: Tuple((m.eval(node.key), m.eval(node.value))))
    pairs = found if isinstance(found, list) else []
    if isinstance(found, list) and all(type(pair.items[0]) is Const for pair in pairs):
        content = Dict()
        for pair in pairs:
            content = content.put(pair.items[0], pair.items[1])
        return m.new(node, content)
    pair = join_all(pairs) if isinstance(found, list) else found
    if type(pair) is not Tuple:
        return m.new(node, Dict((), Unknown(), Unknown()))
    return m.new(node, Dict((), pair.items[1], pair.items[0]))


NO_CONVERSION = -1
"""What `ast` writes for an f-string's part without `!r` or its kin."""
MOST_UNROLLED = 8
MOST_COUNTED = 4  # of a range, whose numbers may be indices
MOST_MEMBERS = 60  # `Machine.numbered` has place for so many


def _uses(node: ast.expr, target: ast.expr) -> bool:
    """Whether the variable of a comprehension is read in it: `for _ in range(3)` only counts."""
    names = {part.id for part in ast.walk(target) if isinstance(part, ast.Name)}
    return any(
        isinstance(part, ast.Name) and part.id in names and isinstance(part.ctx, ast.Load)
        for part in ast.walk(node)
    )


def _comprehend(
    m: Machine, node: ast.expr, generators: list[ast.comprehension], element: Callable[[], Value]
) -> tuple[list[Value] | Value | None, bool, int | None]:
    """Run a comprehension, in a scope of its own: a list when each element is known by itself, else the join of all.

    And whether nothing may be left of what it goes through, and the least length that this is known to have.
    """
    source = m.eval(generators[0].iter)
    frame = m.frames[-1]
    outer, scope = frame.scope, m.scope(frame.context, node, frame.scope)
    m.comprehended[scope], keeps_locals = comprehended(node, generators)
    frame.scope = scope
    try:
        return _over(m, node, source, generators, element), is_thinned(m, source), least(m, source)
    finally:
        frame.scope = outer
        for name in () if keeps_locals else m.comprehended[scope]:
            m.store.set((scope, name), None)


def _over(
    m: Machine,
    node: ast.expr,
    source: Value,
    generators: list[ast.comprehension],
    element: Callable[[], Value],
) -> list[Value] | Value | None:
    """Run the element of a comprehension, or what is nested in it, for each item of the first of its sources."""
    first, rest = generators[0], generators[1:]
    known = items_of(m, source)
    content = m.cells.get(getattr(source, "address", -1))
    members = type(content) is Sequence and content.kind == "members"
    if type(content) is Range and content.values:
        few = len(content.values) <= MOST_COUNTED and _uses(node, first.target)
        known = content.values if few or (not m.of_many and builds_modules(m, node)) else known
    certain = True

    def once(value: Value) -> list[Value] | Value | None:
        m.step()
        assign(m, first.target, value, first.target)
        return tested(first.ifs)

    def tested(tests: list[ast.expr]) -> list[Value] | Value | None:
        nonlocal certain
        if not tests:
            return _over(m, node, m.eval(rest[0].iter), rest, element) if rest else [element()]
        passes = truth(m, m.eval(tests[0]))
        if passes == NO:
            return []
        if passes == YES:
            return tested(tests[1:])
        certain = False
        made: list[list[Value] | Value | None] = []

        def goes_in() -> tuple[bool, Value]:
            alive = narrow(m, tests[0], True)
            made.extend([tested(tests[1:])] if alive else [])
            return alive, None

        fork(m, [goes_in, lambda: (narrow(m, tests[0], False), None)])
        return made[0] if made else []

    most = MOST_MEMBERS if members else MOST_UNROLLED
    if known is not None and len(known) <= most and m.may_unroll(first.iter, len(known)):
        # Each element has a context of its own, so that what it makes has addresses of its own.
        found: list[Value] = []
        outer = m.unrolled
        m.unrolled *= len(known) or 1
        for number, value in enumerate(known):
            with m.numbered(first, number):
                made = once(value)
            if isinstance(made, list):
                found += made
            else:
                certain = False
                found += [] if made is None else [made]
        m.unrolled = outer
        return found if certain and len(found) <= MOST_MEMBERS else join_all(found)

    def all_at_once() -> tuple[bool, Value]:
        made = once(element_of(m, source, first.iter))
        joined = join_all(made) if isinstance(made, list) else made
        return joined is not None, joined

    before = m.mode
    alive, value = m.for_all(first, all_at_once)
    if alive and m.mode & ~before:  # the next one begins in the mode that this one has left
        m.store.set(MODE, before | m.mode)
        _, other = m.for_all(first, all_at_once)
        value = value if other is None else join(value, other)
    return value if alive else None


@evaluates(ast.FormattedValue)
def _formatted(m: Machine, node: ast.FormattedValue) -> Value:
    m.eval(node.value)
    return Text()


def _never(m: Machine, node: ast.expr) -> Value:
    return Unknown("this kind of expression is not followed")


for _kind in ast.expr.__subclasses__():
    EVALUATE.setdefault(_kind, _never)
