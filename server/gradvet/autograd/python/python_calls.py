"""The builtin functions of Python and the few of its library that move values around."""

import ast

from gradvet.autograd.library import escapes, forgotten, layers, open_modules
from gradvet.autograd.library.externals import handles
from gradvet.autograd.machine import MODE, Machine
from gradvet.autograd.memory.domain import MAYBE, NO, YES, Tensor
from gradvet.autograd.memory.values import (
    NONE,
    PARSER,
    Bound,
    Class,
    Const,
    Coroutine,
    Data,
    Dict,
    External,
    Function,
    Instance,
    Layer,
    Method,
    Mode,
    Number,
    Opaque,
    Partial,
    Range,
    Ref,
    Sequence,
    Stack,
    Super,
    Text,
    Tuple,
    Union,
    Unknown,
    Value,
    const,
    is_plain,
    join,
    join_all,
)
from gradvet.autograd.python.calls import (
    FIELD,
    Call,
    begin,
    call_value,
    find_in_class,
    method_of,
    unknown_call,
    waiting,
)
from gradvet.autograd.python.contexts import SUPPRESSING
from gradvet.autograd.python.control import is_instance, truth
from gradvet.autograd.python.objects import (
    are_parameters,
    as_many,
    element_of,
    get_attribute,
    is_thinned,
    items_of,
    set_attribute,
)
from gradvet.autograd.python.operators import binary, number_of

MOST_ITEMS = 16
MOST_MEMBERS = 60
PAIR = 2
PASSES = 2  # of what folds a value of unknown length: its first result, and one that goes in again


@handles("builtins.print", "builtins.input", "builtins.breakpoint", "builtins.exec")
def _none(m: Machine, name: str, call: Call) -> Value:
    if name == "builtins.print":
        for value in call.args:
            forgotten.used(m, value, call.node, "shown")
    return NONE


@handles("argparse.ArgumentParser")
def _parser(m: Machine, name: str, call: Call) -> Value:
    return m.unknown(call.node, PARSER, (), "parser")


@handles("contextlib.suppress")
def _suppress(m: Machine, name: str, call: Call) -> Value:
    return External(SUPPRESSING)


@handles("typing.cast", "typing_extensions.cast")
def _cast(m: Machine, name: str, call: Call) -> Value:
    """What is cast to a type for a checker's sake is what it was."""
    value = call.argument(1, "val")
    return value if value is not None else unknown_call(m, call, "the result of `cast`")


@handles("builtins.len", "builtins.id", "builtins.hash", "builtins.ord")
def _int(m: Machine, name: str, call: Call) -> Value:
    if name == "builtins.len" and call.args:
        items = items_of(m, call.args[0])
        if items is not None and not any(open_modules.stands_for_many(m, item) for item in items):
            return const(len(items))
        content = m.cells.get(getattr(call.args[0], "address", -1))
        if type(content) is Instance:
            special = find_in_class(m, content.owner, "__len__")
            if special is not None:
                return call_value(m, special, Call(call.node, (call.args[0],)))
    return Number("int")


@handles("builtins.str", "builtins.repr", "builtins.format", "builtins.chr", "builtins.hex", "builtins.bin")
def _text(m: Machine, name: str, call: Call) -> Value:
    return Text()


@handles("builtins.bool", "builtins.callable", "builtins.all", "builtins.any", "builtins.issubclass")
def _bool(m: Machine, name: str, call: Call) -> Value:
    if name == "builtins.bool" and call.args:
        known = truth(m, call.args[0])
        if known != MAYBE:
            return const(known == YES)
        return Number("bool", number_of(m, call.node, "bool()", call.args[0]).cuts)
    if name == "builtins.callable" and call.args:
        kind = type(call.args[0])
        if kind in (Function, Bound, Class, Partial, Method):
            return const(True)
        if kind in (Const, Number, Text, Tuple) or m.tensor(call.args[0]) is not None:
            return const(False)
    return Number("bool")


@handles("builtins.float", "builtins.int", "builtins.complex")
def _number(m: Machine, name: str, call: Call) -> Value:
    kind = name.rpartition(".")[2]
    if not call.args:
        return const(0 if kind == "int" else 0.0)
    value = call.args[0]
    if type(value) is Const and value.kind in ("int", "float", "bool"):
        return const(int(value.value) if kind == "int" else float(value.value))
    if type(value) is Const and value.kind == "str":
        return Number("float")
    return Number(kind, number_of(m, call.node, f"{kind}()", value).cuts)


