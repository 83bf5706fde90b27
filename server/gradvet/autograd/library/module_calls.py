"""Calls of modules: of torch.nn, of the file, and of those of which only the parameters are known."""

import ast
from collections.abc import Iterable
from functools import partial

from gradvet.autograd.held import held_tensors, surely_asks
from gradvet.autograd.knowledge.lookup import load
from gradvet.autograd.library import hooks
from gradvet.autograd.library.inputs import bind, carried, in_mode, made_in, operands_of
from gradvet.autograd.library.kept import Inputs, Operand
from gradvet.autograd.library.layers import (
    BASE,
    ON_PACKED,
    SCRIPTED,
    _computed_now,
    is_module,
    members,
    training_of,
    words_of,
)
from gradvet.autograd.library.open_modules import OTHERS
from gradvet.autograd.library.operations import dropping, mutate, results
from gradvet.autograd.library.results import computed
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import (
    ANY_FN,
    FLOAT,
    INTEGER,
    MAYBE,
    NO,
    NOTHING,
    YES,
    Tensor,
)
from gradvet.autograd.memory.values import (
    FALSE,
    NONE,
    TRUE,
    Bound,
    Const,
    Function,
    Instance,
    Layer,
    Ref,
    Tuple,
    Unknown,
    Value,
    join,
)
from gradvet.autograd.python.calls import Call, call_value, find_in_class

MOST_PARTS = 40
"""How many parts of an unknown module may have hooks."""


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
    if not content.name and content.own(OTHERS) is not None:
        return _open_forward(m, ref, call)
    own = ((part, content.own(part)) for part in dict(content.parameters))
    trains = tuple(
        Operand("parameters", value, state, part.startswith("bias"))
        for part, value in own
        if not part.startswith("parametrizations.") and (state := m.tensor(value)) is not None
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


def _open_forward(m: Machine, ref: Ref, call: Call) -> Value:
    """What a module gives of which nothing is known but parts; those that have hooks are run by it, on nobody knows what."""
    inside = members(m, ref)
    made = []
    for number, (_, part) in enumerate(inside.modules[1:MOST_PARTS]):
        if m.hooks.of_modules.get(part.address & ~1):
            with m.numbered(call.node, number):
                unknown = m.unknown(call.node, "what a part of a module is given", (), "given")
                forward = partial(_of_parameters, m, part)
                made.append(hooks.around(m, part, Call(call.node, (unknown,)), forward))
    return _of_parameters(m, ref, call, made)


def _of_parameters(m: Machine, ref: Ref, call: Call, beside: Iterable[Value] = ()) -> Value:
    trains = [Operand("parameters", part, m.cells[part.address]) for _, part in members(m, ref).parameters]
    return opaque_forward(m, ref, [*trains, *_computed_now(m, ref, call.node)], call, beside)


def opaque_forward(
    m: Machine, ref: Ref, trains: list[Operand], call: Call, beside: Iterable[Value] = ()
) -> Value:
    """What a module gives of which only the parameters are known, and what some of its parts have given."""
    site = call.node
    operands = list(trains)
    saved = NOTHING
    for at, value in enumerate((*call.all_values(), *beside)):
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
    held = ((part, m.cells.get((ref.address, part))) for part in dict(base.parameters))
    now = tuple(
        (part, cell.address) for part, cell in held if type(cell) is Ref and m.tensor(cell) is not None
    )
    return call_layer(m, ref, base._replace(parameters=now), call)
