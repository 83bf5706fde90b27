"""torch.func: transforms of functions. Each runs its function on tensors of its own kind (measured on torch 2.13)."""

from collections.abc import Callable
from collections.abc import Sequence as Sequence_
from functools import partial
from typing import NamedTuple

from gradvet.autograd.events import Cut, InputUnreached
from gradvet.autograd.graph import node_key, reachable
from gradvet.autograd.held import held_tensors
from gradvet.autograd.library import batches, layers
from gradvet.autograd.library.derivatives import Derivation
from gradvet.autograd.library.externals import handles
from gradvet.autograd.library.inputs import in_mode, made_in, operands_of
from gradvet.autograd.library.kept import Inputs
from gradvet.autograd.library.made_tensors import combined
from gradvet.autograd.library.results import computed
from gradvet.autograd.machine import MODE, Machine
from gradvet.autograd.memory.domain import (
    ANY_FN,
    FLOAT,
    GRAD,
    MAYBE,
    NO,
    NOTHING,
    YES,
    Node,
    Origin,
    Tensor,
    switched,
)
from gradvet.autograd.memory.values import (
    FALSE,
    NONE,
    TRUE,
    Bound,
    Const,
    Dict,
    External,
    Function,
    Opaque,
    Partial,
    Ref,
    Sequence,
    Text,
    Tuple,
    Union,
    Unknown,
    Value,
    atoms,
    const,
    join_all,
)
from gradvet.autograd.python.calls import Call, call_value, unknown_call
from gradvet.autograd.python.names import read_from_outside
from gradvet.autograd.python.objects import items_of

_ESCAPED = "a tensor that escaped from a function transform"
_MAKERS = ("grad", "grad_and_value", "vmap", "jacrev", "jacfwd", "hessian")
_MINE = "gradvet.func."
_NUMBERED = 48


@handles(
    *(f"torch.func.{name}" for name in _MAKERS), *(f"functorch.{name}" for name in _MAKERS), "torch.vmap"
)
def _transform(m: Machine, name: str, call: Call) -> Value:
    """`grad(f)`, `vmap(f)`: a function that waits for its arguments."""
    if not call.args:
        return unknown_call(m, call, "a transform")
    keywords = dict(call.keywords)
    if len(call.args) > 1:
        keywords.setdefault("in_dims" if name.endswith("vmap") else "argnums", call.args[1])
    options = Tuple(tuple(Tuple((const(word), value)) for word, value in keywords.items()))
    return Partial(External(_MINE + name.rpartition(".")[2]), (call.args[0], options), ())


def _options(value: Value) -> dict[str, Value]:
    return {pair.items[0].value: pair.items[1] for pair in value.items}


@handles(f"{_MINE}grad", f"{_MINE}grad_and_value", f"{_MINE}jacrev", f"{_MINE}jacfwd", f"{_MINE}hessian")
def _derivative(m: Machine, name: str, call: Call) -> Value:
    function, options, *args = call.args
    short, given = name.removeprefix(_MINE), _options(options)
    asked = _positions(m, given.get("argnums", const(0)))
    forward = {"jacfwd": NO, "hessian": MAYBE}.get(short, YES)
    there = _leaves_now(m)
    inner = [
        _mapped(m, arg, call, f"inner {at}", partial(_handed_in, m, forward if at in asked else None))
        for at, arg in enumerate(args)
    ]
    constant = partial(_handed_in, m, None)
    keywords = {word: _mapped(m, v, call, f"inner {word}", constant) for word, v in call.keywords.items()}
    before, around = m.mode, m.deriving
    handed = [*((arg, ref) for at, (arg, ref) in enumerate(zip(args, inner, strict=True)) if at not in asked)]
    handed += [(arg, keywords[word]) for word, arg in call.keywords.items()]
    constants = {
        ref.address: state.requires_grad
        for arg, ref in handed
        if type(ref) is Ref and (state := m.tensor(arg)) is not None
    }
    reverse = short in ("grad", "grad_and_value", "jacrev")
    notes = m.deriving = Derivation(there, constants) if reverse else None
    m.store.set(MODE, GRAD)
    value = _run(m, function, call._replace(args=tuple(inner), keywords=keywords))
    m.store.set(MODE, before)
    m.deriving = around
    captured = _captured(m, value, there)
    aux = (
        value.items[1]
        if given.get("has_aux") == TRUE and type(value) is Tuple and len(value.items) > 1
        else None
    )
    loss = m.tensor(value.items[0] if type(value) is Tuple and value.items else value)
    truths = {
        ref.address: state.requires_grad
        for at, ref in enumerate(inner)
        if at in asked and type(ref) is Ref and (state := m.tensor(args[at])) is not None
    }
    if reverse and loss is not None:
        _tell_zeros(
            m, call, loss, {inner[at].address for at in asked if at < len(inner) and type(inner[at]) is Ref}
        )
    exact = len(truths) == len(asked) and not any(
        state.requires_grad & YES
        for arg, ref in handed
        if getattr(ref, "address", 0) not in constants
        for _, state in held_tensors(m, arg)
    )
    made = []
    for at in asked:
        if at < len(args):
            known = None
            if notes is not None and loss is not None and exact:
                known = notes.asks(m, loss, inner[at], truths)
            made.append(
                _outside(m, args[at], call, f"derivative {at}", args, captured, derived=True, known=known)
            )
    result: Value = made[0] if len(made) == 1 else Tuple(tuple(made))
    if short == "grad_and_value":
        loss = value.items[0] if aux is not None else value
        plain = _outside(m, loss, call, "value", args, captured)
        return Tuple((result, plain if aux is None else Tuple((plain, aux))))
    return result if aux is None else Tuple((result, aux))


