"""Methods of values that the interpreter knows: containers, strings, arrays, optimizers, unknown objects."""

import ast
from collections.abc import Callable
from typing import Any

from gradvet.autograd.backward_pass import backward, backward_event
from gradvet.autograd.held import held_tensors
from gradvet.autograd.knowledge.frameworks import TRANSFORM
from gradvet.autograd.knowledge.lookup import load
from gradvet.autograd.library import (
    arrays,
    custom_functions,
    evidence,
    forgotten,
    hooks,
    layers,
    made_tensors,
    module_calls,
    module_methods,
    open_modules,
    optimizers,
    tensor_methods,
    tensors,
    workers,
)
from gradvet.autograd.library.distributions import call_distribution, samples
from gradvet.autograd.library.results import tensor_like
from gradvet.autograd.library.tensor_methods import MethodCall
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import FLOAT, YES, Alias, Tensor
from gradvet.autograd.memory.values import (
    FALSE,
    NESTED,
    NONE,
    PARSER,
    SETTING,
    TRUE,
    Array,
    Bound,
    Class,
    Const,
    Dict,
    Distribution,
    Each,
    External,
    Instance,
    Layer,
    Method,
    Mode,
    Number,
    Opaque,
    Optimizer,
    Pool,
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
    join_all,
    join_cells,
)
from gradvet.autograd.python import contexts
from gradvet.autograd.python.calls import (
    CALL_METHOD,
    CALL_OBJECT,
    CALLED,
    MAKE_BASE,
    Call,
    begin,
    call_value,
    find_in_class,
    make_base,
    unknown_call,
)
from gradvet.autograd.python.objects import (
    CONTENT,
    child,
    default_item,
    element_of,
    set_item,
    take_any,
    view_of_dict,
)
from gradvet.autograd.python.operators import LONGEST_TEXT, binary, extend, grow
from gradvet.autograd.unknowns import opaque_inputs, unknown_cut


def call_method(m: Machine, method: Method, call: Call) -> Value:
    """Call a method that the interpreter knows by name."""
    receiver, name = method.receiver, method.name
    if m.judge is not None and getattr(call.node, "func", None) is not method.node:
        m.judge.calls.was_called(method.node)
    if m.tensor(receiver) is not None:
        state = m.tensor(receiver)
        if state is not None and state.loose and name in ("values", "items", "keys", "to_tuple", "get"):
            return _loose_parts(m, receiver, state, name, call)
        return tensor_methods.call_method(m, receiver, _method_call(name, call))
    kind = type(receiver)
    if kind is Ref:
        begin(m, receiver)
        content = m.cells.get(receiver.address)
        handler = _BY_CONTENT.get(type(content))
        if handler is not None:
            return handler(m, receiver, content, name, call)
    elif kind is Class and name == "apply" and custom_functions.is_custom_function(m, receiver):
        return custom_functions.apply(m, receiver, call)
    elif kind is Super:
        return _super_method(m, receiver, name, call)
    elif kind is Mode and name in ("__enter__", "__exit__"):
        return contexts.enter_or_exit(m, receiver, name)
    elif kind is Stack:
        entered = contexts.stack_method(m, name, call)
        if entered is not None:
            return entered
    elif kind is Union and name == "backward":
        return _backward_of_unknown(m, receiver, call)
    elif kind is Union or kind is Each:
        return _each(m, receiver, name, method.node, call)
    elif kind in (Text, Const):
        return _text_method(m, receiver, name, call)
    elif kind is Tuple:
        return _tuple_method(m, receiver, name, call)
    elif kind is Number:
        if name == "backward":
            m.emit(backward_event(m, call.node, Tensor(cuts=receiver.cuts), "backward()"))
        return Number(receiver.kind, receiver.cuts)
    return unknown_call(m, call, f"the result of `{name}`")


GRAPH_OPTIONS = ("retain_graph", "create_graph")


def _method_call(name: str, call: Call) -> MethodCall:
    args = call.args if call.star is None else (*call.args, call.star)
    if name == "backward":
        call = call.with_options(*GRAPH_OPTIONS)
    return MethodCall(call.node, name, args, call.keywords)


