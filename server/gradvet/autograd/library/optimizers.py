"""Optimizers: what they own, their groups of parameters, what they remember of each, and the scaler beside them."""

import ast
from functools import partial

from gradvet.autograd.library import layers, module_methods
from gradvet.autograd.library.made_tensors import combined
from gradvet.autograd.library.storages import changed_unseen, count_change
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import NOTHING, Origin, Tensor
from gradvet.autograd.memory.values import (
    FALSE,
    NONE,
    Const,
    Dict,
    Each,
    Number,
    Optimizer,
    Ref,
    Sequence,
    Text,
    Tuple,
    Unknown,
    Value,
    atoms,
    const,
)
from gradvet.autograd.python.calls import MAKE_BASE, Call, ClassInfo, begin, call_value
from gradvet.autograd.python.objects import element_of, items_of
from gradvet.autograd.python.operators import grow

_BASES = frozenset({"torch.optim.Optimizer", "torch.optim.optimizer.Optimizer"})
METHODS = frozenset({"zero_grad", "add_param_group", "load_state_dict"})
"""What an optimizer of the file has from its base; its `step` is its own."""
SCALES = "#scales"
_SETTINGS = ("lr", "weight_decay", "momentum", "eps", "dampening")
PARAMS = const("params")
PAIR = 2


def made(m: Machine, ref: Ref, call: Call) -> None:
    """An optimizer of torch has just been made: give it its `param_groups` and `state` (torch/optim/optimizer.py)."""
    given = call.argument(0, "params")
    if given is None or not owned_by(m, given).owns:
        return
    settings = Dict(tuple((const(word), value) for word, value in call.keywords.items() if word != "params"))
    remembered = m.new(call.node, Tensor(origin=Origin(call.node, "state of the optimizer")), "remembered")
    m.update(remembered, lambda t: t._replace(storage=frozenset({remembered.address})))
    _set_up(m, ref, given, settings, Dict((), remembered, Text()), call)


def init_base(m: Machine, receiver: Ref, owner: int, call: Call) -> None:
    """`super().__init__(params, defaults)` of an optimizer of the file."""
    given = call.argument(0, "params")
    if not extends_one(m.classes[owner]) or given is None:
        return
    defaults = call.argument(1, "defaults")
    content = m.cells.get(getattr(defaults, "address", -1))
    if m.is_unknown(given):
        given = m.new(call.node, Sequence("list", None, _any_parameter(m, call), nonempty=True), "given")
    _set_up(m, receiver, given, content if type(content) is Dict else Dict(), Dict(), call)
    m.write_cell(receiver, "defaults", defaults if defaults is not None else Unknown("settings"))


def _any_parameter(m: Machine, call: Call) -> Ref:
    """What stands for the parameters of an optimizer, of which nothing is known: a leaf that requires grad."""
    made = m.new(call.node, Tensor(), "parameter")
    assumes = frozenset({"an optimizer is given parameters that train"})
    m.store.set(made.address, layers.parameter_state(made.address, Origin(call.node, "a parameter"), assumes))
    return made


def extends_one(info: ClassInfo) -> bool:
    """Whether a class of the file is an optimizer."""
    return bool(info.external & _BASES)


def of_instance(m: Machine, ref: Ref) -> Optimizer:
    """What an optimizer of the file owns."""
    return owned_by(m, m.cells.get((ref.address, "param_groups"), Unknown("groups")))


def _set_up(m: Machine, ref: Ref, given: Value, settings: Dict, remembered: Dict, call: Call) -> None:
    groups = m.new(call.node, _groups(m, given, settings, call), "param_groups")
    each = m.new(call.node, remembered, "state of a parameter")
    m.write_cell(ref, "param_groups", groups)
    m.write_cell(ref, "state", m.new(call.node, Dict((), each, Unknown("a parameter")), "state"))


def _groups(m: Machine, given: Value, settings: Dict, call: Call) -> Sequence:
    """The groups in what an optimizer is given: dicts, which it keeps, or parameters that make one group."""
    items = items_of(m, given)
    if items and all(_is_group(m, item) for item in items):
        for at, item in enumerate(items):
            params = _parameters(m, m.cells[item.address].get(PARAMS), call, f"params {at}")
            m.update(item, partial(_as_group, params=params, settings=settings))
        return Sequence("list", items)
    if items is None and _is_group(m, element_of(m, given, call.node)):
        return Sequence("list", None, element_of(m, given, call.node), nonempty=True)
    params = _parameters(m, given, call, "params")
    return Sequence("list", (m.new(call.node, _filled(Dict(((PARAMS, params),)), settings), "group"),))


def _is_group(m: Machine, value: Value) -> bool:
    content = m.cells.get(getattr(value, "address", -1))
    return type(content) is Dict and content.get(PARAMS) is not None


def _parameters(m: Machine, value: Value, call: Call, tag: str) -> Value:
    """The list of parameters of one group; of pairs with names, what is named."""
    items = (value,) if m.tensor(value) is not None and type(value) is Ref else items_of(m, value)
    if items is None:
        items = tuple(ref for atom in atoms(value) if type(atom) is Each for ref in atom.refs) or None
    if items is None:
        return m.new(call.node, Sequence("list", None, element_of(m, value, call.node), nonempty=True), tag)
    plain = tuple(i.items[1] if type(i) is Tuple and len(i.items) == PAIR else i for i in items)
    return m.new(call.node, Sequence("members", plain, nonempty=True), tag)