def _tell_zeros(m: Machine, call: Call, loss: Tensor, handed: set[int]) -> None:
    """The derivative of what is cut from all that a function was handed is zero."""
    reached = {leaf & ~1 for leaf in loss.leaves} & {at & ~1 for at in handed}
    if (loss.requires_grad != NO and (reached or not loss.leaves)) or loss.loose or loss.assumes:
        return
    ways = [m.cuts[cut] for cut in sorted(loss.cuts) if handed & m.cuts[cut].leaves]
    if ways:
        cuts = tuple(Cut(way.kind, way.name, way.node) for way in ways)
        m.emit(InputUnreached(call.node, m.where(), None, cuts, zeros=True))


def _positions(m: Machine, value: Value) -> tuple[int, ...]:
    items = items_of(m, value) or (value,)
    return tuple(item.value for item in items if type(item) is Const and isinstance(item.value, int))


def _inner(state: Tensor, asks: int) -> Tensor:
    """What a transform hands in: a leaf that requires grad, or the one half of a dual number, which is a view."""
    return Tensor(
        requires_grad=asks,
        view={YES: NO, NO: YES}.get(asks, MAYBE),
        dtype=FLOAT if asks & YES else state.dtype,
        origin=state.origin,
    )


def _handed_in(m: Machine, asks: int | None, state: Tensor) -> Tensor:
    """What a transform hands in; an argument for which no derivative is taken does not ask. A row stays one."""
    made = Tensor(dtype=state.dtype, origin=state.origin) if asks is None else _inner(state, asks)
    return made._replace(cuts=batches.rows(m, state))


def _mapped(m: Machine, value: Value, call: Call, tag: str, change: Callable[[Tensor], Tensor]) -> Value:
    """The same structure with other tensors in it."""
    state = m.tensor(value)
    if state is not None:
        made = change(state)
        ref = m.new(call.node, made, tag)
        own = frozenset({ref.address})
        leaves = made.leaves or (own if made.requires_grad & YES else NOTHING)
        m.update(ref, lambda t: t._replace(storage=own, leaves=leaves) if type(t) is Tensor else t)
        return ref
    if type(value) is Union:
        kept = [atom for atom in value.atoms if type(atom) is not Const]  # a transform of None would raise
        if len(kept) < len(value.atoms):
            return _mapped(m, join_all(kept), call, tag, change) if kept else value
        return join_all([_mapped(m, atom, call, f"{tag} or {at}", change) for at, atom in enumerate(kept)])
    if type(value) is Tuple:
        parts = (_mapped(m, item, call, f"{tag} {at}", change) for at, item in enumerate(value.items))
        return value._replace(items=tuple(parts))
    content = m.cells.get(getattr(value, "address", -1))
    if type(content) is Dict:
        pairs = tuple((k, _mapped(m, v, call, f"{tag} {k.value}", change)) for k, v in content.items)
        rest = None if content.rest is None else _mapped(m, content.rest, call, f"{tag} rest", change)
        return m.new(call.node, content._replace(items=pairs, rest=rest), tag)
    if type(content) is Sequence:
        items = content.items
        if items is not None:
            items = tuple(_mapped(m, item, call, f"{tag} {at}", change) for at, item in enumerate(items))
        rest = None if content.rest is None else _mapped(m, content.rest, call, f"{tag} rest", change)
        return m.new(call.node, content._replace(items=items, rest=rest), tag)
    return value