def _loose_parts(m: Machine, receiver: Value, state: Tensor, name: str, call: Call) -> Value:
    part = tensors.part_of_loose(m, receiver, state, name, call.node)
    if name == "get":
        return part
    element = {"values": part, "items": Tuple((Text(), part)), "keys": Text(), "to_tuple": part}[name]
    return m.new(call.node, Sequence("list", None, element, nonempty=True))


def _each(m: Machine, receiver: Value, name: str, node: ast.AST, call: Call) -> Value:
    """A method of one of several objects: run it for each kind, joined."""
    parts = receiver.atoms if type(receiver) is Union else receiver.refs
    found = []
    able = [atom for atom in parts if type(atom) not in (Const, Number)]
    for number, atom in enumerate(parts):
        if type(atom) in (Const, Number) and name != "item":
            continue
        before = m.cells.get(getattr(atom, "address", -1))
        with m.numbered(call.node, number), m.one_of(able if type(receiver) is Union else ()):
            found.append(call_method(m, Method(atom, name, node), call))
        if len(able) > 1 and type(receiver) is Union and type(before) in (Sequence, Dict):
            m.store.set(atom.address, join_cells(before, m.cells[atom.address]))
    return join_all(found) if found else unknown_call(m, call, f"the result of `{name}`")


def _backward_of_unknown(m: Machine, receiver: Value, call: Call) -> Value:
    """`loss.backward()` of whatever that is; or `engine.backward(loss)`, once, whichever engine it is."""
    given = call.with_options(*GRAPH_OPTIONS).keywords
    root, options = receiver, {word: given.get(f"{word}_graph") for word in ("retain", "create")}
    if call.args and call.args[0] != NONE:
        holders = m.alternatives(receiver)
        if any(evidence.handed_to_backward(m, atom, call.args[0]) for atom in holders):
            root = call.args[0]  # accelerator.backward(loss), fabric.backward(loss)
        elif not any(evidence.may_be_loss(m, atom) or m.tensor(atom) is not None for atom in holders):
            return unknown_call(
                m, call, "the result of `backward`"
            )  # of an engine, or of a loss that is an argument
    backward(m, call.node, root, **options, how="backward()")
    return NONE


def _backward_by_name(m: Machine, name: str, call: Call) -> None:
    """`manual_backward(loss)` and the like: the backward of what it is given first."""
    retain = call.with_options("retain_graph").keywords.get("retain_graph")
    backward(m, call.node, call.args[0], retain=retain, create=None, how=f"{name}()")


def _tuple_method(m: Machine, receiver: Tuple, name: str, call: Call) -> Value:
    """A method of a tuple: those of a named one give its fields."""
    fields = receiver.fields
    if name == "_replace" and fields:
        changed = zip(fields, receiver.items, strict=False)
        return receiver._replace(items=tuple(call.keywords.get(field, item) for field, item in changed))
    if name == "_asdict" and fields:
        pairs = zip(map(const, fields), receiver.items, strict=False)
        return m.new(call.node, Dict(tuple(pairs), nonempty=True))
    if name in ("index", "count"):
        return Number("int")
    return unknown_call(m, call, f"the result of `{name}`")


def _super_method(m: Machine, receiver: Super, name: str, call: Call) -> Value:
    target = receiver.receiver
    content = m.cells.get(getattr(target, "address", -1))
    if type(content) is Instance:
        if name == "__init__":
            make_base(m, target, content.owner, call)
            return NONE
        if name == "__setattr__" and len(call.args) > 1 and type(call.args[0]) is Const:
            m.write_cell(target, call.args[0].value, call.args[1])
            return NONE
        if m.classes[content.owner].is_module:
            if name == "forward":
                return module_calls.base_forward(m, target, call)
            if name == "__call__":
                return _call_module(m, target, content, call)
            if name == "reset_parameters":
                return NONE
            return module_methods.call_module_method(m, Method(target, name, call.node), call)
    return unknown_call(m, call, f"the result of `{name}` of a base class")


# -- lists, sets, deques, generators