@handles("builtins.range")
def _range(m: Machine, name: str, call: Call) -> Value:
    if call.args and all(type(arg) is Const and isinstance(arg.value, int) for arg in call.args):
        try:
            known = range(*(arg.value for arg in call.args))
        except (TypeError, ValueError):
            return Unknown("a range that raises")
        if not known:
            return m.new(call.node, Sequence("range", ()))
        element = Number("int") if len(known) > 1 else const(known[0])
        values = tuple(const(number) for number in known) if len(known) <= MOST_ITEMS else ()
        return m.new(call.node, Range(element, nonempty=True, values=values))
    return m.new(call.node, Range(Number("int")))


@handles("builtins.enumerate")
def _enumerate(m: Machine, name: str, call: Call) -> Value:
    source = call.args[0] if call.args else Unknown()
    items = items_of(m, source)
    members = _is_members(m, source) or (bool(items) and are_parameters(m, items or ()))
    if items is not None and len(items) <= (MOST_MEMBERS if members else MOST_ITEMS):
        some = any(open_modules.stands_for_many(m, item) for item in items)
        pairs = tuple(Tuple((Number("int") if some else const(at), item)) for at, item in enumerate(items))
        kind = "members" if members else "list"
        return m.new(call.node, Sequence(kind, pairs))
    pair = Tuple((Number("int"), element_of(m, source, call.node)))
    return m.new(call.node, as_many(m, source, "generator", pair))


def _is_members(m: Machine, value: Value) -> bool:
    content = m.cells.get(getattr(value, "address", -1))
    return type(content) is Sequence and content.kind == "members"


@handles("builtins.zip")
def _zip(m: Machine, name: str, call: Call) -> Value:
    columns = [items_of(m, value) for value in call.args]
    if columns and call.star is None and all(c is not None and len(c) <= MOST_ITEMS for c in columns):
        rows = tuple(Tuple(tuple(row)) for row in zip(*(c for c in columns if c is not None), strict=False))
        members = all(_is_members(m, value) for value in call.args)
        return m.new(call.node, Sequence("members" if members else "list", rows))
    kind = "members" if call.args and all(_is_members(m, value) for value in call.args) else "generator"
    if kind == "members":
        rows = tuple(Tuple(tuple(row)) for row in zip(*(c for c in columns if c is not None), strict=False))
        return m.new(call.node, Sequence(kind, rows))
    if type(call.star) is Tuple and not call.args:
        columns_of = tuple(
            m.new(call.node, Sequence("tuple", None, item, nonempty=True), f"column {at}")
            for at, item in enumerate(call.star.items)
        )
        return m.new(call.node, Sequence("list", columns_of))
    if call.star is not None and not call.args:
        element = element_of(m, call.star, call.node)
        return m.new(
            call.node,
            Sequence("generator", None, m.new(call.node, Sequence("tuple", None, element), "column")),
        )
    pair = Tuple(tuple(element_of(m, value, call.node) for value in call.args))
    thinned = [value for value in call.args if is_thinned(m, value)]
    return m.new(call.node, as_many(m, thinned[0] if thinned else NONE, "generator", pair))