def _run(m: Machine, function: Value, call: Call) -> Value:
    """Run the function of a transform, in a context of its own.

    What it reads from outside still says that it requires grad, but nothing that is computed from it does. A tensor
    of its own that it leaves outside is a dead wrapper, which says of itself something else than what is made of it.
    """
    there, mark = _leaves_now(m), m.store.mark()
    inner = [atom.function if type(atom) is Bound else atom for atom in atoms(function)]
    wraps = m.mode != GRAD or any(type(one) is not Function or _reads_tensors(m, one) for one in inner)
    wraps = wraps or any(type(value) is Union and m.tensor(value) is None for value in call.args)
    m.wrapped += wraps
    m.transformed += 1
    with m.numbered(call.node, _NUMBERED):
        value = call_value(m, function, call)
    m.transformed -= 1
    m.wrapped -= wraps
    _leave_outside(m, mark, there, {ref.address for ref, _ in held_tensors(m, value)})
    return value


def _leave_outside(m: Machine, mark: int, there: set[int], but: set[int]) -> None:
    """What the function of a transform has left in what was `there` is not known any more; what it kept is nobody's."""
    holders, known = there | {frame.scope for frame in m.frames}, there | but
    for key, left in m.store.delta(mark).items():
        if (key[0] if type(key) is tuple else key) not in holders:
            continue
        for ref, state in held_tensors(m, Ref(key) if type(key) is int else left):
            if ref.address not in known:
                m.store.set(ref.address, Opaque(_ESCAPED, (), state.origin))


def _reads_tensors(m: Machine, function: Function) -> bool:
    """Whether a function reads names from outside that may stand for tensors that require grad, or lead to some."""
    return any(
        m.tensor(value) is None or any(state.requires_grad & YES for _, state in m.tensors(value))
        for value in read_from_outside(m, function)
        if type(value) not in (External, Const)
    )


class Captured(NamedTuple):
    """What a function that is transformed has read from outside: whether it asks, and the graph that it brings."""

    asks: int = NO
    nodes: frozenset[int] = NOTHING
    leaves: frozenset[int] = NOTHING


def _captured(m: Machine, value: Value, before: set[int], *, alone: bool = False) -> Captured:
    """What a value comes from that was there before the transform; `alone` when nothing that is handed in asks."""
    found = [
        state
        for _, state in held_tensors(m, value)
        if state.requires_grad & YES
        and (state.leaves & before or not state.leaves or reachable(m, state.nodes).keys() & before)
    ]
    if not found:
        return Captured()
    surely = alone and all(state.requires_grad == YES for state in found)
    nodes, leaves = (
        NOTHING.union(*parts) for parts in zip(*((s.nodes, s.leaves) for s in found), strict=True)
    )
    return Captured(YES if surely else MAYBE, nodes, leaves & before)


def _leaves_now(m: Machine) -> set[int]:
    """The addresses of all that is there, and of all nodes."""
    return {key if type(key) is int else key[0] for key in m.cells if type(key) is int or key[1] == "#node"}


def _outside(
    m: Machine,
    value: Value,
    call: Call,
    tag: str,
    given: list[Value],
    captured: Captured = Captured(),  # noqa: B008  it is immutable
    *,
    derived: bool = False,
    known: int | None = None,
    each: list[int] | None = None,
) -> Value:
    """What comes out of a transform, in the structure of a value: it has a graph when what went in asks for one.

    `captured` is what else went in. A derivative of what is linear leads nowhere; `known` is
    whether this one requires grad, when that has been found out, or that of `each` tensor in it.
    """
    operands = [operand for at, v in enumerate(given) for operand in operands_of(m, f"arg{at}", v)]
    asking = [o for o in operands if o.state.requires_grad & YES]
    truth = YES if any(o.state.requires_grad == YES for o in asking) else MAYBE if asking else NO
    truth = YES if YES in (truth, captured.asks) else MAYBE if MAYBE in (truth, captured.asks) else NO
    truth = MAYBE if derived and truth == YES else truth
    outer = truth if known is None else known
    number = [0]

    def made(state: Tensor) -> Tensor:
        truth = outer if each is None else each[number[0]] if number[0] < len(each) else MAYBE
        number[0] += 1
        address = m.address(call.node, f"out of {tag} {state.origin and id(state.origin.node)}")
        inputs = Inputs({}, tuple(operands), ())
        out = computed(m, call.node, address, "a transform", (), in_mode(m, truth), asking, inputs, FLOAT)
        node = m.cells.get(node_key(address))
        if out.requires_grad & YES and type(node) is Node:
            nodes, leaves = node.inputs | captured.nodes, node.leaves | captured.leaves
            node = node._replace(inputs=nodes, leaves=leaves)
            if derived:  # of what is linear in one of them it does not come from that one
                node = node._replace(sure=NOTHING, sure_leaves=NOTHING)
            m.store.set(node_key(address), node)
            out = out._replace(leaves=out.leaves | captured.leaves)
        return out._replace(view=MAYBE, inference=made_in(m) | NO, origin=Origin(call.node, "a transform"))

    return _mapped(m, value, call, tag, made)