def _sequence(m: Machine, ref: Ref, content: Sequence, name: str, call: Call) -> Value:
    args = call.args
    match name:
        case "append" | "add" | "appendleft":
            if args:
                grow(m, ref, [args[0]], call.node, front=name == "appendleft")
            return NONE
        case "insert":
            if len(args) > 1:
                _insert(m, ref, content, args[0], args[1], call)
            return NONE
        case "extend" | "update" | "extendleft":
            if args:
                extend(m, ref, args[0], call.node)
            return NONE
        case "pop" | "popleft":
            m.hooks.took(ref, in_backward=m.hooks.firing)
            return _pop(m, ref, content, name, args, call)
        case "clear":
            m.hooks.took(ref, in_backward=False)
            m.update(ref, lambda c: Sequence(c.kind) if type(c) is Sequence else c)
            if m.judge is not None:
                m.judge.retention.emptied(ref)
            return NONE
        case "copy":
            return m.new(call.node, content)
        case "union" | "intersection" | "difference" | "symmetric_difference" if content.kind != "generator":
            return _with_sets(m, ref, name, call)
        case "sort" | "reverse":
            m.update(ref, lambda c: ordered_anew(c, name) if type(c) is Sequence else c)
            return NONE
        case "remove" | "discard" | "close":
            take_any(m, ref)
            return NONE
        case "index" | "count" | "__len__":
            return Number("int")
        case "__next__" | "send" | "throw":
            given = element_of(m, ref, call.node)
            if content.kind == "generator":  # what comes next is not known from here on
                m.update(ref, lambda c: Sequence(c.kind, None, c.element) if type(c) is Sequence else c)
            return given
        case "split":
            return m.new(call.node, Sequence("list", None, Text()))
    return unknown_call(m, call, f"the result of `{name}`")


_SETS = {
    "union": ast.BitOr(), "intersection": ast.BitAnd(), "difference": ast.Sub(), "symmetric_difference": ast.BitXor(),
}  # fmt: skip


def _with_sets(m: Machine, ref: Ref, name: str, call: Call) -> Value:
    """`a.union(b, c)` and the like."""
    made: Value = ref
    for number, other in enumerate(call.args):
        with m.numbered(call.node, number):
            made = binary(m, call.node, _SETS[name], made, other)
    return made if call.args else m.new(call.node, m.cells[ref.address])


def ordered_anew(content: Sequence, how: str) -> Sequence:
    """The same elements backwards, or sorted: then each may be at any place."""
    if content.items is None:
        return content
    if how == "reverse" and content.rest is None:
        return content._replace(items=content.items[::-1])
    rest = None if content.rest is None else content.element
    return content._replace(items=tuple(content.element for _ in content.items), rest=rest)


def _insert(m: Machine, ref: Ref, content: Sequence, at: Value, new: Value, call: Call) -> None:
    items = content.items
    if type(at) is Const and at.kind == "int" and items is not None and content.rest is None and at.value:
        here = all(ref.address in loop.allocs for loop in m.loops) and not ref.address & 1
        if here and content.most is None:
            m.store.set(ref.address, content._replace(items=(*items[: at.value], new, *items[at.value :])))
            return
    grow(m, ref, [new], call.node, known=at == const(0), front=True)


def _pop(m: Machine, ref: Ref, content: Sequence, name: str, args: tuple[Value, ...], call: Call) -> Value:
    items = content.items
    if (
        items
        and content.rest is None
        and not ref.address & 1
        and all(ref.address in loop.allocs for loop in m.loops)
    ):
        at = 0 if name == "popleft" else args[0].value if args and type(args[0]) is Const else -1
        if isinstance(at, int) and -len(items) <= at < len(items):
            at %= len(items)
            m.store.set(ref.address, content._replace(items=(*items[:at], *items[at + 1 :]), thinned=True))
            return items[at]
    if content.element is not None:
        take_any(m, ref)
    element = content.element
    return element if element is not None else Unknown("an element of an empty list")


# -- dicts


