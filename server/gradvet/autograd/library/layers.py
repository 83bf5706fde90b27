"""Modules: making them, their parameters and children, calling them."""

import ast
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from gradvet.autograd.graph import held_tensors, surely_asks
from gradvet.autograd.knowledge.lookup import load
from gradvet.autograd.library import flags, hooks
from gradvet.autograd.library.half import module_cast
from gradvet.autograd.library.inputs import bind, carried, in_mode, made_in, operands_of
from gradvet.autograd.library.kept import Inputs, Operand
from gradvet.autograd.library.operations import dropping, mutate, results
from gradvet.autograd.library.results import computed
from gradvet.autograd.library.storages import written_unseen
from gradvet.autograd.library.tensors import set_requires_grad
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import (
    ANY_FN,
    FLOAT,
    INTEGER,
    MAYBE,
    NO,
    NOTHING,
    YES,
    Alias,
    Origin,
    Tensor,
)
from gradvet.autograd.memory.values import (
    FALSE,
    NONE,
    TRUE,
    Bound,
    Const,
    Dict,
    Each,
    Function,
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
from gradvet.autograd.python.calls import MAKE_BASE, Call, call_value, find_in_class, unknown_call

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
BUFFERS = "#buffers"
"""The cell of the names of the buffers that a module was given and has in its dict of states."""
SCRIPTED = "#scripted"
"""A cell of a module that TorchScript has compiled."""
COMPUTED: list[Callable[[Machine, Ref, Value, ast.AST], Value]] = []
_SIZES = ("kernel_size", "stride", "padding", "dilation", "output_padding")

MODULE_METHODS = {
    "parameters", "named_parameters", "modules", "named_modules", "children", "named_children", "state_dict",
    "load_state_dict", "train", "eval", "to", "cuda", "cpu", "float", "half", "double", "bfloat16", "type",
    "requires_grad_", "zero_grad", "apply", "register_buffer", "register_parameter", "add_module", "register_module",
    "register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook",
    "register_full_backward_pre_hook", "buffers", "named_buffers",
    "share_memory", "get_submodule", "get_parameter", "extra_repr", "compile",
}  # fmt: skip


class Members(NamedTuple):
    """What belongs to a module, itself included: parameters, modules, and whether that is all."""

    parameters: tuple[tuple[str, Ref], ...]
    modules: tuple[tuple[str, Ref], ...]
    complete: bool


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
    m.store.set(part.address, state._replace(requires_grad=trains))
    layer = Layer("", (("parameters", part.address),))
    m.write(ref, layer)
    if m.judge is not None:
        m.judge.flags.shows_as_module(ref, site)
    return layer


# -- attributes and items


def attribute(m: Machine, ref: Ref, content: Layer, name: str, node: ast.AST, *, called: bool) -> Value:
    """An attribute of a module of torch.nn, or of one that is only known to be a module."""
    entry = _computed_entry(m, ref, PARAMETRIZED, name)
    if entry is not None:
        return COMPUTED[0](m, ref, entry, node)
    if name in MODULE_METHODS:
        return Method(ref, name, node)
    for part, address in content.parameters:
        if part == name:
            return Ref(address)
    for part, value in content.children:
        if part == name:
            return value
    if called:
        return Method(ref, name, node)
    if name == "training":
        return Number("bool")
    if name == "_modules" and content.name:
        return ref  # it is written and read by the names of the children, as the module itself here
    if name == "module":
        return ref  # DataParallel and DDP wrap; what they wrap is what we look at
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
        return NONE if name in ("weight", "bias") else _setting(content, name)
    value = m.place_part(ref.address, name, Opaque(f"a part of {words_of(node)}", (ref,), Origin(node, name)))
    m.write_cell(ref, name, value)
    return value


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
    return found


def set_parameter(m: Machine, ref: Ref, content: Layer, name: str, new: Value) -> bool:
    """`layer.weight = other.weight`, or a child by its name: the layer computes with it; False for other names."""
    if name in dict(content.children):
        set_child(m, ref, const(name), new)
        return True
    if name not in dict(content.parameters):
        return False
    kept = tuple(pair for pair in content.parameters if pair[0] != name)
    if type(new) is Ref and m.tensor(new) is not None:
        kept = tuple((part, new.address if part == name else at) for part, at in content.parameters)
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
            for name, child in content.children:
                visit(child, f"{path}.{name}".lstrip("."))
            if content.rest is not None:
                visit(content.rest, path)
            attributes(ref, path)
        elif type(content) is Instance and m.classes[content.owner].is_module:
            modules[ref] = path
            attributes(ref, path)
        elif type(content) is Opaque:
            complete[0] = False

    def attributes(ref: Ref, path: str) -> None:
        for name in m.attributes.get(ref.address & ~1, ()):
            if name.startswith("#") or name == "grad":
                continue
            cell = m.cells.get((ref.address, name))
            if cell is None or type(cell) in (Const, Number, Text):
                continue
            if type(cell) is Ref and type(m.cells.get(cell.address)) in (Tensor, Layer, Instance):
                enter(cell, f"{path}.{name}".lstrip("."))
            elif type(cell) in (Union, Each):
                visit(cell, f"{path}.{name}".lstrip("."))

    visit(value, "")
    return Members(
        tuple((name, ref) for ref, name in parameters.items()),
        tuple((name, ref) for ref, name in modules.items()),
        complete[0],
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


def training_of(m: Machine, ref: Ref) -> Value | None:
    """The `training` flag of a module, as a value; None when nothing is known."""
    return m.cells.get((ref.address, "training"))


# -- calling


def call_layer(m: Machine, ref: Ref, content: Layer, call: Call) -> Value:
    """Call a module of torch.nn."""
    for answer in ON_PACKED:
        packed = answer(m, ref, content, call)
        if packed is not None:
            return packed
    if content.name == "torch.nn.Sequential" or (
        content.children and not content.parameters and content.name == ""
    ):
        return _chain(m, content, call)
    trains = tuple(
        Operand("parameters", Ref(at), m.cells[at], part.startswith("bias"))
        for part, at in content.parameters
        if at in m.cells and not part.startswith("parametrizations.")
    )
    trains = (*trains, *_computed_now(m, ref, call.node))
    known = load().module(content.name) if content.name else None
    if known is None:
        return opaque_forward(m, ref, list(trains), call)
    op = known.eval if training_of(m, ref) == FALSE else known.train
    options = dict(content.options)
    inputs = bind(m, call.node, op, call.args, call.keywords)
    inputs = inputs._replace(operands=(*inputs.operands, *trains))
    if options.get("inplace") == TRUE and "inplace" in op.forms:
        op = op.forms["inplace"]
        maker = m.site_of(ref.address)
        mutate(m, call.node, op, inputs, content.name.rpartition(".")[2], maker=maker)
    elif op is known.train and "none" in op.forms:
        op = dropping(op, op, options.get("p"))
    truth, through = carried(op, inputs)
    value = results(m, call.node, op, inputs, content.name.rpartition(".")[2], "", (truth, through))
    if m.judge is not None and "hx" in inputs.arguments and content.name.endswith("Cell"):
        m.judge.recurrences.called(call.node, inputs.arguments["hx"], value)
    value = _without_left_out(content, call, value)
    if options.get("return_indices") == TRUE and m.tensor(value) is not None:
        value = Tuple(
            (value, m.new(call.node, Tensor(dtype=INTEGER, view=MAYBE, inference=made_in(m)), "indices"))
        )
    if "reduction" in options or "reduce" in options:
        told = options.get("reduction")
        if type(value) is Ref and (type(told) is not Const or told.value == "none"):
            m.store.set(each_key(value.address), EACH if type(told) is Const else 0)
    return value


_LEFT_OUT = {"torch.nn.MultiheadAttention": (4, "need_weights", 1)}
"""An argument of the forward by position and name, and the result that is None where it is false."""


def _without_left_out(content: Layer, call: Call, value: Value) -> Value:
    """The results of a module that was told to leave one out."""
    if content.name not in _LEFT_OUT or type(value) is not Tuple:
        return value
    at, name, result = _LEFT_OUT[content.name]
    told = call.argument(at, name)
    if told is None or told == TRUE:
        return value
    left_out = NONE if told == FALSE else join(value.items[result], NONE)
    return value._replace(items=(*value.items[:result], left_out, *value.items[result + 1 :]))


EACH = 1
"""What a loss gives that is not reduced: one element for each sample."""


def each_key(address: int) -> tuple[int, str]:
    """The cell of a loss that is, or may be, not reduced."""
    return (address, "#each")


def _chain(m: Machine, content: Layer, call: Call) -> Value:
    value: Value = call.args[0] if call.args else Unknown()
    for number, (_, child) in enumerate(content.children):
        with m.numbered(call.node, number):
            value = call_value(m, child, Call(call.node, (value,)))
    if content.rest is not None:
        for number in range(2):
            with m.numbered(call.node, len(content.children) + number):
                value = call_value(m, content.rest, Call(call.node, (value,)))
    return value


def opaque_forward(m: Machine, ref: Ref, trains: list[Operand], call: Call) -> Value:
    """What a module gives of which only the parameters are known."""
    site = call.node
    operands = list(trains)
    saved = NOTHING
    for at, value in enumerate(call.all_values()):
        operands += operands_of(m, f"arg{at}", value)
        if surely_asks(m, value):  # its gradient is computed from the weights
            saved = NOTHING.union(*(o.state.storage for o in trains if len(o.state.storage) == 1))
    through = [o for o in operands if o.state.requires_grad & YES]
    truth = NO
    for operand in through:
        truth = YES if YES in (operand.state.requires_grad, truth) else truth | operand.state.requires_grad
    unknown = any(m.is_unknown(value) for value in call.all_values())
    if truth == NO and (unknown or not trains or _holds_unknown(m, ref)):
        truth = MAYBE  # what is not seen of the module may train
    address = m.address(site, "module result")
    func = site.func if isinstance(site, ast.Call) else site
    given = Inputs({}, tuple(operands), ())
    state = computed(
        m,
        site,
        address,
        f"{ast.unparse(func)}()",
        (),
        in_mode(m, truth),
        through,
        given,
        FLOAT,
        also_saved=saved,
    )
    m.place(address, state._replace(loose=True))
    return Ref(address)


def _holds_unknown(m: Machine, ref: Ref) -> bool:
    """Whether a module, or one in it, has an attribute of which nothing is known: it may be a module that trains."""
    return any(
        any(
            m.is_unknown(m.cells.get((inner.address, name)))
            for name in m.attributes.get(inner.address & ~1, ())
        )
        for _, inner in members(m, ref).modules
    )


def ran(m: Machine, ref: Ref, value: Value) -> None:
    """A module has given a value."""
    if (ref.address, SCRIPTED) in m.cells:
        as_one_node(m, value)


def as_one_node(m: Machine, value: Value) -> None:
    """What TorchScript gives is made by ops, or by one node that stands for several."""
    for ref, state in held_tensors(m, value):
        if state.requires_grad & YES and state.is_leaf & NO:
            m.store.set(ref.address, state._replace(grad_fn=state.grad_fn | {ANY_FN}, view=state.view | NO))


def call_module(m: Machine, ref: Ref, content: Instance, call: Call) -> Value:
    """Call an instance of a module class of the file: its forward, or that of the torch.nn class it extends."""
    forward = find_in_class(m, content.owner, "forward")
    if type(forward) is Function and not forward.modes and not _is_followed(m, forward, call):
        return _not_followed(m, ref, call)
    if forward is not None:
        return call_value(m, Bound(forward, ref), call)
    return base_forward(m, ref, call)


def _is_followed(m: Machine, forward: Function, call: Call) -> bool:
    return m.imports is None or m.imports.follows(m, forward, call.node)


def _not_followed(m: Machine, ref: Ref, call: Call) -> Value:
    """What a module of another file gives whose forward is not run any more: as of one that is only known to be one."""
    operands = [Operand(f"#{name}", part, m.cells[part.address]) for name, part in members(m, ref).parameters]
    result = opaque_forward(m, ref, operands, call)
    words = frozenset({f"{words_of(call.node)} is computed from its parameters"})
    m.update(result, lambda t: t._replace(assumes=t.assumes | words) if type(t) is Tensor else t)
    return result


def base_forward(m: Machine, ref: Ref, call: Call) -> Value:
    """The forward that a class of the file has from the class of torch.nn that it extends."""
    base = m.cells.get(getattr(m.cells.get((ref.address, BASE)), "address", -1))
    if type(base) is not Layer:
        operands = [
            Operand(f"#{name}", part, m.cells[part.address]) for name, part in members(m, ref).parameters
        ]
        return opaque_forward(m, ref, operands, call)
    if base.name == "torch.nn.Sequential":
        parts = ((name, m.cells.get((ref.address, name))) for name in m.attributes.get(ref.address & ~1, ()))
        chain = tuple((name, part) for name, part in parts if not name.startswith("#") and is_module(m, part))
        return _chain(m, base._replace(children=chain), call)
    held = ((part, m.cells.get((ref.address, part))) for part, _ in base.parameters)
    now = tuple(
        (part, cell.address) for part, cell in held if type(cell) is Ref and m.tensor(cell) is not None
    )
    return call_layer(m, ref, base._replace(parameters=now), call)


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
    if type(label) is not Const or len(call.args) <= 1 or type(receiver) is not Ref:
        return
    if type(m.cells.get(receiver.address)) is Layer and is_module(m, call.args[1]):
        set_child(m, receiver, label, call.args[1])
    else:
        m.write_cell(receiver, label.value, call.args[1])
    if name == "register_buffer" and call.argument(2, "persistent") != FALSE:
        known = m.cells.get((receiver.address, BUFFERS))
        labels = dict.fromkeys((*(known.items if type(known) is Tuple else ()), label))
        m.write_cell(receiver, BUFFERS, Tuple(tuple(labels)))


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
            if m.judge is not None and name == "eval":
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
    return unknown_call(m, call, f"the result of `{name}`", receiver)


def _assigned(m: Machine, receiver: Value, given: Value) -> None:
    """`load_state_dict(state, assign=True)`: the parameters lie where what is given does."""
    content = m.cells.get(getattr(given, "address", -1))
    every = NOTHING.union(*(state.storage for _, state in held_tensors(m, given)))
    for name, ref in members(m, receiver).parameters:
        own = content.get(const(name)) if type(content) is Dict else None
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
    for known, ref in pairs:
        if type(path) is Const and path.value == known:
            return ref
    if name == "get_buffer" or not found.complete or not pairs or type(path) is Const:
        return m.unknown(call.node, f"the result of {name}", (receiver,), "member")
    return join_all([ref for _, ref in pairs])


def clear_gradients(m: Machine, leaves: Iterable[int], call: Call, optimizer: int = 0) -> None:
    """`zero_grad()`: gradients are None afterwards, unless `set_to_none=False`."""
    if m.judge is not None:
        m.judge.protocol.clear(leaves, call.node, optimizer)
    flag = call.argument(0, "set_to_none")
    if flag is not None and flag != TRUE:
        return
    for leaf in leaves:
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
    if not pairs and name.endswith("children"):
        part: Value = m.unknown(call.node, flags.CHILD)
        part = Tuple((Text(), part)) if name.startswith("named_") else part
        return m.new(call.node, Sequence("generator", None, part), name)
    if not pairs:
        return m.new(call.node, Sequence("generator", None, Unknown("a member of a module")), name)
    named = name.startswith("named_")
    items = tuple(Tuple((const(path), ref)) if named else ref for path, ref in pairs)
    made = m.new(call.node, Sequence("members", items, nonempty=True), name)
    if m.judge is not None:
        m.judge.protocol.generator(made)
    return made


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
            parts.append((const(name), Ref(address)))
    rest = None if parts else Unknown("a tensor of a state_dict")
    return m.new(call.node, Dict(tuple(parts), rest, Text() if rest else None, "state_dict"), "state_dict")


def _grow(m: Machine, receiver: Value, name: str, call: Call) -> Value:
    new = call.args[-1] if call.args else None

    def change(content: object) -> object:
        if type(content) is not Layer or new is None:
            return content
        if name == "append":
            return content._replace(children=(*content.children, (str(len(content.children)), new)))
        return content._replace(rest=new if content.rest is None else join(content.rest, new))

    m.update(receiver, change)
    return receiver


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
