"""Copies of values: deep ones with everything anew, and shallow ones, which go on with the same parts."""

import ast
from collections.abc import Callable

from gradvet.autograd.library import hooks, serialised
from gradvet.autograd.library.externals import handles
from gradvet.autograd.library.inputs import made_in
from gradvet.autograd.library.layers import NORMED, PARAMETRIZED
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import NO, NOTHING, YES, Alias, Tensor
from gradvet.autograd.memory.values import (
    NONE,
    Bound,
    Dict,
    Each,
    Instance,
    Layer,
    Opaque,
    Ref,
    Sequence,
    Tuple,
    Union,
    Unknown,
    Value,
    join,
    join_all,
)
from gradvet.autograd.python.calls import Call
from gradvet.autograd.python.objects import CONTENT


@handles("copy.deepcopy", "copy.copy")
def _copied(m: Machine, name: str, call: Call) -> Value:
    if not call.args:
        return NONE
    if name == "copy.copy":
        return _shallow(m, call.args[0], call.node)
    serialised.copied(m, call.args[0], call.node)
    return copied(m, call.args[0], call.node, {})


def _shallow(m: Machine, value: Value, site: ast.AST) -> Value:
    """A container or an object anew with the same things in it; a tensor anew on the same storage, as a leaf."""
    match value:
        case Union(atoms=several):
            return join_all([_shallow(m, atom, site) for atom in several])
        case Each(refs=several):
            copies = [_shallow(m, ref, site) for ref in several]
            return Each(tuple(copy for copy in copies if type(copy) is Ref))
    if type(value) is not Ref:
        return value
    content = m.cells.get(value.address)
    if type(content) is Tensor:
        content = _on_same_storage(value, content, site)
    elif type(content) not in (Sequence, Dict, Layer, Instance):
        return value
    made = m.new(site, content, f"copy of {value.address}")
    if type(content) is Tensor:
        leaves = frozenset({made.address}) if content.requires_grad & YES else NOTHING
        m.update(made, lambda t: t._replace(leaves=leaves) if type(t) is Tensor else t)
        return made
    if type(content) in (Layer, Instance) and m.judge is not None:
        m.judge.snapshots.shallow[made.address & ~1] = site
    _copy_cells(m, value, made, lambda part: part)
    inside = m.cells.get((made.address, CONTENT))
    if inside is not None:
        m.write_cell(made, CONTENT, _shallow(m, inside, site))
    return made


def _on_same_storage(value: Ref, state: Tensor, site: ast.AST) -> Tensor:
    return Tensor(
        requires_grad=state.requires_grad,
        dtype=state.dtype,
        storage=state.storage,
        cuts=state.cuts,
        alias=Alias("copy", frozenset({value.address}), site),
        origin=state.origin,
        inference=state.inference,
        assumes=state.assumes,
        loose=state.loose,
        parameter=state.parameter,
    )


def _copy_cells(m: Machine, value: Ref, made: Ref, again: Callable[[Value], Value]) -> None:
    """The attributes of an object, what computes its parameters, and its hooks, which its copy has too."""
    for part in m.attributes.get(value.address & ~1, ()):
        cell = m.cells.get((value.address, part))
        if cell is not None and part != "grad":
            m.write_cell(made, part, again(cell))
    for part in (NORMED, PARAMETRIZED):
        cell = m.cells.get((value.address, part))
        if cell is not None:
            m.store.set((made.address, part), again(cell))
    hooks.copied(m, value, made)


def copied(m: Machine, value: Value, site: ast.AST, done: dict[int, Ref]) -> Value:
    """A deep copy: every object anew, aliases kept."""
    match value:
        case Tuple(items=parts):
            return value._replace(items=tuple(copied(m, item, site, done) for item in parts))
        case Union(atoms=several):
            return join_all([copied(m, atom, site, done) for atom in several])
        case Each(refs=several):
            return Each(tuple(copied(m, ref, site, done) for ref in several))
        case Bound(function=function, receiver=receiver):
            return Bound(function, copied(m, receiver, site, done))
    if type(value) is not Ref:
        return value
    if value.address in done:
        return done[value.address]
    content = m.cells.get(value.address)
    if content is None:
        return value
    address = m.address(site, f"copy of {value.address}")
    ref = done[value.address] = Ref(address)

    def again(x: Value) -> Value:
        return copied(m, x, site, done)

    match content:
        case Tensor():
            if value.address & ~1 in m.open_leaves:
                m.open_leaves.add(address)
            if value.address & ~1 in m.several:
                m.several.add(address)
            own = frozenset({address})
            content = content._replace(
                storage=own,
                leaves=own if content.requires_grad & YES else NOTHING,
                nodes=NOTHING,
                alias=None,
                view=NO,
                base=NOTHING,
                inference=made_in(m),
            )
        case Sequence():
            known = None if content.items is None else tuple(again(item) for item in content.items)
            content = content._replace(
                items=known, rest=None if content.rest is None else again(content.rest)
            )
        case Dict():
            items_ = tuple((key, again(item)) for key, item in content.items)
            content = content._replace(
                items=items_, rest=None if content.rest is None else again(content.rest)
            )
        case Layer():
            parameters = tuple((part, again(Ref(at)).address) for part, at in content.parameters)
            children = tuple((part, again(child)) for part, child in content.children)
            rest = None if content.rest is None else again(content.rest)
            content = content._replace(parameters=parameters, children=children, rest=rest)
        case Opaque():
            holder = content.inputs[0] if content.inputs else None
            kept = done.get(holder.address) if type(holder) is Ref else None
            content = content._replace(inputs=() if kept is None else (kept,))
    m.place(address, content)
    _copy_cells(m, value, ref, again)
    return ref


@handles("copy.replace")
def _replaced(m: Machine, name: str, call: Call) -> Value:
    return join(call.args[0], Unknown()) if call.args else NONE
