"""What tensors do by themselves: attributes, methods, indexing, in place and not."""

import ast
from functools import partial

from gradvet.autograd.knowledge.lookup import load
from gradvet.autograd.library import beside, flags
from gradvet.autograd.library.operations import perform
from gradvet.autograd.library.storages import asked_by_bases, made_again, may_be_changed, tracked_together
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import (
    ANY_FN,
    FLOAT,
    INFERRING,
    MAYBE,
    NO,
    NO_FN,
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
    Array,
    Const,
    Each,
    Method,
    Number,
    Ref,
    Unknown,
    Value,
    join,
    join_all,
    refs,
)

_SIZES = {"shape"}
_UNKNOWN = {"device", "dtype", "layout", "names"}
_NUMBERS = {"ndim", "nbytes", "itemsize", "output_nr", "_version"}


def attribute(m: Machine, value: Value, name: str, node: ast.AST, *, called: bool) -> Value:
    """An attribute of a tensor; methods become values that wait for their call."""
    state = m.tensor(value)
    if state is None:
        return Method(value, name, node)
    if name in _SIZES:
        return m.sizes
    if name in _UNKNOWN:
        return Unknown(f"a {name}")
    if name in _NUMBERS:
        return Number("int")
    if name == "requires_grad":
        return TRUE if state.requires_grad == YES else FALSE if state.requires_grad == NO else Number("bool")
    if name == "is_leaf":
        return TRUE if state.is_leaf == YES else FALSE if state.is_leaf == NO else Number("bool")
    if name == "grad_fn":
        return NONE if state.grad_fn == NO_FN else Unknown("a grad_fn")
    if name == "_base":
        return NONE if state.view == NO else m.unknown(node, "the base of a view", (value,))
    if name == "data":
        return _data(m, value, state, node)
    if name == "grad":
        return _grad(m, value, node)
    op = load().method(name)
    own = None if op is not None else _own(m, value, name)
    if own is not None:
        return own
    if op is not None and op.property:
        if op.ret == "bool":
            return Number("bool")
        return perform(m, node, op, (value,), {}, name=name)
    is_method = called and op is not None and name not in ("values", "keys", "items", "get")
    if state.loose and not is_method:
        return part_of_loose(m, value, state, name, node)
    if op is None:
        flags.read(m, name, node)
    return Method(value, name, node)


def _own(m: Machine, value: Value, name: str) -> Value | None:
    """An attribute that the user has given to a tensor."""
    found = [m.cells.get((ref.address, name)) for ref, _ in m.tensors(value)]
    known = [each for each in found if each is not None]
    if type(value) is Each and known and all(type(each) is Ref for each in known):
        return Each(tuple(dict.fromkeys(known)))
    return join_all(known)


def part_of_loose(m: Machine, value: Value, state: Tensor, name: str, node: ast.AST) -> Value:
    """A part of "what a module gave", which has the same graph."""
    address = m.address(node, f"part {name}")
    if name.startswith("["):
        state = beside.unpacked(m, value, address, state)
    m.place(address, state._replace(storage=frozenset({address})))
    part = Ref(address)
    m.as_expected(part, node)
    return part


def _data(m: Machine, value: Value, state: Tensor, node: ast.AST) -> Value:
    """`.data`: the same storage, a version counter of its own, no graph."""
    cuts = state.cuts
    if state.requires_grad & YES:
        cuts |= {m.cut("data", ".data", node, state.leaves, state.nodes, cuts)}
    address = m.address(node, "data")
    source = frozenset(ref.address for ref, _ in m.tensors(value))
    made = Tensor(
        dtype=state.dtype,
        storage=state.storage,
        cuts=cuts,
        alias=Alias("data", source, node),
        origin=Origin(node, ".data", (state.origin,) if state.origin else ()),
        inference=state.inference,
        assumes=state.assumes,
        counted=bool(m.mode & ~INFERRING),
    )
    m.place(address, made)
    if m.deriving is not None:
        m.deriving.cut_inside(address, source, state)
    if m.judge is not None:
        m.judge.data_read(node, value, state)
    return Ref(address)