def _dict(m: Machine, ref: Ref, content: Dict, name: str, call: Call) -> Value:
    args = call.args
    match name:
        case "get" | "pop" | "setdefault":
            return _dict_get(m, ref, content, name, call)
        case "items" | "values":
            return m.new(call.node, view_of_dict(content, name)._replace(of=ref))
        case "keys":
            if content.rest is None:
                return m.new(call.node, Sequence("list", tuple(key for key, _ in content.items)))
            return m.new(call.node, Sequence("list", None, content.keys or Text()))
        case "update":
            for value in args:
                other = m.cells.get(getattr(value, "address", -1))
                if type(other) is Dict:
                    for key, item in other.items:
                        set_item(m, ref, key, item, call.node)
                    if other.rest is not None:
                        set_item(m, ref, other.keys or Text(), other.rest, call.node)
                else:
                    set_item(m, ref, Text(), Unknown("a value of a mapping that is not known"), call.node)
            for word, item in call.keywords.items():
                set_item(m, ref, const(word), item, call.node)
            return NONE
        case "copy":
            return m.new(call.node, content)
        case "clear":
            m.update(ref, lambda c: Dict(kind=c.kind) if type(c) is Dict else c)
            if m.judge is not None:
                m.judge.retention.emptied(ref)
            return NONE
        case "popitem":
            m.update(ref, lambda c: c.without() if type(c) is Dict else c)
            return Tuple((Text(), content.element if content.element is not None else Unknown()))
    return unknown_call(m, call, f"the result of `{name}`")


def _dict_get(m: Machine, ref: Ref, content: Dict, name: str, call: Call) -> Value:
    key = call.args[0] if call.args else NONE
    given = call.args[1] if len(call.args) > 1 else None
    found = content.get(key) if type(key) is Const else content.element
    if found is not None and type(key) is Const:
        if name == "pop":
            m.update(ref, lambda c: c.without(key))
        return found
    if name == "pop":
        m.update(ref, lambda c: c.without() if type(c) is Dict else c)
    fallback = given if given is not None else default_item(m, ref, content, call.node) or NONE
    if name == "setdefault":
        possible = [v for v in (found, content.rest, fallback) if v is not None]
        set_item(m, ref, key, join_all(possible), call.node)
        kept = m.cells.get(ref.address)
        inside = (
            kept.get(key) if type(kept) is Dict and type(key) is Const else getattr(kept, "element", None)
        )
        return inside if inside is not None else fallback
    possible = [v for v in (found, content.rest, fallback) if v is not None]
    return join_all(possible) if possible else NONE


# -- unknown objects: what is done to them tells what they are


_MODULE_EVIDENCE = {
    "parameters",
    "named_parameters",
    "modules",
    "named_modules",
    "state_dict",
    "load_state_dict",
    "zero_grad",
}
_TENSOR_EVIDENCE = {
    "detach", "requires_grad_", "numpy", "item", "argmax", "softmax", "log_softmax", "backward", "detach_",
    "new_tensor", "unsqueeze", "squeeze", "view", "permute", "contiguous", "sigmoid", "clone",
}  # fmt: skip


def _opaque(m: Machine, ref: Ref, content: Opaque, name: str, call: Call) -> Value:
    if m.judge is not None:
        m.judge.protocol.method(ref, content, name, call)
    hooked = name in hooks.OF_MODULES and bool(call.args)
    if (
        hooked
        or name in _MODULE_EVIDENCE
        or (name in ("train", "eval") and not call.keywords and len(call.args) <= (name == "train"))
    ):
        steps = m.judge is not None and ref.address in m.judge.protocol.optimizers
        one = m.judge is not None and not m.judge.protocol.alternatives
        runs = one and ref.address & ~1 in m.ran  # an optimizer is not called
        if name == "zero_grad" and one:
            m.cleared.add(ref.address & ~1)
        if (name == "zero_grad" and not runs) or (steps and name.endswith("state_dict")):
            return m.unknown(call.node, f"the result of `{name}`", (ref, *call.all_values()), "call")
        if _is_item_of_loader(content):
            return unknown_call(m, call, f"the result of `{name}`")
        func = call.node.func if isinstance(call.node, ast.Call) else call.node
        layers.as_module(m, ref, content, layers.words_of(func), call.node)
        return module_methods.call_module_method(m, Method(ref, name, call.node), call)
    if content.reason == PARSER and name in ("parse_args", "parse_known_args"):
        settings = m.unknown(call.node, SETTING, (), "call")
        return (
            settings
            if name == "parse_args"
            else Tuple((settings, Unknown("what is left of the command line")))
        )
    if name == "remove" and ref.address & ~1 in m.hooks.handles:
        hooks.removed(m, ref)
        return NONE
    if name == "save_for_backward":
        if m.judge is not None:
            m.judge.functions.saved(call.node, call.args)
        m.write_cell(ref, "saved_tensors", Tuple(call.args))
        return NONE
    if name in custom_functions.MARKS:
        m.write_cell(ref, custom_functions.MARKS[name], Tuple(call.args))
        return NONE
    if name == "set_materialize_grads" and call.args == (FALSE,):
        m.write_cell(ref, custom_functions.UNMATERIALIZED, TRUE)
        return NONE
    if name == "backward":
        return _backward_of_unknown(m, ref, call)
    if evidence.runs_backward(m, name, call):
        _backward_by_name(m, name, call)
        return NONE
    if name in _TENSOR_EVIDENCE and name != "backward":
        return _as_tensor_method(m, ref, content, name, call)
    if name == "step" and m.judge is not None:
        m.judge.snapshots.stepped_elsewhere(call.args, call.node)
    if name == "scale" and len(call.args) == 1:
        return _scaled(m, ref, call)
    if load().method(name) is None:
        m.objects.add(ref.address & ~1)
    return m.unknown(call.node, f"the result of `{name}`", (ref, *call.all_values()), "call")


