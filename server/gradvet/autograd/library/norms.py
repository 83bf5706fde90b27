"""Parameters that are computed from others: `weight_norm`, `spectral_norm`, and parametrizations of any kind.

The old functions of torch.nn.utils keep the computed tensor as an attribute, made anew by a hook before each
forward; a parametrization computes it whenever it is looked at (torch/nn/utils/parametrize.py). Both measured.
"""

import ast

from gradvet.autograd.library import layers
from gradvet.autograd.library.externals import handles
from gradvet.autograd.library.made_tensors import combined
from gradvet.autograd.machine import MODE, Machine
from gradvet.autograd.memory.domain import NO, NO_FN, NO_GRAD, NOTHING, YES, Tensor, switched
from gradvet.autograd.memory.values import NONE, Const, External, Instance, Layer, Ref, Tuple, Value, const
from gradvet.autograd.python.calls import Call, call_value

_PRUNE = "torch.nn.utils.prune."
_PRUNED = (("{}_orig",), ("MulBackward0",))
_OLD = {
    **dict.fromkeys(
        (
            f"{_PRUNE}{how}"
            for how in (
                "identity",
                "random_unstructured",
                "l1_unstructured",
                "random_structured",
                "ln_structured",
                "custom_from_mask",
            )
        ),
        _PRUNED,
    ),
    "torch.nn.utils.weight_norm": (("{}_g", "{}_v"), ("WeightNormInterfaceBackward0",)),
    "torch.nn.utils.spectral_norm": (("{}_orig",), ("DivBackward0",)),
}
_NEW = "torch.nn.utils.parametrizations."
_ORIGINAL = "parametrizations.{}.original"
_PARTS = {
    "weight_norm": ((_ORIGINAL + "0", _ORIGINAL + "1"), ("WeightNormInterfaceBackward0",)),
    "spectral_norm": ((_ORIGINAL,), ("DivBackward0",)),
    "orthogonal": ((_ORIGINAL,), ()),
}
_NODES = "gradvet.nodes:"
_TRIED = 49


@handles(*_OLD)
def _old_norm(m: Machine, name: str, call: Call) -> Value:
    names, nodes = _OLD[name]
    module = _replaced(m, call, names, layers.NORMED, nodes)
    if module is not None and name.endswith("spectral_norm"):
        word = _word(call)
        made = m.cells.get((module.address, word))
        if type(made) is Ref:  # until the first forward it is a plain copy
            m.update(made, _plain)
    return call.args[0] if call.args else NONE


def _plain(content: object) -> object:
    if type(content) is not Tensor:
        return content
    return content._replace(requires_grad=NO, is_leaf=YES, grad_fn=NO_FN, nodes=NOTHING, leaves=NOTHING)


@handles(*(f"{_NEW}{short}" for short in _PARTS))
def _new_norm(m: Machine, name: str, call: Call) -> Value:
    _replaced(m, call, *_spread(_PARTS[name.removeprefix(_NEW)]))
    return call.args[0] if call.args else NONE


def _spread(known: tuple[tuple[str, ...], tuple[str, ...]]) -> tuple[tuple[str, ...], str, tuple[str, ...]]:
    names, nodes = known
    return names, layers.PARAMETRIZED, nodes


@handles("torch.nn.utils.parametrize.register_parametrization")
def _register(m: Machine, name: str, call: Call) -> Value:
    how = call.argument(2, "parametrization")
    word = _word(call)
    module = _replaced(m, call, (_ORIGINAL,), layers.PARAMETRIZED, (), how)
    if module is not None and type(how) is Ref:
        content = m.cells.get(module.address)
        if type(content) is Layer:
            child = (f"parametrizations.{word}.0", how)
            m.update(module, lambda c: c._replace(children=(*c.children, child)) if type(c) is Layer else c)
        else:
            m.write_cell(module, f"parametrizations.{word}.0", how)
        _tried(m, module, call)
    return call.args[0] if call.args else NONE


def _tried(m: Machine, module: Ref, call: Call) -> None:
    """What is registered is run at once, to see what it gives, and does not record then."""
    entry = m.cells[module.address, layers.PARAMETRIZED].items[-1]
    before = m.mode
    m.store.set(MODE, switched(before, NO_GRAD))
    with m.numbered(call.node, _TRIED):
        computed(m, module, entry, call.node)
    m.store.set(MODE, before)


