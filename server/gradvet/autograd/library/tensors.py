"""What tensors do by themselves: attributes, methods, indexing, in place and not."""

import ast
from collections.abc import Callable
from functools import partial

from gradvet.autograd.events import ToNumpy
from gradvet.autograd.events_exit import DetachLate
from gradvet.autograd.graph import backward, held_tensors, unknown_cut
from gradvet.autograd.knowledge.lookup import Op, load
from gradvet.autograd.library import flags, forgotten, hooks
from gradvet.autograd.library.changes import edit
from gradvet.autograd.library.half import half_to_numpy
from gradvet.autograd.library.inputs import in_mode, made_in, operands_of, scalar_cuts
from gradvet.autograd.library.kept import Inputs as OpInputs
from gradvet.autograd.library.kept import Operand
from gradvet.autograd.library.operations import perform
from gradvet.autograd.library.results import computed, tensor_like
from gradvet.autograd.library.storages import asked_by_bases, made_again, tracked_together, version_of
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import (
    ANY_FN,
    FLOAT,
    GRAD,
    INFERENCE,
    INTEGER,
    MAYBE,
    NO,
    NO_FN,
    NOTHING,
    YES,
    Alias,
    Origin,
    Tensor,
    join_tensors,
)
from gradvet.autograd.memory.values import (
    FALSE,
    NESTED,
    NONE,
    TRUE,
    Array,
    Const,
    Each,
    Method,
    Number,
    Opaque,
    Ref,
    Sequence,
    Slice,
    Tuple,
    Unknown,
    Value,
    atoms,
    join,
    join_all,
)

_SIZES = {"shape"}
_UNKNOWN = {"device", "dtype", "layout", "names"}
_NUMBERS = {"ndim", "nbytes", "itemsize", "output_nr", "_version"}


def attribute(m: Machine, value: Value, name: str, node: ast.AST) -> Value:
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
    if state.loose and not (op is not None and name not in ("values", "keys", "items", "get")):
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
    m.place(address, state._replace(storage=frozenset({address})))
    return Ref(address)


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
        counted=bool(m.mode & ~INFERENCE),
    )
    m.place(address, made)
    if m.judge is not None:
        m.judge.data_read(node, value, state)
    return Ref(address)


def _grad(m: Machine, value: Value, node: ast.AST) -> Value:
    """`.grad`: a tensor without a graph that belongs to its leaf."""
    found: list[Value] = []
    for ref, state in m.tensors(value):
        if m.judge is not None:
            m.judge.cut_notes.gradient_wanted(ref.address)
            m.judge.leaves.grad_read(ref, state, node)
        key = (ref.address, "grad")
        if m.judge is not None:
            m.judge.flow.read.add(ref.address & ~1)
        cell = m.cells.get(key)
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
        if m.judge is not None:
            m.judge.protocol.read(ref.address, found[-1], node)
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
            m.update(value, partial(_with_data, source=source))
    elif name == "grad":
        for ref, _ in m.tensors(value):
            certain = type(value) is Each or (type(value) is Ref and not ref.address & 1)
            before = m.cells.get((ref.address, "grad"), NONE)
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
        if wanted == YES and state.inference == YES and not m.mode & INFERENCE:
            continue  # torch raises
        if m.judge is not None and wanted != MAYBE and state.parameter & YES:
            m.judge.freezes.flag_set(node, ref.address & ~1, trains=wanted == YES)
        leaves = frozenset({ref.address}) if wanted & YES else NOTHING
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
            _ask_of_views(m, ref, state, wanted, leaves, certain=certain)


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


def _ask_of_views(
    m: Machine, base: Ref, state: Tensor, wanted: int, leaves: frozenset[int], *, certain: bool
) -> None:
    """A view that has no grad_fn requires grad when its base does, and is a leaf all the same."""
    for address, other in tracked_together(m, frozenset({base.address})):
        if address == base.address or not other.is_leaf & YES:
            continue
        changed = any(version_of(m, place) != 0 for place in state.storage | other.storage)
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


