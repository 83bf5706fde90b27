"""Modules: making them, their parameters and children, calling them."""

import ast
from collections.abc import Callable, Mapping
from typing import NamedTuple

from gradvet.autograd.knowledge.lookup import load
from gradvet.autograd.library import open_modules
from gradvet.autograd.library.inputs import made_in
from gradvet.autograd.library.kept import Operand
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import (
    FLOAT,
    MAYBE,
    NO,
    YES,
    Origin,
    Tensor,
)
from gradvet.autograd.memory.values import (
    FALSE,
    NONE,
    TRUE,
    Const,
    Dict,
    Each,
    Instance,
    Layer,
    Method,
    Number,
    Opaque,
    Ref,
    Sequence,
    Slice,
    Text,
    Tuple,
    Union,
    Unknown,
    Value,
    atoms,
    const,
    join,
    join_all,
)
from gradvet.autograd.python.calls import MAKE_BASE, Call

_LISTS = {"torch.nn.ModuleList", "torch.nn.ParameterList"}
_DICTS = {"torch.nn.ModuleDict", "torch.nn.ParameterDict"}
_CONTAINERS = _LISTS | _DICTS | {"torch.nn.Sequential"}

_BUFFERS = ("running_mean", "running_var", "num_batches_tracked")
"""What normalisation layers keep besides their parameters (torch.nn's documentation of BatchNorm and InstanceNorm)."""

ON_PACKED: list[Callable[[Machine, Ref, "Layer", Call], Value | None]] = []
"""What a layer makes of a packed sequence."""
BASE = "#layer"
NORMED, PARAMETRIZED = "#normed", "#parametrized"
"""Cells for what is computed from other parameters: before each forward, or whenever it is looked at."""
PLAIN = "#plain"
"""The cell of the names of parameters that were deleted: what is given to such a name later is no parameter."""
UNNAMED = "*"
"""The cell of what a module was given under names that are not known."""
BUFFERS = "#buffers"
"""The cell of the names of the buffers that a module was given and has in its dict of states."""
SCRIPTED = "#scripted"
"""A cell of a module that TorchScript has compiled."""
COMPUTED: list[Callable[[Machine, Ref, Value, ast.AST], Value]] = []
_SIZES = ("kernel_size", "stride", "padding", "dilation", "output_padding")

NOT_THERE = Unknown("an attribute that is not there")

MODULE_METHODS = {
    "parameters", "named_parameters", "modules", "named_modules", "children", "named_children", "state_dict",
    "load_state_dict", "train", "eval", "to", "cuda", "cpu", "float", "half", "double", "bfloat16", "type",
    "requires_grad_", "zero_grad", "apply", "register_buffer", "register_parameter", "add_module", "register_module",
    "register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook",
    "register_full_backward_pre_hook", "buffers", "named_buffers",
    "share_memory", "get_submodule", "get_parameter", "extra_repr", "compile",
}  # fmt: skip


class Members(NamedTuple):
    """What belongs to a module, itself included: parameters, modules, and whether that is all.

    `either` tells, of a parameter in the place of which another may be, which ones may be there.
    """

    parameters: tuple[tuple[str, Ref], ...]
    modules: tuple[tuple[str, Ref], ...]
    complete: bool
    either: dict[Ref, Value]

    @property
    def has_others(self) -> bool:
        """Whether there are parameters that are not known one by one."""
        return any(path == open_modules.OTHERS for path, _ in self.parameters)


# -- making modules


def parameter(m: Machine, site: ast.AST, tag: str, words: str) -> Ref:
    """A new parameter that requires grad."""
    address = m.address(site, tag)
    m.place(address, parameter_state(address, Origin(site, words))._replace(inference=made_in(m)))
    return Ref(address)


def parameter_state(address: int, origin: Origin, assumes: frozenset[str] = frozenset()) -> Tensor:
    """The state of a parameter: a leaf that requires grad and leads to itself."""
    own = frozenset({address})
    return Tensor(
        YES, YES, dtype=FLOAT, storage=own, leaves=own, origin=origin, assumes=assumes, parameter=YES
    )


def create(m: Machine, name: str, call: Call) -> Value:
    """Make an instance of a class of torch.nn."""
    site = call.node
    short = name.rpartition(".")[2]
    if name in _CONTAINERS:
        return m.new(site, _container(m, name, call), short)
    known = load().module(name)
    options = dict(call.keywords) if known is None else {**dict(zip(known.init, call.args)), **call.keywords}
    parameters: list[tuple[str, int]] = []
    for part in parameter_names(name, options):
        ref = parameter(m, site, f"{short}.{part}", f"{part} of {short}")
        parameters.append((part, ref.address))
    ref = m.new(
        site,
        Layer(name if known is not None else "", tuple(parameters), options=tuple(options.items())),
        short,
    )
    m.write_cell(ref, "training", TRUE)
    return ref