@handles(
    "builtins.list", "builtins.tuple", "builtins.set", "builtins.frozenset", "builtins.iter", "builtins.reversed",
    "builtins.sorted", "collections.deque", "itertools.chain", "itertools.cycle", "itertools.islice", "tqdm.tqdm",
    "tqdm.auto.tqdm", "tqdm.notebook.tqdm", "tqdm.trange", "itertools.repeat", "rich.progress.track",
    "itertools.chain.from_iterable", "builtins.aiter",
)  # fmt: skip
def _container(m: Machine, name: str, call: Call) -> Value:
    kind = name.rpartition(".")[2]
    kind = kind if kind in ("list", "set", "deque", "tuple") else "list"
    if not call.args:
        return Tuple(()) if kind == "tuple" else m.new(call.node, Sequence(kind))
    if name == "tqdm.trange":
        return m.new(call.node, Range(Number("int")))
    if name == "itertools.chain" and len(call.args) > 1:
        parts = [items_of(m, value) for value in call.args]
        if all(part is not None for part in parts):
            joined = tuple(item for part in parts if part is not None for item in part)
            return m.new(call.node, Sequence("members" if _is_members(m, call.args[0]) else "list", joined))
        either = join_all([element_of(m, value, call.node) for value in call.args])
        return m.new(call.node, Sequence("generator", None, either, nonempty=True))
    source = call.args[0]
    if name == "itertools.repeat":
        return m.new(call.node, Sequence("generator", None, source, nonempty=True))
    if name == "builtins.sorted":
        _ask_key(m, source, call)
    content = m.cells.get(getattr(source, "address", -1))
    own = method_of(m, source, "__iter__")
    if name == "builtins.iter" and own is not None:
        return call_value(m, own, call)
    if name == "builtins.iter" and not _is_members(m, source) and items_of(m, source) is not None:
        taken = type(content) is Sequence and content.kind == "generator"
        return source if taken else m.new(call.node, Sequence("generator", items_of(m, source)))
    if name.startswith(("tqdm.", "builtins.iter", "rich.", "itertools.cycle", "itertools.islice")) and type(
        content
    ) in (
        Range,
        Instance,
        Sequence,
        Opaque,
        Layer,
        Data,
    ):
        return source
    items = items_of(m, source)
    if items is not None:
        if kind == "tuple":
            return Tuple(items)
        if name == "builtins.reversed":
            items = items[::-1]
        kind = "members" if type(content) is Sequence and content.kind == "members" else kind
        if name == "builtins.sorted" and len(items) > 1:
            return m.new(call.node, Sequence("list", tuple(join_all(list(items)) for _ in items)))
        most = call.argument(1, "maxlen") if kind == "deque" else None
        if type(most) is Const and type(most.value) is int:
            kept = items[max(len(items) - most.value, 0) :]
            return m.new(call.node, Sequence(kind, kept, most=most.value))
        if most is not None and most != NONE:
            return m.new(call.node, Sequence(kind, None, join_all(list(items))))
        return m.new(call.node, Sequence(kind, items))
    return m.new(call.node, as_many(m, source, kind, element_of(m, source, call.node)))


@handles(
    "builtins.dict",
    "collections.OrderedDict",
    "collections.Counter",
    "types.SimpleNamespace",
    "argparse.Namespace",
)
def _dict(m: Machine, name: str, call: Call) -> Value:
    if name in ("types.SimpleNamespace", "argparse.Namespace"):
        ref = m.unknown(call.node, "a namespace", ())
        for word, value in call.keywords.items():
            if type(ref) is Ref:
                m.write_cell(ref, word, value)
        return ref
    content = Dict()
    if call.args:
        source = m.cells.get(getattr(call.args[0], "address", -1))
        if type(source) is Dict:
            content = source._replace(kind="dict")
        else:
            items = items_of(m, call.args[0])
            pairs = [
                i
                for i in items or ()
                if type(i) is Tuple and len(i.items) == PAIR and type(i.items[0]) is Const
            ]
            if items is not None and len(pairs) == len(items):
                for pair in pairs:
                    content = content.put(pair.items[0], pair.items[1])
            else:
                element = element_of(m, call.args[0], call.node)
                rest = element.items[1] if type(element) is Tuple and len(element.items) == 2 else Unknown()  # noqa: PLR2004
                content = Dict((), rest, Text())
    for word, value in call.keywords.items():
        content = content.put(const(word), value)
    if call.stars is not None:
        rest = call.stars if content.rest is None else join(content.rest, call.stars)
        content = content._replace(rest=rest, keys=content.keys or Text())
    return m.new(call.node, content)


@handles("collections.defaultdict")
def _defaultdict(m: Machine, name: str, call: Call) -> Value:
    ref = m.new(call.node, Dict(kind="defaultdict"))
    if call.args:
        m.write_cell(ref, "default_factory", call.args[0])
    return ref


@handles("builtins.sum", "math.fsum")
def _sum(m: Machine, name: str, call: Call) -> Value:
    if not call.args:
        return NONE
    start = call.argument(1, "start") or const(0)
    several = type(call.args[0]) is Union and m.tensor(call.args[0]) is None
    if several and not _of_one_making(element_of(m, call.args[0], call.node)):
        sums = []
        for number, atom in enumerate(call.args[0].atoms):
            with m.numbered(call.node, number):
                sums.append(_sum(m, name, call._replace(args=(atom, *call.args[1:]))))
        return join_all(sums)
    items = items_of(m, call.args[0])
    total = start
    if not several and items is not None and len(items) <= MOST_ITEMS:
        for number, item in enumerate(items):
            with m.numbered(call.node, number):
                total = binary(m, call.node, ast.Add(), total, item)
        return total
    element = element_of(m, call.args[0], call.node)
    grown = _of_one_making(element)
    once = binary(m, call.node, ast.Add(), start, grown[0] if grown else element)
    for number, other in enumerate(grown[1:], 1):
        with m.numbered(call.node, number):
            once = binary(m, call.node, ast.Add(), once, other)
    if is_thinned(m, call.args[0]):
        return join(start, once)  # of nothing it is what it began with
    if m.tensor(once) is not None:
        return once
    with m.numbered(call.node, 1):
        return binary(m, call.node, ast.Add(), once, element)


