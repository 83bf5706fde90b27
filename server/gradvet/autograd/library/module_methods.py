"""Methods that every module has: parameters, state dicts, moves, modes, hooks."""

from collections.abc import Callable, Iterable

from gradvet.autograd.held import held_tensors
from gradvet.autograd.library import flags, hooks, open_modules
from gradvet.autograd.library.half import module_cast
from gradvet.autograd.library.layers import (
    MODULE_METHODS,
    _loaded,
    _registered,
    is_module,
    members,
    parameter_state,
)
from gradvet.autograd.library.storages import written_unseen
from gradvet.autograd.library.tensors import set_requires_grad
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import (
    NOTHING,
    Alias,
    Origin,
    Tensor,
)
from gradvet.autograd.memory.values import (
    FALSE,
    NAME,
    NONE,
    TRUE,
    Bound,
    Const,
    Dict,
    Each,
    Instance,
    Layer,
    Method,
    Ref,
    Sequence,
    Text,
    Tuple,
    Unknown,
    Value,
    const,
    join,
    join_all,
    refs,
)
from gradvet.autograd.python.calls import HANDED_OVER, Call, call_value, find_in_class, unknown_call
from gradvet.autograd.python.objects import child, element_of, items_of


def set_training(m: Machine, value: Value, mode: Value) -> None:
    """`train(mode)` on a module and all below it."""
    for _, ref in members(m, value).modules:
        m.write_cell(ref, "training", mode)


def _switch_own(m: Machine, receiver: Value, mode: Value, call: Call, *, also_itself: bool) -> None:
    """`train(mode)` of modules that have one of their own: torch calls it for each child, and `eval()` for itself."""
    for number, (_, ref) in enumerate(members(m, receiver).modules):
        content = m.cells.get(ref.address)
        own = find_in_class(m, content.owner, "train") if type(content) is Instance else None
        if own is not None and (also_itself or ref != receiver):
            with m.numbered(call.node, number % 60):
                call_value(m, Bound(own, ref), Call(call.node, (mode,)))


def call_module_method(m: Machine, method: Method, call: Call) -> Value:
    """A method that every module has."""
    receiver, name = method.receiver, method.name
    match name:
        case "parameters" | "named_parameters" | "modules" | "named_modules" | "children" | "named_children":
            return _listed(m, receiver, name, call)
        case "buffers" | "named_buffers":
            return m.new(call.node, Sequence("generator", None, Unknown("a buffer")), name)
        case "train" | "eval":
            given = call.argument(0, "mode") if name == "train" else FALSE
            set_training(m, receiver, TRUE if given is None else given)
            _switch_own(m, receiver, TRUE if given is None else given, call, also_itself=name == "eval")
            if m.judge is not None and given == FALSE:
                m.judge.evaluated(receiver, call.node)
            return receiver
        case "requires_grad_":
            flag = call.argument(0, "requires_grad")
            refs = tuple(ref for _, ref in members(m, receiver).parameters)
            if refs:
                set_requires_grad(m, Each(refs), TRUE if flag is None else flag, call.node)
            return receiver
        case "state_dict":
            return _state_dict(m, receiver, call)
        case "register_buffer" | "register_parameter" | "add_module" | "register_module":
            _registered(m, receiver, name, call)
            return NONE
        case "apply":
            _apply_to_all(m, receiver, call)
            return receiver
        case "zero_grad":
            clear_gradients(m, tuple(ref.address for _, ref in members(m, receiver).parameters), call)
            return NONE
        case "load_state_dict" if call.args and m.judge is not None:
            if call.keywords.get("assign", FALSE) != FALSE:
                _assigned(m, receiver, call.args[0])
            else:
                for ref in _loaded(m, receiver):
                    written_unseen(m, ref)
            m.judge.snapshots.loaded(receiver, call.args[0], call.node)
            sources = [state for _, state in held_tensors(m, call.args[0])]
            storages = NOTHING.union(*(state.storage for state in sources))
            m.judge.flow.follows(
                [ref.address for _, ref in members(m, receiver).parameters], storages, call.node
            )
            return Unknown(f"the result of {name}")
        case "load_state_dict" | "share_memory" | "compile":
            return Unknown(f"the result of {name}")
        case "forward":
            return call_value(m, receiver, call)
        case "append" | "extend" | "insert" | "add" | "update":
            return _grow(m, receiver, name, call)
        case "values" | "items" | "keys":
            return _dict_view(m, receiver, name, call)
    if name in hooks.OF_MODULES and call.args:
        return hooks.register(m, receiver, name, call)
    if name in ("get_submodule", "get_parameter", "get_buffer"):
        return _by_path(m, receiver, name, call)
    if name.startswith("register_"):
        return Unknown(f"the result of {name}")
    if name in ("to", "bfloat16", "float", "half", "double", "type"):
        module_cast(m, (ref for _, ref in members(m, receiver).parameters), name, call)
    if name in MODULE_METHODS:
        return receiver
    got = m.cells.get((getattr(receiver, "address", -1), open_modules.getter_name(name)))
    if got is not None and not call.args and not call.keywords:
        return got
    if call.node in m.lone and type(receiver) is Ref:
        _may_change(m, receiver)
    return unknown_call(m, call, f"the result of `{name}`", receiver)