def parameter_names(name: str, options: Mapping[str, Value]) -> tuple[str, ...]:
    """The names of a module's own parameters, made with these arguments of the constructor."""
    known = load().module(name)
    if known is not None:
        asked = options.get(known.option) if known.option else None
        if asked == FALSE or (known.weights == "never" and asked != TRUE):
            return ()
    short = name.rpartition(".")[2]
    bias = options.get("bias")
    if short in ("Embedding", "EmbeddingBag", "PReLU"):
        return ("weight",)
    if short in ("LSTM", "GRU", "RNN"):
        return ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    if short.endswith("Cell"):
        return ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    if short == "MultiheadAttention":
        return ("in_proj_weight", "in_proj_bias")
    return ("weight",) if bias == FALSE else ("weight", "bias")


def _container(m: Machine, name: str, call: Call) -> Layer:
    given = call.args[0] if len(call.args) == 1 and not call.keywords else None
    content = m.cells.get(getattr(given, "address", -1))
    if name in _DICTS or type(content) is Dict:
        if type(content) is not Dict:
            return Layer(name)
        children = tuple((str(key.value), value) for key, value in content.items)
        return Layer(name, (), children, content.rest)
    values: list[Value] = list(call.args)
    rest = call.star
    if type(content) is Sequence:
        values = list(content.items or ())
        rest = content.rest if content.rest is not None else rest
    elif type(given) is Tuple and name in _LISTS:
        values = list(given.items)
    elif type(content) is Opaque:
        values, rest = [], given
    return Layer(name, (), tuple((str(at), value) for at, value in enumerate(values)), rest)


def as_module(
    m: Machine, ref: Ref, content: Opaque, words: str, site: ast.AST, *, trains: int = YES
) -> Layer:
    """What is known of an object once it is seen to be a module: its parameters are taken to train."""
    assumes = frozenset({f"{words} has parameters that train"})
    origin = Origin(content.origin.node if content.origin else ast.Pass(), f"parameters of {words}")
    part = m.place_part(ref.address, "#parameters", None)
    state = parameter_state(part.address, origin, assumes)
    state = open_modules.shown(m, ref, part.address, state._replace(requires_grad=trains))
    m.store.set(part.address, state)
    layer = Layer("", ((open_modules.OTHERS, part.address),))
    m.write(ref, layer)
    if trains == YES:
        m.shown.add(ref.address & ~1)
    if m.judge is not None:
        m.judge.flags.shows_as_module(ref, site)
    return layer


_WITH_WEIGHT = ("torch.nn.Linear", "torch.nn.Conv", "torch.nn.Embedding", "torch.nn.Bilinear")


def has_weight(name: str) -> bool:
    """Whether all modules of this class of torch have a parameter of that name."""
    return name.startswith(_WITH_WEIGHT)


def shown_with_weight(m: Machine, ref: Ref, name: str) -> None:
    """A module of which nothing else is known is one of a class of torch: it has a weight."""
    content = m.cells.get(ref.address)
    if type(content) is not Layer or content.name or (ref.address, "weight") in m.cells:
        return
    known = [m.cells.get(address) for _, address in content.parameters]
    states = [state for state in known if type(state) is Tensor]
    if len(states) != 1:
        return
    part = m.place_part(ref.address, "#weight", None)
    origin = Origin(
        states[0].origin.node if states[0].origin else ast.Pass(), f"weight of {name.rpartition('.')[2]}"
    )
    if m.cells.get(part.address) is None:
        m.store.set(part.address, parameter_state(part.address, origin, states[0].assumes))
    m.write_cell(ref, "weight", part)


# -- attributes and items