def _of_one_making(element: Value) -> tuple[Value, ...]:
    """What a loop has put into a list in this iteration and in those before: the sum holds all of it."""
    atoms = element.atoms if type(element) is Union else ()
    same = {atom.address & ~1 if type(atom) is Ref else None for atom in atoms}
    return atoms if len(same) == 1 and None not in same else ()


_OPERATORS = {
    "add": ast.Add, "sub": ast.Sub, "mul": ast.Mult, "truediv": ast.Div, "floordiv": ast.FloorDiv, "mod": ast.Mod,
    "pow": ast.Pow, "matmul": ast.MatMult, "and_": ast.BitAnd, "or_": ast.BitOr, "xor": ast.BitXor,
}  # fmt: skip


@handles(*(f"operator.{name}" for name in _OPERATORS))
def _operator(m: Machine, name: str, call: Call) -> Value:
    """An operator as a function."""
    if len(call.args) != PAIR:
        return unknown_call(m, call, "the result of an operator")
    return binary(m, call.node, _OPERATORS[name.removeprefix("operator.")](), *call.args)


def _ask_key(m: Machine, source: Value, call: Call) -> None:
    """`key=` of `sorted`, `min` and `max` is asked about each element."""
    key = call.keywords.get("key")
    if key is not None and key != NONE:
        element = element_of(m, source, call.node)
        m.for_all(call.node, lambda: (True, call_value(m, key, Call(call.node, (element,)))))


@handles("builtins.max", "builtins.min")
def _largest(m: Machine, name: str, call: Call) -> Value:
    values = list(call.args)
    if len(values) == 1:
        _ask_key(m, values[0], call)
        values = [element_of(m, values[0], call.node)]
    return join_all(values) if values else Number()


@handles("builtins.abs", "builtins.round", "builtins.pow", "builtins.divmod")
def _arithmetic(m: Machine, name: str, call: Call) -> Value:
    if not call.args:
        return NONE
    short = name.rpartition(".")[2]
    if m.tensor(call.args[0]) is not None:
        return call_value(m, External(f"torch.{short}"), call)
    own = method_of(m, call.args[0], f"__{short}__")
    if own is not None:
        return call_value(m, own, call)
    return Number("number", number_of(m, call.node, name, call.args[0]).cuts)


@handles("collections.namedtuple")
def _namedtuple(m: Machine, name: str, call: Call) -> Value:
    names = call.argument(1, "field_names")
    if type(names) is Const and names.kind == "str":
        fields = names.value.replace(",", " ").split()
    else:
        items = items_of(m, names) if names is not None else None
        if items is None or not all(type(item) is Const for item in items):
            return unknown_call(m, call, "a named tuple class")
        fields = [str(item.value) for item in items]
    return Partial(External("gradvet.namedtuple"), (Tuple(tuple(const(field) for field in fields)),), ())


@handles("gradvet.namedtuple")
def _make_namedtuple(m: Machine, name: str, call: Call) -> Value:
    fields = tuple(str(item.value) for item in call.args[0].items)
    given = call.without_first()
    items = tuple(given.argument(at, field) for at, field in enumerate(fields))
    return Tuple(tuple(item if item is not None else Unknown("a missing field") for item in items), fields)


@handles("builtins.next")
def _next(m: Machine, name: str, call: Call) -> Value:
    if call.args and type(call.args[0]) is Ref:
        begin(m, call.args[0])
    waits = m.cells.get((getattr(call.args[0], "address", -1), "#mode")) if call.args else None
    if type(waits) is Mode:
        m.store.set(MODE, waits.after(m.mode))  # until it goes on, or is thrown away
    return _following(m, call) if call.args else Unknown()


def _following(m: Machine, call: Call) -> Value:
    """What an iterator gives next: the first of what is left in it, when that is known one by one."""
    source = call.args[0]
    content = m.cells.get(getattr(source, "address", -1))
    items = items_of(m, source)
    if type(content) is not Sequence or content.kind != "generator" or items is None:
        return element_of(m, source, call.node)
    if not items:
        return call.args[1] if len(call.args) > 1 else Unknown("an element of nothing")
    if source.address & 1 or not all(source.address in loop.allocs for loop in m.loops):
        return element_of(m, source, call.node)  # who knows how many were taken in other rounds
    m.store.set(source.address, content._replace(items=items[1:]))
    return items[0]