def _scaled(m: Machine, ref: Ref, call: Call) -> Value:
    """`scaler.scale(loss)`."""
    if m.tensor(call.args[0]) is not None:
        return optimizers.scaled(m, ref, call.args[0], call)
    value = m.unknown(call.node, "the result of `scale`", call.args, "call")
    if m.judge is not None:
        m.judge.protocol.scales(ref, value, call.node)
    return value


def _is_item_of_loader(content: Opaque) -> bool:
    return content.reason.startswith("a batch")


def _as_tensor_method(m: Machine, ref: Ref, content: Opaque, name: str, call: Call) -> Value:
    """A method that only tensors have, on something unknown: what it gives is known in part."""
    if name == "detach":
        if call.node in m.lone and not call.args:
            forgotten.dropped(m, call.node, name, known=bool(opaque_inputs(m, ref)))
        cuts = unknown_cut(m, ref, "detach", "detach()", call.node)
        own = frozenset({ref.address})
        made = tensor_like(m, call.node, "detach()")
        m.update(
            made,
            lambda t: t._replace(cuts=cuts, loose=True, storage=own, alias=Alias("detach", own, call.node)),
        )
        return made
    if name == "new_tensor" and call.args:
        made_tensors.copied(m, call.node, call.args[0])
        return made_tensors.rewrapped(m, call.node, call.args[0], "new_tensor()", call.keywords)
    if name == "item":
        return Number("number", unknown_cut(m, ref, "item", "item()", call.node))
    if name == "numpy":
        if m.judge is not None:
            m.judge.arrays.shares(frozenset({ref.address}))
        own = frozenset({ref.address})
        cuts = unknown_cut(m, ref, "numpy", "numpy()", call.node)
        return m.new(call.node, Array(own, cuts, Alias("numpy", own, call.node)), "array")
    if name == "argmax":
        made = tensor_like(m, call.node, "argmax()", dtype=2)
        cuts = unknown_cut(m, ref, "nondiff", "argmax()", call.node)
        m.update(made, lambda t: t._replace(cuts=cuts) if type(t) is Tensor else t)
        return made
    if name == "requires_grad_":
        flag = call.argument(0, "requires_grad")
        open_modules.flag_set(m, ref, TRUE if flag is None else flag, by_method=True)
        if call.args or call.keywords:
            return ref  # a module has the method as well, and who sets the flag to something does it mostly of one
        address = ref.address
        leaf = Tensor(
            YES,
            YES,
            dtype=FLOAT,
            storage=frozenset({address}),
            leaves=frozenset({address}),
            origin=content.origin,
        )
        m.write(ref, leaf)
        return ref
    return m.unknown(call.node, f"the result of `{name}`", (ref, *call.all_values()), "call")


# -- others


