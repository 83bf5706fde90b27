"""Modules of which no more is known than that they have parameters: these stand as one, beside what is looked at by itself.

What was true of all of them when a part of the module shows to be a module too is true of its own parameters:
whether they are frozen, whether an optimizer has them.
"""

import ast

from gradvet.autograd.graph import MOST_DEEP
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import MAYBE, NO, NOTHING, YES, Origin, Tensor
from gradvet.autograd.memory.values import ANY_ITEM, Const, Layer, Opaque, Ref, Unknown, Value, join

OTHERS = "parameters"
"""The name of what stands for the parameters of a module that are not known one by one."""
CHILDREN = "children()"
"""The name of what stands for any child of a module of which the children are not known."""
FLAG = "#flag"
"""The cell of the flag that something was given of which it was not known yet whether it is a module."""
_SEVERAL = (ANY_ITEM, "[*]", "*", CHILDREN)
ANOTHER = Unknown("another parameter of a module that is not known")


def stands_for_many(m: Machine, value: Value) -> bool:
    """Whether a value is what stands for parameters of which nobody knows how many there are."""
    return type(value) is Ref and value.address & ~1 in m.open_leaves


def one_of(m: Machine, value: Value) -> Value:
    """Some of several: what stands for all of them, or others."""
    return join(value, ANOTHER) if stands_for_many(m, value) else value


def holder_of(m: Machine, ref: Ref) -> tuple[Ref, str] | None:
    """What something unknown is a part of, and by which name: an attribute, an item, or what a getter gives."""
    content = m.cells.get(ref.address)
    if type(content) is not Opaque or not content.inputs or type(content.inputs[0]) is not Ref:
        return None
    holder = content.inputs[0]
    for name in m.attributes.get(holder.address & ~1, ()):
        if m.cells.get((holder.address, name)) == ref:
            return holder, name
    made = content.origin.node if content.origin is not None else None
    match made:
        case ast.Call(func=ast.Attribute(attr=name), args=[], keywords=[]) if name.startswith("get_"):
            return holder, getter_name(name)
        case ast.Call(func=ast.Name(id="getattr")):
            return holder, "*"
    return None


def whole_of(m: Machine, ref: Ref) -> Ref | None:
    """What stands for the parameters of the module of which something unknown is a part, itself among them."""
    for _ in range(MOST_DEEP):
        found = holder_of(m, ref)
        if found is None:
            return None
        ref = found[0]
        content = m.cells.get(ref.address)
        if type(content) is Layer and not content.name:
            return content.own(OTHERS)
    return None


def shown(m: Machine, ref: Ref, leaf: int, state: Tensor) -> Tensor:
    """The state of what stands for the parameters of something that has just shown to be a module.

    On another path it may have been known before; of a part of a module it is what was true of the whole.
    """
    m.open_leaves.add(leaf & ~1)
    part, whole = holder_of(m, ref), whole_of(m, ref)
    if part is not None and whole is not None:
        holder, name = part
        before = m.cells.get((holder.address, name))
        if before != ref:
            m.write_cell(holder, name, ref, certain=before is None)
        if name in _SEVERAL:
            m.several.add(leaf & ~1)
        held = m.cells.get(whole.address)
        if type(held) is Tensor and before in (None, ref):  # else it may be what was put there since
            state = state._replace(
                requires_grad=held.requires_grad,
                leaves=state.leaves if held.requires_grad & YES else NOTHING,
                assumes=state.assumes if held.assumes else frozenset(),
            )
            gradient = m.cells.get((whole.address, "grad"))
            if gradient is not None:
                m.store.set((leaf, "grad"), gradient)
            if m.judge is not None:
                m.judge.parted(whole.address, leaf)
    flag = m.cells.get((ref.address, FLAG))
    if type(flag) is int:
        state = state._replace(requires_grad=flag, assumes=state.assumes if flag & YES else frozenset())
    before = m.cells.get(leaf)
    if type(before) is Tensor and before.requires_grad != state.requires_grad:
        either = before.requires_grad | state.requires_grad
        state = state._replace(requires_grad=either, leaves=before.leaves | state.leaves)
    return state


def getter_name(method: str) -> str:
    """The name of the cell for what a method without arguments gives."""
    return f"{method}()"


def readable(path: str) -> str:
    """The name of a parameter by its path, as it is told; what stands for several is named by its module."""
    path = path.replace("[]", "[...]").replace("[*]", "[...]").replace(".[", "[")
    module, _, last = path.rpartition(".")
    if last != OTHERS:
        return path
    return f"parameters of `{module}`" if module else OTHERS


def child_of(m: Machine, module: Ref, reason: str, site: ast.AST) -> Ref:
    """What stands for any child of a module of which not all children are known."""
    part = m.place_part(module.address, CHILDREN, Opaque(reason, (module,), Origin(site, reason)))
    m.write_cell(module, CHILDREN, part)
    return part


def flag_set(m: Machine, value: Value, flag: Value, *, by_method: bool = False) -> None:
    """The flag of something unknown is set: parameters of the module that it is in may be among it, or of any module.

    A module takes it `by_method` alone.
    """
    wanted = (YES if flag.value else NO) if type(flag) is Const else MAYBE
    if type(value) is Unknown:
        for leaf in sorted(m.open_leaves) if wanted & YES else ():
            for address in (leaf, leaf | 1):
                some_train(m, Ref(address))
    elif type(value) is Ref and type(m.cells.get(value.address)) is Opaque:
        whole = whole_of(m, value)
        if whole is not None and wanted & YES:
            some_train(m, whole, asked=wanted == YES)
        if by_method:
            m.write_cell(value, FLAG, wanted)


def some_train(m: Machine, whole: Ref, *, asked: bool = False) -> None:
    """Some of the parameters for which a leaf stands train, as the program has `asked`, or perhaps do."""
    state = m.cells.get(whole.address)
    if type(state) is Tensor and state.requires_grad == NO:
        own = frozenset({whole.address})
        m.store.set(whole.address, state._replace(requires_grad=MAYBE, leaves=own))
    if asked and m.judge is not None:
        m.judge.freezes.some_train(whole.address & ~1)