@handles("builtins.map")
def _map(m: Machine, name: str, call: Call) -> Value:
    if len(call.args) < 2:  # noqa: PLR2004
        return Unknown()
    if call.node in m.put_off:
        return waiting(m, call.node, External(name), call)
    function, sources = call.args[0], call.args[1:]
    items = items_of(m, sources[0]) if len(sources) == 1 else None
    if items is not None and len(items) <= MOST_ITEMS:
        made = []
        for number, item in enumerate(items):
            with m.numbered(call.node, number):
                made.append(call_value(m, function, Call(call.node, (item,))))
        return m.new(call.node, Sequence("list", tuple(made)))
    elements = tuple(element_of(m, source, call.node) for source in sources)
    _, value = m.for_all(call.node, lambda: (True, call_value(m, function, Call(call.node, elements))))
    return m.new(call.node, Sequence("list", None, value, nonempty=True))


@handles("builtins.filter")
def _filter(m: Machine, name: str, call: Call) -> Value:
    if len(call.args) < 2:  # noqa: PLR2004
        return Unknown()
    items = items_of(m, call.args[1])
    if items is not None:
        kept = []
        for number, item in enumerate(items):
            with m.numbered(call.node, number):
                if (
                    call.args[0] == NONE
                    or truth(m, call_value(m, call.args[0], Call(call.node, (item,)))) != NO
                ):
                    kept.append(item)
        kind = "members" if _is_members(m, call.args[1]) else "list"
        made = m.new(call.node, Sequence(kind, tuple(kept)))
        if m.judge is not None:
            m.judge.protocol.generator(made)
        return made
    return m.new(call.node, Sequence("list", None, element_of(m, call.args[1], call.node)))


@handles("builtins.isinstance")
def _isinstance(m: Machine, name: str, call: Call) -> Value:
    if len(call.args) < 2:  # noqa: PLR2004
        return Number("bool")
    classes = call.args[1].items if type(call.args[1]) is Tuple else (call.args[1],)
    known = 0
    for atom in m.alternatives(call.args[0]):
        known |= is_instance(m, atom, classes)
    return const(known == YES) if known in (YES, NO) else Number("bool")


@handles("builtins.hasattr")
def _hasattr(m: Machine, name: str, call: Call) -> Value:
    if len(call.args) == 2 and type(call.args[1]) is Const and type(call.args[0]) is Ref:  # noqa: PLR2004
        content = m.cells.get(call.args[0].address)
        word = call.args[1].value
        if type(content) is Instance and (
            (call.args[0].address, word) in m.cells or find_in_class(m, content.owner, word) is not None
        ):
            return const(True)
    return Number("bool")


@handles("builtins.getattr")
def _getattr(m: Machine, name: str, call: Call) -> Value:
    if len(call.args) > 1 and is_plain(call.args[1]):
        return get_attribute(m, call.args[0], str(call.args[1].value), call.node)
    words = m.alternatives(call.args[1]) if len(call.args) > 1 else ()
    if type(call.args[0]) is Ref and words and all(map(is_plain, words)):
        # Of several attributes it is any one; those that would have to be run are not gone through.
        held = [m.cells.get((call.args[0].address, str(word.value))) for word in words]
        if all(value is not None for value in held):
            return join_all(held)
    return unknown_call(m, call, "an attribute whose name is not known")


@handles("builtins.setattr")
def _setattr(m: Machine, name: str, call: Call) -> Value:
    if len(call.args) < 3:  # noqa: PLR2004
        return NONE
    holder, word, new = call.args[:3]
    if is_plain(word):
        set_attribute(m, holder, str(word.value), new, call.node)
    elif type(holder) is Ref:
        # Any of these attributes may be the one that is set.
        known = {str(atom.value) for atom in m.alternatives(word) if is_plain(atom)}
        for attribute in known or set(m.attributes.get(holder.address & ~1, ())):
            if (holder.address, attribute) in m.cells:
                m.write_cell(holder, attribute, new, certain=False)
        if not known and layers.is_module(m, holder):
            m.write_cell(holder, layers.UNNAMED, new, certain=False)
    return NONE