def _array(m: Machine, ref: Ref, content: Array, name: str, call: Call) -> Value:
    if name == "tolist":
        return m.new(call.node, Sequence("list", None, Number(NESTED, content.cuts), nonempty=True))
    if name == "item" or arrays.one_number(name, call.args, call.keywords, method=True):
        return Number("number", content.cuts)
    if name == "backward":
        m.emit(backward_event(m, call.node, Tensor(cuts=content.cuts), "backward()"))
    if name in arrays.WRITES:
        arrays.written(m, ref, content, call.node, anew=name == "fill")
        return NONE
    if name in arrays.VIEWS:
        return ref
    if name == "shuffle":  # of a random generator
        arrays.written_by_function(m, "numpy.random.shuffle", call.node, call.args, None)
    return arrays.fresh(m, call.node, content.cuts, name)


_PURE = frozenset(
    {
        "find",
        "rfind",
        "count",
        "index",
        "startswith",
        "endswith",
        "lower",
        "upper",
        "strip",
        "lstrip",
        "rstrip",
    }
    | {"replace", "title", "capitalize", "removeprefix", "removesuffix", "isdigit", "isalpha", "zfill"}
)


def _formatted(receiver: Const, call: Call) -> Value:
    """`"layer_{}".format(3)`, when all that goes in is known."""
    given = (*call.args, *call.keywords.values())
    if call.star is not None or call.stars is not None or not all(map(is_plain, (receiver, *given))):
        return Text()
    try:
        words = {word: value.value for word, value in call.keywords.items()}
        text = receiver.value.format(*(arg.value for arg in call.args), **words)
    except (TypeError, ValueError, LookupError, AttributeError):
        return Unknown("a text that cannot be made")
    return const(text) if len(text) <= LONGEST_TEXT else Text()


def _text_method(m: Machine, receiver: Value, name: str, call: Call) -> Value:
    known = is_plain(receiver) and type(receiver.value) is str and not call.keywords and call.star is None
    if known and name in _PURE and all(map(is_plain, call.args)):
        try:
            return const(getattr(receiver.value, name)(*(arg.value for arg in call.args)))
        except (TypeError, ValueError):
            return Unknown(f"`{name}` of a text, which raises")
    if type(receiver) is Const and name == "format":
        return _formatted(receiver, call)
    if name in ("split", "splitlines", "rsplit"):
        return m.new(call.node, Sequence("list", None, Text()))
    if name in ("startswith", "endswith", "isdigit", "isalpha"):
        return Number("bool")
    if name in ("count", "find", "index"):
        return Number("int")
    return Text()


def _instance(m: Machine, ref: Ref, content: Instance, name: str, call: Call) -> Value:
    """A method that the file does not define: of a base class from elsewhere."""
    info = m.classes[content.owner]
    if optimizers.extends_one(info) and name in optimizers.METHODS:
        return optimizers.call_method(m, ref, optimizers.of_instance(m, ref), name, call)
    if info.is_module or name in _MODULE_EVIDENCE:
        return module_methods.call_module_method(m, Method(ref, name, call.node), call)
    if info.external & {
        "builtins.dict",
        "collections.OrderedDict",
        "collections.UserDict",
        "builtins.list",
        "collections.deque",
    }:
        return _as_builtin(m, ref, info.external, name, call)
    if evidence.runs_backward(m, name, call):
        _backward_by_name(m, name, call)
        return NONE
    work = find_in_class(m, content.owner, "run") if name == "start" else None
    if work is not None and info.external & workers.THREADS:
        workers.run_thread(m, Bound(work, ref), Call(call.node, ()))
        return NONE
    if info.is_whole or (ref.address, name) in m.cells:
        part = child(m, ref, name, call.node)  # no base class has such a method: others have put it there
        if type(part) is Ref and type(m.cells.get(part.address)) is Opaque:
            return call_object(m, part, call)
    return unknown_call(m, call, f"the result of `{name}`", ref)


def _as_builtin(m: Machine, ref: Ref, bases: frozenset[str], name: str, call: Call) -> Value:
    """A method of a class of the file that extends dict or list."""
    is_list = bool(bases & {"builtins.list", "collections.deque"})
    part = m.cells.get((ref.address, CONTENT))
    if part is None:
        part = m.place_part(ref.address, CONTENT, Sequence() if is_list else Dict())
        m.write_cell(ref, CONTENT, part)
    return call_method(m, Method(part, name, call.node), call)


def _range(m: Machine, ref: Ref, content: Range, name: str, call: Call) -> Value:
    return m.unknown(call.node, f"the result of `{name}`", (ref,), "call")