def attribute(m: Machine, ref: Ref, content: Layer, name: str, node: ast.AST, *, called: bool) -> Value:
    """An attribute of a module of torch.nn, or of one that is only known to be a module."""
    entry = _computed_entry(m, ref, PARAMETRIZED, name)
    if entry is not None:
        return COMPUTED[0](m, ref, entry, node)
    if name in MODULE_METHODS:
        return Method(ref, name, node)
    own = content.own(name)
    if own is not None:
        return own
    for part, value in content.children:
        if part == name:
            return value
    if name == "module" and (not called or ref.address & ~1 in m.in_wrapper):
        return ref  # DataParallel and DDP wrap; what they wrap is what we look at
    if called:
        return Method(ref, name, node)
    if name == "training":
        return Number("bool")
    if name == "_modules" and content.name:
        return ref  # it is written and read by the names of the children, as the module itself here
    known = load().module(content.name) if content.name else None
    if known is not None and name in _BUFFERS:
        tracks = _tracks(content)
        if tracks != YES:
            return NONE if tracks == NO else Unknown("a buffer that is there or not")
        made = m.place_part(ref.address, name, Tensor(origin=Origin(node, f"{name} of {content.name}")))
        if not m.cells[made.address].storage:
            m.store.set(made.address, m.cells[made.address]._replace(storage=frozenset({made.address})))
        return made
    if content.name:
        if _is_beyond_torch(m, ref, content, name):
            return NOT_THERE
        return NONE if name in ("weight", "bias") else _setting(content, name)
    value = m.place_part(ref.address, name, Opaque(f"a part of {words_of(node)}", (ref,), Origin(node, name)))
    m.write_cell(ref, name, value)
    return value


def _is_beyond_torch(m: Machine, ref: Ref, content: Layer, name: str) -> bool:
    """Whether a layer has this attribute only where somebody gives it one: `weight_bar` beside its `weight`.

    No layer of torch calls anything by the name of one of its parameters with more behind it.
    """
    deleted = m.cells.get((ref.address, PLAIN))
    taken = [entry.value for entry in deleted.items] if type(deleted) is Tuple else []
    return any(name.startswith(f"{part}_") for part in (*dict(content.parameters), *taken)) and not any(
        (ref.address, cell) in m.cells for cell in (NORMED, PARAMETRIZED)
    )


def _tracks(content: Layer) -> int:
    """Whether a normalisation layer keeps statistics: those of batches do unless they are told not to, others never."""
    told = dict(content.options).get("track_running_stats")
    if told is None:
        return YES if "BatchNorm" in content.name else NO
    return {TRUE: YES, FALSE: NO}.get(told, MAYBE)


def _setting(content: Layer, name: str) -> Value:
    """What a module was made with; sizes of a convolution are made tuples of (torch/nn/modules/conv.py)."""
    value = dict(content.options).get(name)
    made_tuple = "Conv" in content.name and name in _SIZES and type(value) is not Tuple
    if type(value) in (Const, Number, Tuple) and not made_tuple:
        return value
    known = load().module(content.name)
    left_out = value is None and known is not None and name in known.init and name not in _SIZES
    return Number("number") if left_out else Unknown("a setting of a module")


def _computed_entry(m: Machine, ref: Ref, cell: str, name: str) -> Value | None:
    """How the tensor of this name is computed, if it is."""
    known = m.cells.get((ref.address, cell))
    entries = known.items if type(known) is Tuple else ()
    return next((entry for entry in entries if entry.items[0].value == name), None)


def _computed_now(m: Machine, ref: Ref, site: ast.AST) -> list[Operand]:
    """The tensors that a module computes before it runs, as operands."""
    found = []
    for cell in (NORMED, PARAMETRIZED):
        known = m.cells.get((ref.address, cell))
        for number, entry in enumerate(known.items if type(known) is Tuple else ()):
            with m.numbered(site, number % 8 + 50):
                value = COMPUTED[0](m, ref, entry, site)
            if cell == NORMED:
                m.write_cell(ref, entry.items[0].value, value)
            state = m.tensor(value)
            if state is not None:
                found.append(Operand("parameters", value, state))
    plain = m.cells.get((ref.address, PLAIN))
    for name in plain.items if type(plain) is Tuple else ():
        value = m.cells.get((ref.address, name.value))
        state = m.tensor(value) if value is not None else None
        if state is not None:
            found.append(Operand("parameters", value, state))
    return found


def delete_part(m: Machine, holder: Value, name: str) -> None:
    """`del module.weight`, or `del module._parameters["weight"]`: the module does not list it any more."""
    for atom in m.alternatives(holder):
        address = getattr(atom, "address", None)
        if address is None:
            continue
        if (address, name) in m.cells:
            m.store.set((address, name), None)
        content = m.cells.get(address)
        if type(content) is Layer and name in dict(content.parameters):
            kept = tuple(pair for pair in content.parameters if pair[0] != name)
            m.store.set(address, content._replace(parameters=kept))
            before = m.cells.get((address, PLAIN))
            m.store.set(
                (address, PLAIN), Tuple((*(before.items if type(before) is Tuple else ()), const(name)))
            )