@handles(f"{_MINE}vmap")
def _vmap(m: Machine, name: str, call: Call) -> Value:
    """Inside, a batch does not tell that it requires grad; outside, the result does when an input did."""
    function, options, *args = call.args
    dims = _options(options).get("in_dims", const(0))
    per = dims.items if type(dims) is Tuple else (dims,) * len(args)
    row = frozenset({m.cut(batches.ROW, "vmap()", call.node, NOTHING, NOTHING)})
    inner = [
        arg
        if at < len(per) and per[at] == NONE
        else _mapped(m, arg, call, f"row {at}", lambda s: Tensor(dtype=s.dtype, origin=s.origin, cuts=row))
        for at, arg in enumerate(args)
    ]
    m.batched += 1
    asks = _asks_without(m, function, call, args, per)
    there = _leaves_now(m)
    value = _run(m, function, call._replace(args=tuple(inner)))
    m.batched -= 1
    return _outside(m, value, call, "vmap", list(args), _captured(m, value, there, alone=True), each=asks)


def _asks_without(
    m: Machine, function: Value, call: Call, args: Sequence_[Value], per: Sequence_[Value]
) -> list[int]:
    """Whether each result of a function requires grad where no transform hides it: by a run that leaves no trace."""
    found: list[int] = []

    def row(state: Tensor) -> Tensor:
        asks = state.requires_grad & YES
        plain = state._replace(view=NO, parameter=NO, nodes=NOTHING, alias=None, base=NOTHING)
        return plain._replace(is_leaf=NO, grad_fn=frozenset({ANY_FN})) if asks else plain

    def note(state: Tensor) -> Tensor:
        found.append(state.requires_grad)
        return state

    with m.unseen_run():
        inner = [
            arg if at < len(per) and per[at] == NONE else _mapped(m, arg, call, f"row {at}", row)
            for at, arg in enumerate(args)
        ]
        with m.numbered(call.node, _NUMBERED):
            value = call_value(m, function, call._replace(args=tuple(inner)))
        _mapped(m, value, call, "seen", note)
    return found


@handles("torch.func.vjp", "functorch.vjp")
def _vjp(m: Machine, name: str, call: Call) -> Value:
    if not call.args:
        return unknown_call(m, call, "a pullback")
    function, *primals = call.args
    there = _leaves_now(m)
    inner = [_mapped(m, arg, call, f"inner {at}", lambda s: _inner(s, YES)) for at, arg in enumerate(primals)]
    before = m.mode
    m.wrapped += before != GRAD
    m.store.set(MODE, GRAD)
    value = _run(m, function, Call(call.node, tuple(inner)))
    m.store.set(MODE, before)
    m.wrapped -= before != GRAD
    out = _outside(m, value, call, "vjp", primals, _captured(m, value, there))
    return Tuple((out, Partial(External(f"{_MINE}pullback"), tuple(primals), ())))


@handles(f"{_MINE}pullback")
def _pullback(m: Machine, name: str, call: Call) -> Value:
    *primals, cotangent = call.args
    return Tuple(
        tuple(
            _outside(m, p, call, f"pullback {at}", [*primals, cotangent], derived=True)
            for at, p in enumerate(primals)
        )
    )


@handles("torch.func.jvp", "functorch.jvp")
def _jvp(m: Machine, name: str, call: Call) -> Value:
    primals = items_of(m, call.args[1]) if len(call.args) > 1 else None
    if primals is None:
        return Tuple((unknown_call(m, call, "a value"), Unknown("a tangent")))
    there = _leaves_now(m)
    inner = [_mapped(m, arg, call, f"inner {at}", lambda s: _inner(s, NO)) for at, arg in enumerate(primals)]
    value = _run(m, call.args[0], Call(call.node, tuple(inner)))
    captured = _captured(m, value, there, alone=True)
    out = _outside(m, value, call, "jvp value", list(primals), captured)
    given = [*primals, *call.args[2:3]]
    return Tuple((out, _outside(m, value, call, "jvp tangent", given, captured, derived=True)))