def _layer(m: Machine, ref: Ref, content: Layer, name: str, call: Call) -> Value:
    if m.judge is not None and not content.name and m.judge.protocol.takes(ref, name, call):
        return m.unknown(call.node, f"the result of `{name}`", (ref, *call.all_values()), "call")
    return module_methods.call_module_method(m, Method(ref, name, call.node), call)


_BY_CONTENT: dict[type, Callable[[Machine, Ref, Any, str, Call], Value]] = {
    Sequence: _sequence,
    Dict: _dict,
    Opaque: _opaque,
    Array: _array,
    Distribution: call_distribution,
    Optimizer: optimizers.call_method,
    Pool: workers.call_method,
    Instance: _instance,
    Layer: _layer,
    Range: _range,
}


# -- calling objects


def call_object(m: Machine, ref: Ref, call: Call) -> Value:
    """Call an object: a module, an instance with `__call__`, or something unknown."""
    content = m.cells.get(ref.address)
    if m.judge is not None and type(content) in (Layer, Instance):
        m.judge.called_under(m.mode_place(), ref, call.node)
        m.judge.cut_notes.fed |= samples(m, call)
    match content:
        case Layer():
            if m.judge is not None:
                m.judge.containers += 1
            value = hooks.around(m, ref, call, lambda given: module_calls.call_layer(m, ref, content, given))
            module_calls.ran(m, ref, value)
            if m.judge is not None:
                m.judge.containers -= 1
                m.judge.module_called(ref, call.node, value)
            return value
        case Instance(owner=owner):
            special = find_in_class(m, owner, "__call__")
            if special is not None:
                return call_value(m, Bound(special, ref), call)
            if m.classes[owner].is_module:
                return _call_module(m, ref, content, call)
        case Opaque() if _shows_as_module(m, ref) or (
            _is_submodule(m, content, call) and any(held_tensors(m, v) for v in call.args)
        ):
            func = call.node.func  # type: ignore[attr-defined]
            layers.as_module(m, ref, content, f"`{ast.unparse(func)}`", call.node)
            if type(m.cells.get(ref.address)) is Layer:  # one of an earlier iteration stays what it was
                return call_object(m, ref, call)
    if m.judge is not None and type(content) is Opaque:
        m.judge.flags.shows_as_module(ref, call.node)
        m.ran.add(ref.address & ~1)
    return unknown_call(m, call, CALLED, ref)


def _call_module(m: Machine, ref: Ref, content: Instance, call: Call) -> Value:
    """What `nn.Module.__call__` does: the forward, with the hooks around it."""
    value = hooks.around(m, ref, call, lambda given: module_calls.call_module(m, ref, content, given))
    module_calls.ran(m, ref, value)
    if m.judge is not None:
        m.judge.module_called(ref, call.node, value)
    return value


def _shows_as_module(m: Machine, ref: Ref) -> bool:
    """Whether what is called is a module: on another path it was one, or it clears gradients and makes no steps."""
    steps = m.judge is not None and ref.address in m.judge.protocol.stepped
    return not steps and not m.one_of_several and (ref.address in m.shown or ref.address in m.cleared)


def _is_submodule(m: Machine, called: Opaque, call: Call) -> bool:
    """Whether what is called is an attribute of a module: then it is a module that was made elsewhere."""
    match call.node:
        case ast.Call(func=ast.Attribute(value=ast.Name())) if called.reason != TRANSFORM:
            receiver = m.frames[-1].receiver
            content = m.cells.get(getattr(receiver, "address", -1))
            return type(content) is Instance and m.classes[content.owner].is_module
    return False


def _init_builtin(m: Machine, receiver: Ref, owner: int, call: Call) -> None:
    """`dict.__init__`, `list.__init__` of a class of the file that extends one of them."""
    external = m.classes[owner].external
    maker = "builtins.list" if external & {"builtins.list"} else "builtins.dict"
    if external & {"builtins.dict", "collections.OrderedDict", "builtins.list"}:
        m.write_cell(receiver, CONTENT, call_value(m, External(maker), call))


MAKE_BASE.append(_init_builtin)
CALL_METHOD.append(call_method)
CALL_OBJECT.append(call_object)