def _may_change(m: Machine, module: Value) -> None:
    """Something that is not followed is done to a module: what is frozen of it may be so no more, or have company."""
    inside = members(m, module) if is_module(m, module) else None
    found = (
        [ref for _, ref in inside.parameters if open_modules.stands_for_many(m, ref)]
        if inside is not None
        else []
    )
    if inside is None and type(module) is Ref:
        whole = open_modules.whole_of(m, module)
        found = [whole] if whole is not None else []
    for ref in found:
        open_modules.some_train(m, ref)


def _handed_over(m: Machine, call: Call) -> None:
    """What is not followed is given modules, or parts of them."""
    for value in call.all_values() if m.open_leaves else ():
        for ref in refs(value):
            _may_change(m, ref)


def _assigned(m: Machine, receiver: Value, given: Value) -> None:
    """`load_state_dict(state, assign=True)`: the parameters lie where what is given does."""
    content = m.cells.get(getattr(given, "address", -1))
    every = NOTHING.union(*(state.storage for _, state in held_tensors(m, given)))
    for name, ref in members(m, receiver).parameters:
        own = content.get(_name(name)) if type(content) is Dict else None
        state = None if own is None else m.tensor(own)
        places = every if state is None else state.storage
        m.update(ref, lambda t, places=places: t._replace(storage=places or t.storage))  # type: ignore[misc]


MOST_APPLIED = 60


def _apply_to_all(m: Machine, receiver: Value, call: Call) -> None:
    """`module.apply(function)`: on every module by itself, as each may be of another kind; the outermost comes last."""
    modules = [ref for _, ref in reversed(members(m, receiver).modules)]
    if not call.args or not modules:
        return
    if len(modules) > MOST_APPLIED:
        call_value(m, call.args[0], Call(call.node, (Each(tuple(modules)),)))
        return
    for number, ref in enumerate(modules):
        with m.numbered(call.node, number):
            call_value(m, call.args[0], Call(call.node, (ref,)))


def _by_path(m: Machine, receiver: Value, name: str, call: Call) -> Value:
    """`module.get_submodule("encoder.0")`: one of its members by name, or any of them."""
    found = members(m, receiver)
    pairs = found.modules if name == "get_submodule" else found.parameters
    path = call.argument(0, "target")
    named = [ref for known, ref in pairs if type(path) is Const and path.value == known]
    if named:
        return join_all(named)
    if type(path) is Const and type(receiver) is Ref and found.has_others:
        return child(m, receiver, str(path.value), call.node)
    if name == "get_buffer" or not found.complete or not pairs or type(path) is Const:
        return m.unknown(call.node, f"the result of {name}", (receiver,), "member")
    return join_all([ref for _, ref in pairs])


def clear_gradients(m: Machine, leaves: Iterable[int], call: Call, optimizer: int = 0) -> None:
    """`zero_grad()`: gradients are None afterwards, unless `set_to_none=False`."""
    if m.judge is not None:
        m.judge.protocol.clear(leaves, call.node, optimizer)
    flag = call.argument(0, "set_to_none")
    if flag is not None and flag != TRUE:
        if m.judge is not None and flag == FALSE:
            kept = (m.cells.get((leaf, "grad")) for leaf in leaves)
            zeroed = [ref.address for value in kept for ref in refs(value)]
            m.judge.snapshots.zeroed(zeroed, call.node)
            m.judge.kept_gradients.changes(zeroed, call.node)
        return
    for leaf in leaves:
        if m.judge is not None and m.grads:
            gone = [ref.address for ref in refs(m.cells.get((leaf, "grad"), NONE))]
            m.judge.snapshots.dropped(gone)
            m.judge.kept_gradients.left(gone)
        m.store.set((leaf, "grad"), NONE)


def _listed(m: Machine, receiver: Value, name: str, call: Call) -> Value:
    found = members(m, receiver)
    pairs = found.parameters if name.endswith("parameters") else found.modules
    if name.endswith("children"):
        pairs = tuple(p for p in pairs if p[0] and "." not in p[0])
    if not pairs and name.endswith("parameters") and (inherited := _of_subclass(m, receiver)) is not None:
        pairs = (("parameters", inherited),)
    if not pairs and found.complete and _is_whole(m, receiver):
        return m.new(call.node, Sequence("members", ()), name)
    is_open = found.has_others
    if name.endswith("children") and (is_open or not pairs):
        part: Value = (
            open_modules.child_of(m, receiver, flags.CHILD, call.node)
            if is_open and type(receiver) is Ref
            else m.unknown(call.node, flags.CHILD)
        )
        part = join_all([part, *(ref for _, ref in pairs)]) or part
        part = Tuple((Text(), part)) if name.startswith("named_") else part
        return m.new(call.node, Sequence("generator", None, part), name)
    if not pairs:
        return m.new(call.node, Sequence("generator", None, Unknown("a member of a module")), name)
    named = name.startswith("named_")
    each = dict.fromkeys((path, found.either.get(ref, ref)) for path, ref in pairs)
    some = is_open and name == "named_modules"
    items = tuple(Tuple((_name(path, some=some), value)) if named else value for path, value in each)
    made = m.new(call.node, Sequence("members", items, nonempty=True), name)
    if m.judge is not None:
        m.judge.protocol.generator(made)
    return made