@handles("torch.autograd.functional.jacobian", "torch.autograd.functional.hessian")
def _functional(m: Machine, name: str, call: Call) -> Value:
    """A derivative of a function at inputs that are cut off first, unless `create_graph` asks for a graph."""
    function, inputs = call.argument(0, "func"), call.argument(1, "inputs")
    if function is None or inputs is None:
        return unknown_call(m, call, "a derivative")
    several = items_of(m, inputs) if m.tensor(inputs) is None else None
    args = list(several if several is not None else (inputs,))
    create = call.argument(2, "create_graph")
    cut = name.endswith("jacobian") and (create is None or create == FALSE)
    before = m.mode

    def handed_in(state: Tensor) -> Tensor:
        return _functional_input(state, before, cut=cut)

    inner = [_mapped(m, arg, call, f"inner {at}", handed_in) for at, arg in enumerate(args)]
    m.store.set(MODE, switched(before, GRAD))
    _run(m, function, Call(call.node, tuple(inner)))
    m.store.set(MODE, before)
    creates = create == TRUE
    made = tuple(_outside(m, arg, call, f"of {at}", args if creates else []) for at, arg in enumerate(args))
    return made[0] if several is None else Tuple(made)


def _functional_input(state: Tensor, mode: int, *, cut: bool) -> Tensor:
    """What a derivative hands in: `cut` off and made a leaf, or as a view, which inference mode does not record."""
    if cut:
        return Tensor(requires_grad=YES, inference=state.inference, origin=state.origin)
    return Tensor(
        requires_grad=YES if mode == GRAD else MAYBE,
        is_leaf=MAYBE,
        grad_fn=frozenset({None, "*"}),
        view=MAYBE,
        inference=state.inference,
        origin=state.origin,
    )


@handles("torch.func.stack_module_state", "functorch.stack_module_state")
def _stacked(m: Machine, name: str, call: Call) -> Value:
    """The parameters of like modules put together: leaves of their own, which require grad as those do."""
    items = items_of(m, call.args[0]) if call.args else None
    if not items or not all(layers.is_module(m, item) for item in items):
        return Tuple((unknown_call(m, call, "parameters"), unknown_call(m, call, "buffers")))
    pairs = []
    for path, ref in layers.members(m, items[0]).parameters:
        state = m.cells[ref.address]
        made = m.new(
            call.node, Tensor(state.requires_grad, origin=Origin(call.node, name)), f"stacked {path}"
        )
        own = frozenset({made.address})
        leaves = own if state.requires_grad & YES else NOTHING
        m.update(made, lambda t, own=own, leaves=leaves: t._replace(storage=own, leaves=leaves))  # type: ignore[misc]
        pairs.append((const(path), made))
    params = m.new(call.node, Dict(tuple(pairs)), "stacked")
    return Tuple((params, m.new(call.node, Dict((), Unknown("a buffer"), Text()), "stacked buffers")))


@handles("torch.func.functional_call", "torch.nn.utils.stateless.functional_call")
def _functional_call(m: Machine, name: str, call: Call) -> Value:
    """A module's forward with other tensors in the place of its parameters."""
    module, given = call.argument(0, "module"), call.argument(1, "parameter_and_buffer_dicts")
    held = [m.cells.get(getattr(v, "address", -1)) for v in (_dicts(given) if given is not None else ())]
    dicts = [content for content in held if type(content) is Dict]
    if module is None or not layers.is_module(m, module) or len(dicts) < len(held):
        ref = combined(m, call.node, "functional_call()", list(call.all_values()))
        m.update(ref, lambda t: t._replace(loose=True) if type(t) is Tensor else t)
        return ref
    swapped: dict[int, object] = {}
    for path, ref in layers.members(m, module).parameters:
        for content in dicts:
            new = content.get(const(path))
            state = m.tensor(new if new is not None else content.rest)
            if state is not None:
                swapped.setdefault(ref.address, m.cells[ref.address])
                m.store.set(ref.address, state._replace(parameter=YES))
    args = call.argument(2, "args")
    known = (
        (args,)
        if args is not None and m.tensor(args) is not None
        else items_of(m, args)
        if args is not None
        else ()
    )
    words = m.cells.get(getattr(call.argument(3, "kwargs"), "address", -1))
    keywords = {str(k.value): v for k, v in words.items} if type(words) is Dict else {}
    star = None if known is not None else Unknown("arguments")
    value = call_value(m, module, Call(call.node, tuple(known or ()), keywords, star))
    for address, before in swapped.items():
        m.store.set(address, before)
    return value


def _dicts(given: Value) -> tuple[Value, ...]:
    """The dicts of parameters and buffers: one, or several in a tuple."""
    return given.items if type(given) is Tuple else (given,)