def set_parameter(m: Machine, ref: Ref, content: Layer, name: str, new: Value) -> bool:
    """`layer.weight = other.weight`, or a child by its name: the layer computes with it; False for other names."""
    if name in dict(content.children):
        set_child(m, ref, const(name), new)
        return True
    if name not in dict(content.parameters):
        return False
    kept = tuple(pair for pair in content.parameters if pair[0] != name)
    if type(new) is Ref and m.tensor(new) is not None:
        pairs = ((part, new.address if part == name else at) for part, at in content.parameters)
        kept = tuple(dict.fromkeys(pairs))
    m.update(ref, lambda c: c._replace(parameters=kept) if type(c) is Layer else c)
    return True


def words_of(node: ast.AST) -> str:
    """An expression as the user wrote it, in quotes; long ones are cut."""
    text = ast.unparse(node.value if isinstance(node, ast.Attribute) else node)
    return f"`{text[:37]}...`" if len(text) > 40 else f"`{text}`"  # noqa: PLR2004


def item(m: Machine, ref: Ref, content: Layer, key: Value, node: ast.AST) -> Value:
    """A child of a container by position or name."""
    if type(key) is Const and key.kind in ("int", "str"):
        if (
            key.kind == "int"
            and content.rest is None
            and -len(content.children) <= key.value < len(content.children)
        ):
            return content.children[key.value][1]
        for name, value in content.children:
            if name == str(key.value):
                return value
    if type(key) is Slice and content.children and content.rest is None:
        bounds = slice_bounds(node)
        children = content.children[bounds] if bounds is not None else content.children
        made = tuple((str(at), value) for at, (_, value) in enumerate(children))
        return m.new(node, content._replace(children=made), "part")
    if not content.name and not content.children and content.rest is None:
        return attribute(m, ref, content, f"[{getattr(key, 'value', '')}]", node, called=False)
    return any_child(m, ref, content, node)


def slice_bounds(node: ast.AST) -> slice | None:
    """The slice of a subscript whose bounds are all written as constants."""
    match node:
        case ast.Subscript(slice=ast.Slice(lower=lower, upper=upper, step=step)):
            try:
                parts = [None if part is None else ast.literal_eval(part) for part in (lower, upper, step)]
            except ValueError:
                return None
            return slice(*parts)
    return None


def set_child(m: Machine, ref: Ref, key: Value, new: Value) -> None:
    """`container[key] = module`."""

    def change(content: object) -> object:
        if type(content) is not Layer:
            return content
        name = str(key.value) if type(key) is Const else None
        if name is not None and content.rest is None:
            children = dict(content.children)
            children[name] = new
            return content._replace(children=tuple(children.items()))
        return content._replace(rest=new if content.rest is None else join(content.rest, new))

    m.update(ref, change)


def any_child(m: Machine, ref: Ref, content: Layer, node: ast.AST) -> Value:
    """Any one child of a container."""
    found = [value for _, value in content.children]
    if content.rest is not None:
        found.append(content.rest)
    return join_all(found) if found else Unknown("a child of a module that is not known")


# -- members


def is_module(m: Machine, value: Value) -> bool:
    """Whether a value must be a module."""
    content = m.cells.get(getattr(value, "address", -1))
    if type(content) is Instance:
        return bool(m.classes[content.owner].is_module)
    return type(content) is Layer