def _index_form(m: Machine, key: Value, node: ast.expr | None) -> str:
    """Which of torch's ways of indexing a key selects; empty when that is not known.

    Of several indices the last that does something makes the result: a bare `:` and `...` do nothing, and
    neither does a slice that takes all there is.
    """
    kind = type(key)
    if kind is Slice:
        return "slice"
    if kind is Number:
        return "int" if key.kind != "bool" else ""
    if kind is Const:
        if key.value is None:
            return "None"
        if key.value is Ellipsis:
            return "ellipsis"
        return "bool" if key.kind == "bool" else "int"
    if kind is Tuple:
        nodes = (
            node.elts
            if isinstance(node, ast.Tuple) and len(node.elts) == len(key.items)
            else [None] * len(key.items)
        )
        forms = [_index_form(m, item, at) for item, at in zip(key.items, nodes)]
        if "" in forms:
            return ""
        for form in ("index_tensor", "bool"):
            if form in forms:
                return "index_tensor"
        acting = [f for f, at in zip(forms, nodes) if f != "ellipsis" and not _is_bare_slice(at)]
        if not acting:
            return "ellipsis"
        return "tuple_slice" if acting[-1] == "slice" else acting[-1]  # which may do nothing as well
    if m.tensor(key) is not None or type(m.cells.get(getattr(key, "address", -1))) in (Sequence, Array):
        return "index_tensor"
    return ""


def _is_bare_slice(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Slice) and node.lower is None and node.upper is None and node.step is None


def index(m: Machine, value: Value, key: Value, node: ast.AST) -> Value:
    """`tensor[key]`: a view for basic indices, a copy for index tensors."""
    state = m.tensor(value)
    if state is not None and state.loose and (type(key) is Const and key.kind in ("str", "int")):
        return part_of_loose(m, value, state, f"[{key.value!r}]", node)
    op = load().method("__getitem__")
    if op is None:
        return m.unknown(node, "an indexed tensor", (value,))
    form = _index_form(m, key, node.slice if isinstance(node, ast.Subscript) else None)
    if not form and state is not None:
        copied = perform(
            m, node, op.forms.get("index_tensor", op), (value, key), {}, name="[...]", tag="copy"
        )
        viewed = perform(m, node, op.forms.get("slice", op), (value,), {}, name="[...]", tag="view")
        return join(viewed, copied)
    return perform(m, node, op.forms.get(form, op), (value, key), {}, name="[...]")


def row(m: Machine, value: Value, node: ast.AST) -> Value:
    """One element of a tensor that is iterated or unpacked: one of several views."""
    op = load().method("__iter__")
    state = m.tensor(value)
    if state is not None and state.loose:
        return part_of_loose(m, value, state, "[*]", node)
    if op is None:
        return m.unknown(node, "a row of a tensor", (value,))
    rows = perform(m, node, op, (value,), {}, name="[...]", tag="row")
    content = m.cells.get(getattr(rows, "address", -1))
    return content.element if type(content) is Sequence and content.element is not None else rows


def set_index(m: Machine, holder: Value, key: Value, new: Value, node: ast.AST) -> None:
    """`tensor[key] = new`: a change in place."""
    state = m.tensor(new)
    others: tuple[Operand, ...] = (Operand("value", new, state),) if state is not None else ()
    if state is None:
        others = tuple(Operand("value", ref, held) for ref, held in held_tensors(m, new))
    target = (
        node.targets[0].value
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript)
        else None
    )
    edit(
        m,
        node,
        holder,
        "[...] =",
        others,
        fn=("CopySlices", "IndexPutBackward0", "CopyBackwards"),
        target=target,
        unknown=(new,) if not others and _is_unknown(m, new) else (),
    )


def _is_unknown(m: Machine, value: Value) -> bool:
    return any(m.is_unknown(atom) for atom in atoms(value))


def written_through_view(m: Machine, holder: Value, new: Value, node: ast.AST) -> None:
    """The end of `tensor[key] += x`: the view was changed in place already, the holder is seen to change with it."""


# -- methods


TensorMethod = Callable[[Machine, Value, Tensor, "MethodCall"], Value]


class MethodCall:
    """A method call on a tensor: its node, name and arguments."""

    __slots__ = ("args", "keywords", "name", "node", "receiver_node")

    def __init__(self, node: ast.AST, name: str, args: tuple[Value, ...], keywords: dict[str, Value]) -> None:
        """Hold the parts."""
        self.node = node
        self.name = name
        self.args = args
        self.keywords = keywords
        func = getattr(node, "func", None)
        self.receiver_node = func.value if isinstance(func, ast.Attribute) else None

    def argument(self, at: int, name: str) -> Value | None:
        """An argument by position or name."""
        return self.keywords.get(name, self.args[at] if at < len(self.args) else None)


METHODS: dict[str, TensorMethod] = {}


def method(*names: str) -> Callable[[TensorMethod], TensorMethod]:
    """Register what these methods of a tensor do."""

    def register(function: TensorMethod) -> TensorMethod:
        METHODS.update(dict.fromkeys(names, function))
        return function

    return register