@handles(
    "torch.nn.utils.remove_weight_norm", "torch.nn.utils.remove_spectral_norm",
    "torch.nn.utils.parametrize.remove_parametrizations", f"{_PRUNE}remove",
)  # fmt: skip
def _remove(m: Machine, name: str, call: Call) -> Value:
    """The computed tensor becomes a parameter again."""
    module, word = call.args[0] if call.args else NONE, _word(call)
    content = m.cells.get(getattr(module, "address", -1))
    if type(content) is not Layer or type(module) is not Ref:
        return module
    gone = {n.format(word) for names, _ in (*_OLD.values(), *_PARTS.values()) for n in names}
    kept = tuple(pair for pair in content.parameters if pair[0] not in gone)
    computed_now = m.tensor(layers.attribute(m, module, content, word, call.node, called=False))
    made = layers.parameter(m, call.node, f"parameter {word}", word)
    if computed_now is not None:  # its data becomes the parameter's
        places = computed_now.storage
        m.update(made, lambda t: t._replace(storage=t.storage | places) if type(t) is Tensor else t)
    m.update(
        module, lambda c: c._replace(parameters=((word, made.address), *kept)) if type(c) is Layer else c
    )
    for cell in (word, layers.NORMED, layers.PARAMETRIZED):
        m.store.set((module.address, cell), None)
    return module


@handles("torch.nn.utils.parametrize.cached")
def _cached(m: Machine, name: str, call: Call) -> Value:
    return External(f"{name}()")


def _word(call: Call) -> str:
    value = call.argument(1, "tensor_name" if "parametriz" in ast.dump(call.node) else "name")
    return str(value.value) if type(value) is Const else "weight"


def _replaced(
    m: Machine,
    call: Call,
    names: tuple[str, ...],
    cell: str,
    nodes: tuple[str, ...],
    how: Value | None = None,
) -> Ref | None:
    """Put parameters of these names in the place of the one that is computed from now on; the module, if it is known."""
    module, word = call.args[0] if call.args else NONE, _word(call)
    if type(module) is not Ref or module.address & 1:
        return None
    content = m.cells.get(module.address)
    if type(content) is Layer and word in dict(content.parameters):
        states = [m.tensor(content.own(word))]
    elif type(content) is Instance and type(m.cells.get((module.address, word))) is Ref:
        states = [m.cells.get(m.cells[module.address, word].address)]
    else:
        return None
    made = []
    for name in (each.format(word) for each in names):
        ref = layers.parameter(m, call.node, f"{name} of {module.address}", name)
        if type(states[0]) is Tensor and states[0].requires_grad == NO:
            m.update(ref, lambda t: t._replace(requires_grad=NO, leaves=NOTHING))
        made.append((name, ref.address))
    if type(content) is Layer:
        kept = tuple(pair for pair in content.parameters if pair[0] != word)
        m.update(module, lambda c: c._replace(parameters=(*kept, *made)) if type(c) is Layer else c)
    else:
        for name, address in made:
            m.write_cell(module, name, Ref(address))
    recipe = how if how is not None else External(_NODES + "|".join(nodes))
    known = m.cells.get((module.address, cell))
    entries = known.items if type(known) is Tuple else ()
    entry = Tuple((const(word), Tuple(tuple(const(name) for name, _ in made)), recipe))
    m.store.set((module.address, cell), Tuple((*entries, entry)))
    if cell == layers.NORMED or type(content) is Instance:
        m.write_cell(module, word, computed(m, module, entry, call.node))
    return module


def computed(m: Machine, module: Ref, entry: Value, node: ast.AST) -> Value:
    """The tensor of such a name, as it is made now."""
    word, names, recipe = entry.items
    content = m.cells.get(module.address)
    originals: list[Value] = []
    for name in names.items:
        own = content.own(name.value) if type(content) is Layer else None
        held = own if own is not None else m.cells.get((module.address, name.value))
        if held is not None:
            originals.append(held)
    if type(recipe) is External and recipe.name.startswith(_NODES):
        nodes = tuple(name for name in recipe.name.removeprefix(_NODES).split("|") if name)
        return combined(m, node, f"`{word.value}`", originals, fn=nodes, tag=f"computed {word.value}")
    return call_value(m, recipe, Call(node, tuple(originals)))


layers.COMPUTED.append(computed)