def members(m: Machine, value: Value) -> Members:
    """All parameters and submodules of a module, in order."""
    parameters: dict[Ref, str] = {}
    modules: dict[Ref, str] = {}
    either: dict[Ref, Value] = {}
    complete = [True]

    def visit(value: Value, path: str) -> None:
        for atom in atoms(value):
            for ref in atom.refs if type(atom) is Each else (atom,):
                if type(ref) is Ref:
                    enter(ref, path)
                elif type(ref) is Unknown:
                    complete[0] = False

    def enter(ref: Ref, path: str) -> None:
        content = m.cells.get(ref.address)
        if type(content) is Tensor:
            if content.parameter & YES:
                parameters.setdefault(ref, path)
            return
        if ref in modules:
            return
        if type(content) is Layer:
            modules[ref] = path
            for name, address in content.parameters:
                parameters.setdefault(Ref(address), f"{path}.{name}".lstrip("."))
            if len(dict(content.parameters)) < len(content.parameters):
                either.update((Ref(at), content.own(name)) for name, at in content.parameters)
            for name, child in content.children:
                visit(child, f"{path}.{name}".lstrip("."))
            if content.rest is not None:
                visit(content.rest, path)
            attributes(ref, path, is_open=not content.name)
        elif type(content) is Instance and m.classes[content.owner].is_module:
            modules[ref] = path
            attributes(ref, path, is_open=False)
        elif type(content) is Opaque:
            complete[0] = False

    def attributes(ref: Ref, path: str, *, is_open: bool) -> None:
        for name in m.attributes.get(ref.address & ~1, ()):
            if name.startswith("#") or name == "grad":
                continue
            cell = m.cells.get((ref.address, name))
            if cell is None or type(cell) in (Const, Number, Text):
                continue
            inner = f"{path}{'' if name.startswith('[') else '.'}{name}".lstrip(".")
            content = m.cells.get(cell.address) if type(cell) is Ref else None
            if type(content) in (Tensor, Layer, Instance):
                enter(cell, inner)
            elif type(cell) in (Union, Each):
                visit(cell, inner)
            elif is_open and type(content) is Opaque and content.inputs[:1] == (ref,):
                attributes(cell, inner, is_open=True)

    visit(value, "")
    return Members(
        tuple((name, ref) for ref, name in parameters.items()),
        tuple((name, ref) for ref, name in modules.items()),
        complete[0],
        either,
    )


def _loaded(m: Machine, module: Value) -> list[Value]:
    """What a module takes from a dict of states: the parameters, and the buffers that are kept there."""
    found = members(m, module)
    buffers = [
        m.cells.get((ref.address, label.value))
        for _, ref in found.modules
        for label in getattr(m.cells.get((ref.address, BUFFERS)), "items", ())
    ]
    return [*(ref for _, ref in found.parameters), *(value for value in buffers if value is not None)]


def training_of(m: Machine, ref: Ref) -> Value | None:
    """The `training` flag of a module, as a value; None when nothing is known."""
    return m.cells.get((ref.address, "training"))


# -- calling


def init_external_base(m: Machine, receiver: Ref, owner: int, call: Call) -> None:
    """`super().__init__(...)` of a class that extends one of torch.nn: make the base's parameters."""
    for name in m.classes[owner].external:
        init_base(m, receiver, name, call)


def init_base(m: Machine, receiver: Ref, name: str, call: Call) -> None:
    """What the constructor of a class of torch.nn does to an object of a class that extends it."""
    known = load().module(name)
    base = Layer(name)
    if name in _CONTAINERS:
        base = _container(m, name, call)
    elif known is None or name == "torch.nn.Module":
        return
    else:
        options = {**dict(zip(known.init, call.args)), **call.keywords}
        made = [
            (part, parameter(m, call.node, f"base {part}", f"{part} of {name.rpartition('.')[2]}"))
            for part in parameter_names(name, options)
        ]
        for part, ref in made:
            m.write_cell(receiver, part, ref)
        base = Layer(name, tuple((part, ref.address) for part, ref in made), options=tuple(options.items()))
    m.write_cell(receiver, BASE, m.new(call.node, base, f"base {name}"))
    for part, child in base.children:
        m.write_cell(receiver, part, child)


def of_base(m: Machine, ref: Ref, name: str) -> Value | None:
    """A setting that a module of the file has from its base of torch.nn."""
    base = m.cells.get(getattr(m.cells.get((ref.address, BASE)), "address", -1))
    if type(base) is not Layer or name not in dict(base.options):
        return None
    return _setting(base, name)


MAKE_BASE.append(init_external_base)


# -- methods


def _registered(m: Machine, receiver: Value, name: str, call: Call) -> None:
    """`register_buffer("name", value)` and its kin."""
    label = call.args[0] if call.args else None
    if label is None or len(call.args) <= 1 or type(receiver) is not Ref:
        return
    if type(label) is not Const:
        if is_module(m, call.args[1]) or m.tensor(call.args[1]) is not None:
            m.write_cell(receiver, UNNAMED, call.args[1], certain=False)
        return
    if type(m.cells.get(receiver.address)) is Layer and is_module(m, call.args[1]):
        set_child(m, receiver, label, call.args[1])
    else:
        m.write_cell(receiver, label.value, call.args[1])
    if name == "register_buffer" and call.argument(2, "persistent") != FALSE:
        known = m.cells.get((receiver.address, BUFFERS))
        labels = dict.fromkeys((*(known.items if type(known) is Tuple else ()), label))
        m.write_cell(receiver, BUFFERS, Tuple(tuple(labels)))