def _grad(m: Machine, value: Value, node: ast.AST) -> Value:
    """`.grad`: a tensor without a graph that belongs to its leaf."""
    found: list[Value] = []
    for ref, state in m.tensors(value):
        is_lost = False
        if m.judge is not None:
            m.judge.cut_notes.gradient_wanted(ref.address)
            is_lost = m.judge.leaves.grad_read(ref, state, node)
            m.judge.flow.read.add(ref.address & ~1)
        key = (ref.address, "grad")
        cell = m.cells.get(key)
        if not is_lost:
            flags.gradient_read(m, state, cell, node)
        if cell is None and (m.alone or state.assumes):
            # Nobody knows whether a backward came before: there may be a gradient.
            made = m.place_part(
                ref.address,
                "gradient",
                Tensor(MAYBE, MAYBE, frozenset({None, ANY_FN}), view=MAYBE, origin=Origin(node, ".grad")),
            )
            _own_storage(m, made)
            cell = join(NONE, made)
            m.store.set(key, cell)
            m.grads.add(made.address)
        found.append(NONE if cell is None else cell)
        if m.judge is not None and cell is None and type(value) is Ref:
            m.judge.leaves.none_read(ref, node)
        if m.judge is not None:
            m.judge.protocol.read(ref.address, found[-1], node)
            m.judge.kept_gradients.was_read(found[-1], node)
    if not found:
        return Unknown("a gradient")
    if type(value) is Each and all(type(v) is Ref for v in found):
        return Each(tuple(dict.fromkeys(found)))
    joined = found[0]
    for other in found[1:]:
        joined = join(joined, other)
    return joined


def _with_storage(content: object, storage: frozenset[int]) -> object:
    return content._replace(storage=storage) if type(content) is Tensor else content


def _with_data(content: object, source: Tensor) -> object:
    """A tensor with the values of another: whether it is an inference tensor goes with them, its counter stays."""
    if type(content) is not Tensor:
        return content
    counted = content.counted or bool(content.inference & NO)
    return content._replace(storage=source.storage, inference=source.inference, counted=counted)


def _own_storage(m: Machine, ref: Ref) -> None:
    m.update(ref, partial(_with_storage, storage=frozenset({ref.address})))


def set_attribute(m: Machine, value: Value, name: str, new: Value, node: ast.AST) -> None:
    """Assign an attribute of a tensor: `requires_grad`, `data`, `grad`, or one of the user's own."""
    if name == "requires_grad":
        set_requires_grad(m, value, new, node)
    elif name == "data":
        state, source = m.tensor(value), m.tensor(new)
        if state is not None and m.judge is not None:
            m.judge.data_assigned(node, value, state, source)
            m.judge.snapshots.restored(node, value, new)
        if source is not None:
            m.given_data.update(ref.address & ~1 for ref in refs(value))
            m.update(value, partial(_with_data, source=source))
    elif name == "grad":
        for ref, _ in m.tensors(value):
            certain = type(value) is Each or (type(value) is Ref and not ref.address & 1)
            before = m.cells.get((ref.address, "grad"), NONE)
            if m.judge is not None:
                m.judge.kept_gradients.left(held.address for held in refs(before))
            m.store.set((ref.address, "grad"), new if certain else join(before, new))
        if m.judge is not None:
            m.judge.protocol.assigned(frozenset(ref.address for ref, _ in m.tensors(value)), new, node)
    else:
        flags.assigned_on_tensor(m, name, node)
        for ref, _ in m.tensors(value):
            m.write_cell(ref, name, new)


def set_requires_grad(m: Machine, value: Value, flag: Value, node: ast.AST) -> None:
    """`requires_grad = flag`, `requires_grad_(flag)`."""
    wanted = (YES if flag.value else NO) if type(flag) is Const else MAYBE
    whole = m.tensor(value)
    if whole is not None:
        flags.set_on_tensor(m, whole, wanted, node)
    for ref, state in m.tensors(value):
        if state.is_leaf == NO and wanted & YES:
            continue
        if wanted == YES and state.inference == YES and not m.mode & INFERRING:
            continue  # torch raises
        if ref.address & ~1 in m.several:
            if m.judge is not None and wanted == YES:
                m.judge.freezes.some_train(ref.address & ~1)
        elif m.judge is not None and wanted != MAYBE and state.parameter & YES:
            m.judge.freezes.flag_set(node, ref.address & ~1, trains=wanted == YES)
        if wanted == YES and state.requires_grad == NO == state.parameter and m.judge is not None:
            m.judge.leaves.asked(ref, state, node)
        leaves = frozenset({ref.address}) if wanted & YES else NOTHING
        if ref.address & ~1 in m.several:  # some of them, and nobody knows which
            asked, own = state.requires_grad | wanted, state.leaves | leaves
            m.store.set(ref.address, state._replace(requires_grad=asked, leaves=own))
            continue
        # A constant that may require grad only for the sake of data, or `requires_grad = True` would raise.
        constant = state.requires_grad == NO or (state.requires_grad == MAYBE and bool(state.dead))
        forced = made_leaf(m, node, ref, state) if wanted == YES and constant else NOTHING

        def change(t: object, leaves: frozenset[int] = leaves, forced: frozenset[int] = forced) -> object:
            if type(t) is not Tensor:
                return t
            if wanted == YES and t.is_leaf == MAYBE:  # what is no leaf stays as it is
                return t._replace(requires_grad=YES, leaves=t.leaves | leaves, dtype=FLOAT)
            if wanted == YES:
                return t._replace(
                    cuts=t.cuts | forced,
                    dead=forced,
                    requires_grad=YES,
                    leaves=leaves,
                    dtype=FLOAT,
                    is_leaf=YES,
                    grad_fn=NO_FN,
                    nodes=NOTHING,
                    assumes=frozenset(),
                    origin=t.origin or Origin(node, "requires_grad_()"),
                )
            if wanted == NO:  # a view asks as long as its base does
                of_base = asked_by_bases(m, t.base) if t.view & YES else NO
                of_base |= NO if t.view & NO else 0
                asks = (t.requires_grad if of_base & YES else 0) | (of_base & NO)
                return t._replace(requires_grad=asks or NO, leaves=NOTHING, assumes=frozenset())
            return t._replace(requires_grad=t.requires_grad | MAYBE, leaves=t.leaves | leaves)

        target: Value = Each((ref,)) if type(value) is Each else value
        m.update(target, change)
        if wanted & NO or state.requires_grad & NO:
            certain = type(value) is Each or m.only(value) == ref.address
            ask_of_views(m, ref, state, wanted, leaves, certain=certain)