def call_method(m: Machine, receiver: Value, call: MethodCall) -> Value:
    """Call a method of a value that must be a tensor."""
    state = m.tensor(receiver)
    if call.node in m.lone:
        forgotten.dropped(m, call.node, call.name, known=True)
    special = METHODS.get(call.name)
    if special is not None and state is not None:
        return special(m, receiver, state, call)
    op = load().method(call.name)
    if op is None:
        return m.unknown(call.node, f"the result of `{call.name}`", (receiver, *call.args))
    return perform(
        m,
        call.node,
        op,
        (receiver, *call.args),
        call.keywords,
        name=f"{call.name}()",
        target=call.receiver_node,
    )


@method("backward")
def _backward(m: Machine, receiver: Value, state: Tensor, call: MethodCall) -> Value:
    backward(
        m,
        call.node,
        receiver,
        retain=call.argument(1, "retain_graph"),
        create=call.argument(2, "create_graph"),
        how="backward()",
        inputs=call.argument(3, "inputs"),
    )
    return NONE


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
            counted=bool(m.mode & ~INFERENCE),
        ),
    )
    return Ref(address)


_STEPS = frozenset({"cpu", "cuda", "clone", "to", "float", "double", "half", "bfloat16", "contiguous"})


@method("detach")
def _detach(m: Machine, receiver: Value, state: Tensor, call: MethodCall) -> Value:
    step = call.receiver_node
    steps = isinstance(step, ast.Call) and isinstance(step.func, ast.Attribute) and step.func.attr in _STEPS
    if steps and isinstance(step, ast.Call) and state.requires_grad == YES and m.mode == GRAD:
        m.emit(DetachLate(call.node, m.where(), step))
    return detached(m, call.node, receiver, state, "detach()")


@method("detach_")
def _detach_in_place(m: Machine, receiver: Value, state: Tensor, call: MethodCall) -> Value:
    if m.mode == INFERENCE or state.inference == YES:
        return receiver  # torch leaves it as it was
    if state.view == YES and m.judge is not None:
        m.judge.walks.view_changed(call.node, state, call.receiver_node, "detach_()")
    cuts = state.cuts
    if state.requires_grad & YES:
        cuts |= {m.cut("detach", "detach_()", call.node, state.leaves, state.nodes, cuts)}

    def change(t: object) -> object:
        if type(t) is not Tensor:
            return t
        made = t._replace(
            requires_grad=NO, is_leaf=YES, grad_fn=NO_FN, nodes=NOTHING, leaves=NOTHING, cuts=cuts
        )
        if t.inference == YES:
            return t
        return join_tensors(t, made) if m.mode & INFERENCE or t.inference & YES else made

    m.update(receiver, change)
    for ref, before in m.tensors(receiver):
        certain = m.only(receiver) == ref.address and not m.mode & INFERENCE and before.inference == NO
        _ask_of_views(m, ref, before, NO, NOTHING, certain=certain)
        _detach_views(m, ref)
    return receiver


def _detach_views(m: Machine, base: Ref) -> None:
    """A view that has its graph from a change of its base loses it with the base, unless somebody looked at it before."""
    for address, view in tracked_together(m, frozenset({base.address})):
        if address != base.address and view.is_leaf == NO and ANY_FN in view.grad_fn:
            m.store.set(
                address, view._replace(requires_grad=MAYBE, is_leaf=MAYBE, grad_fn=view.grad_fn | NO_FN)
            )


@method("requires_grad_")
def _requires_grad(m: Machine, receiver: Value, state: Tensor, call: MethodCall) -> Value:
    flag = call.argument(0, "requires_grad")
    set_requires_grad(m, receiver, TRUE if flag is None else flag, call.node)
    return receiver


@method("retain_grad")
def _retain_grad(m: Machine, receiver: Value, state: Tensor, call: MethodCall) -> Value:
    hooks.hang(m, call.node, receiver, hooks.RETAIN, NONE)
    return NONE


@method("register_hook", "register_post_accumulate_grad_hook")
def _hook(m: Machine, receiver: Value, state: Tensor, call: MethodCall) -> Value:
    hook = call.argument(0, "hook")
    return Unknown("a hook's handle") if hook is None else hooks.hang(m, call.node, receiver, call.name, hook)


@method("numpy")
def _numpy(m: Machine, receiver: Value, state: Tensor, call: MethodCall) -> Value:
    half_to_numpy(m, call.node, receiver, call.receiver_node)
    forced = call.argument(0, "force")
    if type(forced) is not Const or not forced.value:
        to_numpy(m, call.node, state, ".numpy()", call.receiver_node)
        if m.mode == GRAD and state.requires_grad == YES:
            return Unknown("the line raises")
    return array_of(m, call.node, receiver, state)