def _as_group(content: object, params: Value, settings: Dict) -> object:
    return _filled(content.put(PARAMS, params), settings) if type(content) is Dict else content


def _filled(group: Dict, settings: Dict) -> Dict:
    """A group with the settings that it does not have by itself."""
    for key, value in settings.items:
        if group.get(key) is None:
            group = group.put(key, value)
    for word in _SETTINGS:
        if group.get(const(word)) is None:
            group = group.put(const(word), Number("float"))
    return group._replace(rest=Unknown("a setting of the optimizer"))


# -- methods


def call_method(m: Machine, ref: Ref, content: Optimizer, name: str, call: Call) -> Value:
    """A method of an optimizer, or one of the file's that it has from its base."""
    if name == "step":
        value: Value = NONE
        if call.args and call.args[0] != NONE:
            value = call_value(m, call.args[0], Call(call.node, ()))
        _step(m, content, call.node)
        if m.judge is not None:
            m.judge.stepped(ref, content, call.node)
        return value
    if name == "zero_grad":
        module_methods.clear_gradients(m, content.owns, call, ref.address)
    if name == "add_param_group" and call.args:
        owned = owned_by(m, call.args[0])
        m.update(
            ref,
            lambda c: (
                Optimizer(c.owns | owned.owns, c.all_known and owned.all_known) if type(c) is Optimizer else c
            ),
        )
        groups = m.cells.get((ref.address, "param_groups"))
        if groups is not None and _is_group(m, call.args[0]):
            new = _groups(m, m.new(call.node, Sequence("list", (call.args[0],)), "new groups"), Dict(), call)
            grow(m, groups, list(new.items or ()), call.node)
    return (
        NONE
        if name in ("zero_grad", "load_state_dict", "add_param_group")
        else Unknown(f"the result of `{name}`")
    )


def _step(m: Machine, content: Optimizer, site: ast.AST) -> None:
    """A step changes in place the parameters that have a gradient."""
    for leaf in sorted(content.owns):
        state, gradient = m.cells.get(leaf), m.cells.get((leaf, "grad"), NONE)
        if type(state) is not Tensor or gradient == NONE:
            continue
        certain = type(gradient) is Ref
        if m.judge is not None:
            m.judge.walks.changed(site, Ref(leaf), state, None, "step()", certain=certain)
        count_change(m, state, certain=certain)
        changed_unseen(m, Ref(leaf), state)


def owned_by(m: Machine, value: Value, depth: int = 0) -> Optimizer:
    """The leaves in what an optimizer is given."""
    owns: frozenset[int] = NOTHING
    known = True
    for atom in atoms(value):
        if type(atom) is Tuple:
            parts: list[Value] = list(atom.items)
        elif type(atom) is Each:
            parts = list(atom.refs)
        elif type(atom) is Ref:
            begin(m, atom)
            content = m.cells.get(atom.address)
            if type(content) is Tensor:
                owns |= {atom.address}
                continue
            if type(content) is Sequence:
                parts = [v for v in (*(content.items or ()), content.rest) if v is not None]
            elif type(content) is Dict:
                inner = content.get(const("params"))
                parts = [inner] if inner is not None else [v for _, v in content.items]
            else:
                known = False
                if m.judge is not None:
                    m.judge.cut_notes.may_train(atom)
                continue
        elif type(atom) in (Const, Text, Number):
            continue
        else:
            known = False
            continue
        if depth < 6:  # noqa: PLR2004
            for part in parts:
                found = owned_by(m, part, depth + 1)
                owns |= found.owns
                known = known and found.all_known
    return Optimizer(owns, known)


# -- the scaler of losses


def make_scaler(m: Machine, name: str, call: Call) -> Value:
    """A GradScaler; one without its device is off, and then it gives back the very loss (torch/amp/grad_scaler.py)."""
    ref = m.unknown(call.node, "a GradScaler", (), "scaler")
    on_cpu = "cuda" not in name and call.argument(0, "device") == const("cpu")
    enabled = call.keywords.get("enabled")
    if m.judge is not None:
        m.judge.protocol.scaler_made(ref, enabled)
    if enabled == FALSE:
        m.write_cell(ref, SCALES, const(False))
    elif on_cpu and (enabled is None or (type(enabled) is Const and enabled.value)):
        m.write_cell(ref, SCALES, const(True))
    return ref


def scaled(m: Machine, scaler: Ref, loss: Value, call: Call) -> Value:
    """`scaler.scale(loss)`."""
    sure = m.cells.get((scaler.address, SCALES))
    if sure == FALSE:
        return loss
    result = combined(m, call.node, "scale()", [loss], fn=("MulBackward0",))
    if m.judge is not None:
        m.judge.protocol.scales(scaler, result, call.node)
    state = m.tensor(loss)
    if sure is None and state is not None:
        m.update(result, lambda t: _or_itself(t, state))
    return result


def _or_itself(scaled: Tensor, loss: Tensor) -> Tensor:
    return scaled._replace(
        grad_fn=scaled.grad_fn | loss.grad_fn,
        view=scaled.view | loss.view,
        storage=scaled.storage | loss.storage,
    )


MAKE_BASE.append(init_base)