def made_leaf(m: Machine, site: ast.AST, ref: Ref, state: Tensor) -> frozenset[int]:
    """A value whose graph was cut is made a leaf that requires grad: the cut that stands for it, if there is one."""
    if not state.cuts:
        return NOTHING
    leaves = frozenset[int]().union(*(m.cuts[number].leaves for number in state.cuts))
    nodes = frozenset[int]().union(*(m.cuts[number].nodes for number in state.cuts))
    number = m.cut("forced", "requires_grad", site, leaves, nodes, state.cuts)
    if m.judge is not None:
        m.judge.cut_notes.made_leaf(ref.address, number)
    return frozenset({number})


def ask_of_views(
    m: Machine, base: Ref, state: Tensor, wanted: int, leaves: frozenset[int], *, certain: bool
) -> None:
    """A view that has no grad_fn requires grad when its base does, and is a leaf all the same.

    Of what is a view of something inside an op its views are views of that, too, and nobody asks it.
    """
    if state.view == YES and not state.base:
        return
    certain = certain and not (state.view & YES and not state.base)
    for address, other in tracked_together(m, frozenset({base.address})):
        if address == base.address or not other.is_leaf & YES:
            continue
        changed = may_be_changed(m, state) or may_be_changed(m, other)
        if address in other.leaves:  # it was asked by itself
            if changed and wanted & YES:
                m.store.set(address, made_again(other))
            continue
        surely = certain and wanted != MAYBE and other.view == YES == other.is_leaf
        surely = surely and len(other.base) == 1 and not address & 1
        now = other._replace(
            requires_grad=wanted if surely else other.requires_grad | wanted,
            leaves=(NOTHING if surely else other.leaves) | leaves,
        )
        if changed:
            now = made_again(now)  # changed since: its grad_fn comes anew from the base
        m.store.set(address, now)


# -- indexing


# -- methods


def detached(m: Machine, site: ast.AST, value: Value, state: Tensor, words: str) -> Ref:
    """A tensor on the same storage that leads nowhere; it shares the version counter."""
    cuts = state.cuts
    if state.requires_grad & YES:
        number = m.cut("detach", words, site, state.leaves, state.nodes, cuts)
        cuts |= {number}
        if m.judge is not None:
            m.judge.recurrences.cut(number)
    address = m.address(site, "detached")
    source = frozenset(ref.address for ref, _ in m.tensors(value))
    m.place(
        address,
        Tensor(
            dtype=state.dtype,
            storage=state.storage,
            cuts=cuts,
            alias=Alias("detach", source, site),
            origin=Origin(site, words, (state.origin,) if state.origin else ()),
            inference=state.inference,
            assumes=state.assumes,
            loose=state.loose,
            counted=bool(m.mode & ~INFERRING),
        ),
    )
    return Ref(address)


def array_of(m: Machine, node: ast.AST, value: Value, state: Tensor) -> Ref:
    """The numpy array of a tensor."""
    cuts = state.cuts
    if state.requires_grad & YES:
        cuts |= {m.cut("numpy", "numpy()", node, state.leaves, state.nodes, cuts)}
    source = frozenset(ref.address for ref, _ in m.tensors(value))
    if m.judge is not None:
        m.judge.arrays.shares(state.storage)
    return m.new(node, Array(state.storage, cuts, Alias("numpy", source, node)), "array")