@method("__array__")
def _array(m: Machine, receiver: Value, state: Tensor, call: MethodCall) -> Value:
    return array_of(m, call.node, receiver, state)


def to_numpy(
    m: Machine, node: ast.AST, state: Tensor, how: str, source: ast.expr | None, *, fixable: bool = True
) -> None:
    """Record that a tensor leaves torch; `fixable` is False when `source` only holds it, as a list does."""
    m.emit(ToNumpy(node, m.where(), state, m.mode, how, source, in_forward(m), fixable))


def in_forward(m: Machine) -> bool:
    """Whether the forward of a module is being run."""
    return any(getattr(frame.node, "name", "") == "forward" for frame in m.frames)


def array_of(m: Machine, node: ast.AST, value: Value, state: Tensor) -> Ref:
    """The numpy array of a tensor."""
    cuts = state.cuts
    if state.requires_grad & YES:
        cuts |= {m.cut("numpy", "numpy()", node, state.leaves, state.nodes, cuts)}
    source = frozenset(ref.address for ref, _ in m.tensors(value))
    if m.judge is not None:
        m.judge.arrays.shares(state.storage)
    return m.new(node, Array(state.storage, cuts, Alias("numpy", source, node)), "array")


@method("item")
def _item(m: Machine, receiver: Value, state: Tensor, call: MethodCall) -> Value:
    return Number("number", scalar_cuts(m, call.node, "item()", (Operand("self", receiver, state),)))


@method("tolist")
def _tolist(m: Machine, receiver: Value, state: Tensor, call: MethodCall) -> Value:
    cuts = scalar_cuts(m, call.node, "tolist()", (Operand("self", receiver, state),))
    return m.new(call.node, Sequence("list", None, Number(NESTED, cuts), nonempty=True))


@method("new_tensor")
def _new_tensor(m: Machine, receiver: Value, state: Tensor, call: MethodCall) -> Value:
    source = call.args[0] if call.args else NONE
    copied(m, call.node, source)
    return rewrapped(m, call.node, source, "new_tensor()", call.keywords)


def copied(m: Machine, node: ast.AST, source: Value) -> None:
    """Note a constructor that is given a tensor: torch copies it, and warns."""
    state = m.tensor(source)
    if m.judge is not None and isinstance(node, ast.Call) and state is not None and not state.loose:
        m.judge.cut_notes.copied.setdefault(node, (m.where(), state))


@method("as_subclass")
def _as_subclass(m: Machine, receiver: Value, state: Tensor, call: MethodCall) -> Value:
    """A tensor of a class that may do with each op what it likes."""
    return Unknown("a tensor of another class")


@method("register_parameter", "share_memory_")
def _itself(m: Machine, receiver: Value, state: Tensor, call: MethodCall) -> Value:
    return receiver


@method("apply_", "map_")
def _apply(m: Machine, receiver: Value, state: Tensor, call: MethodCall) -> Value:
    edit(m, call.node, receiver, call.name, target=call.receiver_node)
    return receiver


@method("size", "stride")
def _size(m: Machine, receiver: Value, state: Tensor, call: MethodCall) -> Value:
    return Number("int") if call.args else m.sizes


@method("dim", "numel", "nelement", "ndimension", "get_device", "element_size", "__len__")
def _count(m: Machine, receiver: Value, state: Tensor, call: MethodCall) -> Value:
    return Number("int")


@method(
    "is_floating_point",
    "is_complex",
    "is_contiguous",
    "is_inference",
    "is_shared",
    "is_pinned",
    "equal",
    "allclose",
)
def _asks(m: Machine, receiver: Value, state: Tensor, call: MethodCall) -> Value:
    return Number("bool")


@method("new_zeros", "new_ones", "new_empty", "new_full", "new")
def _new(m: Machine, receiver: Value, state: Tensor, call: MethodCall) -> Value:
    dtype = load_dtype(call.keywords.get("dtype"), state.dtype)
    return factory(m, call.node, call.name, dtype, call.keywords)


def factory(m: Machine, site: ast.AST, words: str, dtype: int, keywords: dict[str, Value]) -> Ref:
    """A tensor made from nothing; `requires_grad=True` makes it a leaf that requires grad."""
    flag = keywords.get("requires_grad")
    granted = NO if flag is None else YES if flag == TRUE else NO if flag == FALSE else MAYBE
    if granted == YES:
        flags.integers_asked(m, Tensor(dtype=dtype), site)
    ref = tensor_like(
        m, site, words, dtype=FLOAT if granted == YES else dtype, requires_grad=granted, inference=made_in(m)
    )
    if granted & YES:
        m.update(ref, lambda t: t._replace(leaves=frozenset({ref.address})))
    return ref