def _name(path: str, *, some: bool = False) -> Value:
    """The name of a member; what stands for several, or is one of `some`, has any."""
    if some:
        return Text()
    return Const(NAME, path) if path.rpartition(".")[2] == open_modules.OTHERS else const(path)


def _of_subclass(m: Machine, receiver: Value) -> Ref | None:
    """What stands for the parameters of a module of which the class has none: those that a subclass gives it."""
    content = m.cells.get(getattr(receiver, "address", -1))
    if type(content) is not Instance or not m.alone or m.frames[-1].receiver != receiver:
        return None
    assumes = frozenset({f"a subclass of `{m.classes[content.owner].node.name}` has parameters that train"})
    origin = Origin(m.classes[content.owner].node, "parameters of a subclass")
    part = m.place_part(receiver.address, "#parameters", None)
    m.store.set(part.address, parameter_state(part.address, origin, assumes))
    return part


def _is_whole(m: Machine, receiver: Value) -> bool:
    """Whether all that belongs to a module is known: it is one of torch.nn or of the file, and of no other base."""
    content = m.cells.get(getattr(receiver, "address", -1))
    if type(content) is Layer:
        return bool(content.name) and content.rest is None
    if type(content) is not Instance or m.classes[content.owner].unknown_base:
        return False
    return all(base.startswith("torch.nn.") for base in m.classes[content.owner].external)


def _state_dict(m: Machine, receiver: Value, call: Call) -> Value:
    parts = []
    m.calls_of[call.node] = m.where()
    if m.judge is not None:
        m.judge.snapshots.taken = True
    for name, ref in members(m, receiver).parameters:
        state = m.tensor(ref)
        if state is not None:
            address = m.address(call.node, f"state {name} {ref.address}")
            alias = Alias("state_dict", frozenset({ref.address}), call.node)
            origin = Origin(call.node, "state_dict()")
            m.place(
                address,
                Tensor(storage=state.storage, inference=state.inference, alias=alias, origin=origin),
            )
            parts.append((_name(name), Ref(address)))
    rest = None if parts else Unknown("a tensor of a state_dict")
    return m.new(call.node, Dict(tuple(parts), rest, Text() if rest else None, "state_dict"), "state_dict")


def _grow(m: Machine, receiver: Value, name: str, call: Call) -> Value:
    given = call.args[-1] if call.args else None
    if given is None:
        return receiver
    known, others = _added(m, name, given, call)

    def change(content: object) -> object:
        if type(content) is not Layer:
            return content
        first = len(content.children)
        children = [(key or str(first + at), value) for at, (key, value) in enumerate(known)]
        rest = (
            content.rest if others is None else others if content.rest is None else join(content.rest, others)
        )
        return content._replace(
            children=tuple({**dict(content.children), **dict(children)}.items()), rest=rest
        )

    m.update(receiver, change)
    return receiver


def _added(m: Machine, name: str, given: Value, call: Call) -> tuple[list[tuple[str, Value]], Value | None]:
    """What a container of modules gets: the new ones by name (or none yet) in their order, and what may be among them."""
    if name == "append":
        return [("", given)], None
    if name == "extend":
        items = items_of(m, given)
        return (
            ([], element_of(m, given, call.node)) if items is None else ([("", item) for item in items], None)
        )
    content = m.cells.get(getattr(given, "address", -1))
    if name == "update" and type(content) is Dict:
        return [(str(key.value), value) for key, value in content.items], content.rest
    return [], given


def _dict_view(m: Machine, receiver: Value, name: str, call: Call) -> Value:
    content = m.cells.get(getattr(receiver, "address", -1))
    if type(content) is not Layer:
        return Unknown(name)
    pick: Callable[[str, Value], Value] = {
        "values": lambda key, value: value,
        "keys": lambda key, value: const(key),
        "items": lambda key, value: Tuple((const(key), value)),
    }[name]
    items = tuple(pick(key, value) for key, value in content.children)
    if content.rest is None:
        return m.new(call.node, Sequence("members" if name != "keys" else "list", items), name)
    return m.new(call.node, Sequence("list", None, pick("", content.rest)), name)


HANDED_OVER.append(_handed_over)