@handles("builtins.super")
def _super(m: Machine, name: str, call: Call) -> Value:
    frame = m.frames[-1]
    for outer in reversed(m.frames):
        if outer.owner and outer.receiver is not None:
            frame = outer
            break
    if frame.receiver is None:
        return Unknown("super() outside a method")
    return Super(frame.owner, frame.receiver)


@handles("builtins.type")
def _type(m: Machine, name: str, call: Call) -> Value:
    content = m.cells.get(getattr(call.args[0], "address", -1)) if call.args else None
    if type(content) is Instance:
        return Class(content.owner)
    if type(content) is Layer and content.name:
        return External(content.name)
    if type(content) is Tensor:
        return External("torch.nn.Parameter" if content.parameter == YES else "torch.Tensor")
    return Unknown("a type")


@handles(
    "operator.itemgetter",
    "operator.attrgetter",
    "builtins.slice",
    "builtins.object",
    "builtins.vars",
    "builtins.open",
)
def _unknown(m: Machine, name: str, call: Call) -> Value:
    return unknown_call(m, call, f"the result of `{name.rpartition('.')[2]}`")


@handles("dataclasses.field")
def _field(m: Machine, name: str, call: Call) -> Value:
    """A field with a default that each instance makes for itself."""
    factory = call.keywords.get("default_factory")
    if factory is not None:
        return Partial(External(FIELD), (factory,), ())
    return call.keywords.get("default", Unknown("a field"))


@handles("dataclasses.asdict")
def _asdict(m: Machine, name: str, call: Call) -> Value:
    source = call.args[0] if call.args else NONE
    content = m.cells.get(getattr(source, "address", -1))
    if type(content) is not Instance or type(source) is not Ref:
        return unknown_call(m, call, "a dict of fields")
    held = ((field, m.cells.get((source.address, field))) for field in m.classes[content.owner].fields)
    return m.new(call.node, Dict(tuple((const(field), value) for field, value in held if value is not None)))


@handles("dataclasses.replace")
def _replace(m: Machine, name: str, call: Call) -> Value:
    source = call.args[0] if call.args else NONE
    content = m.cells.get(getattr(source, "address", -1))
    if type(content) is not Instance or type(source) is not Ref:
        return source
    kept = {field: m.cells.get((source.address, field)) for field in m.classes[content.owner].fields}
    given = {field: value for field, value in kept.items() if value is not None} | call.keywords
    return call_value(m, Class(content.owner), Call(call.node, (), given))


@handles("dataclasses.dataclass")
def _dataclass(m: Machine, name: str, call: Call) -> Value:
    return call.args[0] if call.args else External("gradvet.identity")


@handles("functools.reduce")
def _reduce(m: Machine, name: str, call: Call) -> Value:
    if len(call.args) < 2:  # noqa: PLR2004
        return Unknown()
    function, over = call.args[:2]
    start = call.args[2:3]
    items = items_of(m, over)
    if items is not None and 0 < len(items) + len(start) <= MOST_ITEMS:
        value, *rest = (*start, *items)
        for number, item in enumerate(rest):
            with m.numbered(call.node, number):
                value = call_value(m, function, Call(call.node, (value, item)))
        return value
    element = element_of(m, over, call.node)
    value = first = start[0] if start else element
    for number in range(PASSES):
        with m.numbered(call.node, number):
            value = join(first, call_value(m, function, Call(call.node, (value, element))))
    return value


@handles("time.time", "time.perf_counter", "os.environ.get", "time.monotonic")
def _plain(m: Machine, name: str, call: Call) -> Value:
    return Number("float") if name.startswith("time.") else Text()


@handles("asyncio.run", "asyncio.create_task", "asyncio.ensure_future", "asyncio.wait_for", "asyncio.shield")
def _run_coroutine(m: Machine, name: str, call: Call) -> Value:
    value = call.args[0] if call.args else Unknown()
    return value.value if type(value) is Coroutine and name == "asyncio.run" else value


@handles("contextlib.ExitStack", "contextlib.AsyncExitStack")
def _exit_stack(m: Machine, name: str, call: Call) -> Value:
    return Stack(call.node)


@handles("asyncio.gather")
def _gather(m: Machine, name: str, call: Call) -> Value:
    return Coroutine(Tuple(tuple(v.value if type(v) is Coroutine else v for v in call.args)))


@handles("asyncio.to_thread")
def _to_thread(m: Machine, name: str, call: Call) -> Value:
    if not call.args:
        return unknown_call(m, call, "the result of a thread")
    return Coroutine(escapes.in_thread(m, call.args[0], call.without_first()))