def rewrapped(m: Machine, site: ast.AST, source: Value, words: str, keywords: dict[str, Value]) -> Ref:
    """A new tensor from the values of others: the graph is left behind."""
    cuts = NOTHING
    held = held_tensors(m, source)
    behind: frozenset[int] = NOTHING
    nodes: frozenset[int] = NOTHING
    for _, state in held:
        cuts |= state.cuts
        if state.requires_grad & YES:
            behind |= state.leaves
            nodes |= state.nodes
    cuts |= numbers_in(m, source)
    if nodes or behind:
        number = m.cut("rewrap", words, site, behind, nodes, cuts)
        m.cuts[number].form = _made_of(m, source)
        cuts |= {number}
    dtype = FLOAT | INTEGER
    if held and all(state.dtype == FLOAT for _, state in held):
        dtype = FLOAT
    wanted = keywords.get("dtype")
    if wanted is not None:
        dtype = load_dtype(wanted, dtype)
    ref = factory(m, site, words, dtype, keywords)
    if (
        type(m.cells.get(getattr(source, "address", -1))) is Opaque
        and m.cells[ref.address].requires_grad == YES
    ):
        cuts |= unknown_cut(m, source, "rewrap", words, site)
    if cuts:
        m.update(ref, lambda t: t._replace(cuts=cuts))
        if m.cells[ref.address].requires_grad == YES:
            forced = made_leaf(m, site, ref, m.cells[ref.address])
            m.update(ref, lambda t: t._replace(cuts=cuts | forced, dead=forced))
    return ref


def _made_of(m: Machine, source: Value) -> str:
    """What a new tensor is made of: a tensor, nothing but tensors in a row, or something else."""
    if m.tensor(source) is not None:
        return "tensor"
    content = m.cells.get(getattr(source, "address", -1))
    parts: list[Value] = []
    if type(source) is Tuple:
        parts = list(source.items)
    elif type(content) is Sequence:
        parts = [v for v in (*(content.items or ()), content.rest) if v is not None]
    return "tensors" if parts and all(m.tensor(part) is not None for part in parts) else "mixed"


def load_dtype(wanted: Value | None, otherwise: int) -> int:
    """The dtype class that a `dtype=` argument names."""
    name = getattr(wanted, "name", "").rpartition(".")[2]
    if name in ("long", "int", "int64", "int32", "int16", "int8", "uint8", "bool", "short"):
        return INTEGER
    if name in ("float", "double", "half", "float32", "float64", "float16", "bfloat16"):
        return FLOAT
    return otherwise


def numbers_in(m: Machine, value: Value, depth: int = 0) -> frozenset[int]:
    """The cuts that numbers and arrays in a value carry."""
    cuts: frozenset[int] = NOTHING
    if depth > 4:  # noqa: PLR2004
        return cuts
    for atom in atoms(value):
        if type(atom) is Number:
            cuts |= atom.cuts
        elif type(atom) is Tuple:
            for item in atom.items:
                cuts |= numbers_in(m, item, depth + 1)
        elif type(atom) is Ref:
            content = m.cells.get(atom.address)
            if type(content) is Array:
                cuts |= content.cuts
            elif type(content) is Sequence and content.element is not None:
                cuts |= numbers_in(m, content.element, depth + 1)
    return cuts


def combined(
    m: Machine,
    site: ast.AST,
    words: str,
    inputs: list[Value],
    *,
    fn: tuple[str, ...] = (),
    tag: str = "",
    op: Op | None = None,
) -> Ref:
    """A tensor computed from others by something that was not measured as one op, such as a distribution's log_prob."""
    operands: list[Operand] = []
    unknown: list[Value] = []
    for at, value in enumerate(inputs):
        held = operands_of(m, f"arg{at}", value)
        operands += held
        if not held and _is_unknown(m, value):
            unknown.append(value)
    through = [o for o in operands if o.state.requires_grad & YES and o.state.dtype & FLOAT]
    truth = YES if any(o.state.requires_grad == YES for o in through) else MAYBE if through or unknown else NO
    address = m.address(site, f"combined{tag}")
    given = OpInputs({str(at): v for at, v in enumerate(inputs)}, tuple(operands), tuple(unknown))
    state = computed(m, site, address, words, fn, in_mode(m, truth), through, given, FLOAT, op)
    m.place(address, state)
    return Ref(address)
