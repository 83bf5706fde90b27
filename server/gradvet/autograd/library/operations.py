"""The transfer of one measured op: what its outputs hold, given what its inputs hold and the grad mode."""

import ast

from gradvet.autograd.events_alias import OutRecorded
from gradvet.autograd.graph import node_key
from gradvet.autograd.held import held_tensors
from gradvet.autograd.knowledge.lookup import Op, Output
from gradvet.autograd.knowledge.ops import joined
from gradvet.autograd.library import unrecorded
from gradvet.autograd.library.changes import edit
from gradvet.autograd.library.dense import FLATTENING, is_dense
from gradvet.autograd.library.inputs import (
    Carried,
    argument_kind,
    bind,
    carried,
    dtype_of,
    in_mode,
    scalar_cuts,
)
from gradvet.autograd.library.kept import Inputs, Operand, Places
from gradvet.autograd.library.results import computed
from gradvet.autograd.library.storages import asked_by_bases, bases_of
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import (
    EXPANDED,
    FLOAT,
    GRAD,
    INFERRING,
    INTEGER,
    MAYBE,
    NO,
    NO_FN,
    NO_GRAD,
    NOTHING,
    ONE_OF_MANY,
    ORDINARY,
    UNRECORDED,
    YES,
    Tensor,
    join_tensors,
)
from gradvet.autograd.memory.values import (
    Const,
    Number,
    Ref,
    Sequence,
    Text,
    Tuple,
    Value,
    const,
    join,
    join_all,
)

_NOT_REFUSED = frozenset({"torch.softmax", "torch.log_softmax", "torch.diag", "torch.floor_divide"})
"""Functions that take `out=` also where a gradient is wanted, and leave none (measured on torch 2.13)."""
TRUTH = {"always": YES, "maybe": MAYBE, "never": NO}


def perform(
    m: Machine,
    site: ast.AST,
    op: Op,
    args: tuple[Value, ...],
    keywords: dict[str, Value],
    *,
    name: str = "",
    tag: str = "",
    target: ast.expr | None = None,
) -> Value:
    """Run an op: its effects, and the value it gives."""
    if "out" in keywords and held_tensors(m, keywords["out"]):
        return _into(m, site, op, args, keywords, name)
    inputs = bind(m, site, op, args, keywords)
    if op.forms:
        chosen = op.form({p: argument_kind(m, v) for p, v in inputs.arguments.items()})
        given = chosen in op.forms.values()
        op = chosen if given else dropping(op, chosen, inputs.arguments.get("p"))
    short = op.name.rpartition(".")[2]
    words = name or short
    if short in COMPARES and m.judge is not None and len(inputs.arguments) > 1:
        m.judge.snapshots.compared(site, *list(inputs.arguments.values())[:2])
    if short.strip("_") in ORDERS and m.judge is not None and len(inputs.arguments) > 1:
        m.judge.masked.compared(site, *list(inputs.arguments.values())[:2])
    if short == "copy_" and m.judge is not None and len(inputs.arguments) > 1:
        m.judge.snapshots.restored(site, *list(inputs.arguments.values())[:2])
    elif short in MOVES and m.judge is not None and inputs.arguments:
        m.judge.snapshots.moved(site, next(iter(inputs.arguments.values())))
    if _is_empty(m, inputs.arguments.get("tensors")):
        # Nothing cannot be put together: somebody whom nobody sees, such as a callback, has filled the list.
        return m.unknown(site, f"the result of `{words}`", (inputs.arguments["tensors"],), f"{tag}result")
    mutate(m, site, op, inputs, words, tag=tag, target=target)
    return results(m, site, op, inputs, words, tag)


def _is_empty(m: Machine, value: Value | None) -> bool:
    content = m.cells.get(getattr(value, "address", -1))
    return type(content) is Sequence and content.items == () and content.rest is None


def dropping(op: Op, chosen: Op, p: Value | None) -> Op:
    """The form of a dropout that drops this share: with none to drop it gives back what it was given."""
    none = op.forms.get("none")
    if none is None or op.forms.get("inplace") is chosen:
        return chosen
    if p is not None and type(p) is not Const:
        return joined(chosen, none)
    if p is not None and not p.value:
        return none
    if chosen is not op:
        return chosen
    return op._replace(out=tuple(out._replace(same="never") for out in op.out))


def _into(
    m: Machine, site: ast.AST, op: Op, args: tuple[Value, ...], keywords: dict[str, Value], name: str
) -> Value:
    """`out=`: the result is written into a tensor that is there, which is what the call gives."""
    out = keywords["out"]
    inputs = bind(m, site, op, args, {word: value for word, value in keywords.items() if word != "out"})
    parts = out.items if type(out) is Tuple else (out,)
    asking = [o.state for o in inputs.operands if o.state.requires_grad == YES and o.state.dtype != INTEGER]
    written = [m.tensor(part) for part in parts]
    asking += [state for state in written if state is not None and state.requires_grad == YES]
    records = (
        op.name.startswith("torch.") and op.name.count(".") == 1 and any(o.grad != "never" for o in op.out)
    )
    if m.mode == GRAD and asking and records and op.name not in _NOT_REFUSED:
        m.emit(OutRecorded(site, m.where(), asking[0]))
        m.raised = True
        return out
    for part in parts:
        edit(m, site, part, name or op.name, inputs.operands, fn=op.out[0].fn if op.out else ())
    return out


def mutate(
    m: Machine,
    site: ast.AST,
    op: Op,
    inputs: Inputs,
    words: str,
    *,
    tag: str = "",
    target: ast.expr | None = None,
    maker: ast.AST | None = None,
) -> None:
    """What an op changes in place; `maker` is where the module was made that does so."""
    for parameter, answer in op.mutates.items():
        for operand in inputs.operands:
            if operand.parameter == parameter and answer == "always":
                others = tuple(o for o in inputs.operands if o.value != operand.value)
                fn = op.out[0].fn if op.out else ()
                zero = bool(op.out and op.out[0].zero)
                edit(
                    m,
                    site,
                    operand.value,
                    words,
                    others,
                    fn=fn,
                    zero=zero,
                    target=target,
                    tag=tag,
                    op=op,
                    parameter=parameter,
                    maker=maker,
                    unknown=inputs.unknown,
                )


COMPARES = frozenset({
    "equal", "allclose", "isclose", "eq", "ne", "sub", "subtract", "dist", "mse_loss", "l1_loss", "array_equal",
    "cosine_similarity", "pairwise_distance",
})  # fmt: skip
"""What tells how two tensors differ, also when they are numpy's."""
ORDERS = frozenset({"gt", "ge", "lt", "le", "eq", "ne"})
"""What makes a mask of a tensor and a bound."""
MOVES = frozenset({"add_", "sub_", "lerp_"})
"""By what a running average of parameters is moved towards them."""


def results(
    m: Machine,
    site: ast.AST,
    op: Op,
    inputs: Inputs,
    words: str,
    tag: str = "",
    through: Carried | None = None,
) -> Value:
    """What an op gives. `through` is known already for modules, whose parameters carry gradients as well."""
    ret = op.ret
    if ret == "none":
        return const(None)
    if ret in ("number", "bool"):
        kind = "bool" if ret == "bool" else "number"
        return Number(kind, scalar_cuts(m, site, words, inputs.operands))
    if ret == "str":
        return Text()
    found = carried(op, inputs) if through is None else through
    places = {out.at: m.address(site, f"out{tag}{at}") for at, out in enumerate(op.out)}
    made = [_output(m, site, op, at, inputs, words, places, found) for at in range(len(op.out))]
    _share_node(m, made)
    if op.out and ret == "tensor":
        return made[0]
    if any("." in out.at for out in op.out):
        return _nested(op, made)
    if ret == "tuple" or ret.startswith("namedtuple"):
        if op.out and op.out[0].many:
            return m.new(site, Sequence("tuple", None, made[0], nonempty=True), f"{tag}many")
        return Tuple(tuple(made), op.fields) if made else m.sizes
    if ret == "list":
        return m.new(site, Sequence("list", None, join_all(made), nonempty=True), f"{tag}list")
    return m.unknown(site, f"the result of `{words}`", tuple(inputs.arguments.values()), f"{tag}result")


def _share_node(m: Machine, made: list[Value]) -> None:
    """The outputs of one call have one node, or nodes that share what lies behind: freed for one, freed for all."""
    nodes = [v.address for v in made if type(v) is Ref and v.address in getattr(m.tensor(v), "nodes", ())]
    for address in nodes[1:]:
        node = m.cells[node_key(address)]
        common = frozenset(nodes[:1])
        m.store.set(node_key(address), node._replace(inputs=node.inputs | common, sure=node.sure | common))


def _nested(op: Op, made: list[Value]) -> Value:
    """Outputs of which some are in a tuple of their own: `output, (h, c)` of an LSTM."""
    groups: dict[str, list[Value]] = {}
    for out, value in zip(op.out, made):
        groups.setdefault(out.at.partition(".")[0], []).append(value)
    nested = {out.at.partition(".")[0] for out in op.out if "." in out.at}
    return Tuple(tuple(Tuple(tuple(v)) if at in nested else v[0] for at, v in groups.items()))


ON_UNKNOWN = "the result of an operator on something unknown"


def _output(
    m: Machine, site: ast.AST, op: Op, at: int, inputs: Inputs, words: str, places: Places, found: Carried
) -> Value:
    out = op.out[at]
    shared = [o for o in inputs.operands if o.parameter in out.of] or list(inputs.operands[:1])
    if out.same == "always":
        given = [value for parameter, value in inputs.arguments.items() if parameter in out.of]
        if shared or given:
            value = shared[0].value if shared else given[0]
            return _in_transform(m, places[out.at], value) if m.transformed and not op.mutates else value
    truth, through = found
    dtype = dtype_of(op, out, inputs)
    if truth == YES and out.dtype in ("same", "promote"):
        dtype = FLOAT  # what carries a gradient is floating point, and so is what is computed with it
    if out.grad == "never" or dtype == INTEGER:
        granted = NO
    else:
        if out.grad == "maybe" and dtype == FLOAT and truth == MAYBE and out.dtype == "maybe":
            truth = YES if any(o.state.requires_grad == YES for o in through) else truth
        granted = truth | NO if dtype & INTEGER and truth & YES else truth
    granted = in_mode(m, granted)
    if granted & YES and through and all(o.state.inference & YES for o in through):
        granted |= (
            NO  # whether autograd sees what is done to inference tensors depends on what comes with them
        )
    if op.no_grad_inside:
        granted = NO
    address = places[out.at]
    if granted == MAYBE and m.mode == GRAD and address in m.expected:
        granted = YES
    state = computed(m, site, address, words, out.fn, granted, through, inputs, dtype, op, out, places=places)
    if out.view != "never" and shared:
        in_place = op.name.rpartition(".")[2] in FLATTENING and is_dense(shared[0].state)
        state = _as_view(m, state, shared[0], out, words, site, shares=in_place)
    elif out.share != "never" and shared:
        state = state._replace(storage=state.storage | shared[0].state.storage)
    if out.view != "never" and not shared and inputs.unknown:
        state = state._replace(view=MAYBE)
    strange = m.mode & ~INFERRING and any(o.state.inference & YES for o in inputs.operands)
    if (out.inner != "never" or strange) and state.view == NO and state.inference != YES:
        state = state._replace(view=MAYBE)  # which path inside was taken depends on more than was measured
    same = out.same == "maybe" and shared and shared[0].state.dtype & dtype
    if same and m.transformed:  # which wraps what an op gives
        state = join_tensors(state, shared[0].state._replace(view=shared[0].state.view | NO))
    m.place(address, state)
    ref = Ref(address)
    if not same or m.transformed:
        return ref
    if _is_held_by_nobody(m, site, shared[0]):  # no matter then which of the two it is
        own = shared[0].state._replace(storage=state.storage)
        m.place(address, join_tensors(state, own))
        return ref
    return join(shared[0].value, ref)


def _is_held_by_nobody(m: Machine, site: ast.AST, given: Operand) -> bool:
    """Whether a tensor without a graph was made for one method alone, as that of `torch.zeros(3).to(device)`."""
    match site, given.value:
        case ast.Call(func=ast.Attribute(value=ast.Call() as maker)), Ref(address=address):
            alone = given.state.requires_grad == NO and given.state.storage == {address}
            return alone and m.is_made_at(address, maker)
    return False


def _in_transform(m: Machine, address: int, value: Value) -> Value:
    """A transform of functions wraps what an op gives: it is another tensor, and no view."""
    state = m.tensor(value)
    if state is None:
        return value
    m.place(address, state._replace(view=state.view | NO))
    return Ref(address)


def _view_made(m: Machine, base: Tensor, out: Output) -> int:
    """How a view of this base is made: as one of many, without recording, or both as its base was and as any view."""
    if out.fn == ("ExpandBackward0",):
        return EXPANDED
    if base.view & YES and not base.made_as & (ORDINARY | EXPANDED):
        return base.made_as
    if m.mode == GRAD:
        own = ONE_OF_MANY if out.many else ORDINARY
    elif m.mode == NO_GRAD:
        own = UNRECORDED
    else:
        own = ORDINARY | ONE_OF_MANY | UNRECORDED
    return own if base.made_as == ORDINARY else own | base.made_as & ~EXPANDED


def _as_view(
    m: Machine, state: Tensor, source: Operand, out: Output, words: str, site: ast.AST, *, shares: bool
) -> Tensor:
    """The state of an output that is, or may be, a view of a tensor; where it `shares` its memory it is no copy."""
    base = source.state
    view = TRUTH[out.view]
    unrecorded.view_made(m, site)
    shares = shares or out.share == "always"
    storage = base.storage if shares or view == YES else base.storage | state.storage
    if base.inference & YES and view & YES:
        view = NO if base.inference == YES else MAYBE  # autograd does not track views of inference tensors
    if view & YES:
        state = state._replace(made_as=_view_made(m, base, out) | (ORDINARY if view != YES else 0))
    if m.batched:
        view |= NO
    sure = shares or out.view == "always"
    inference = base.inference if sure else state.inference | base.inference
    bases = bases_of(m, source.value) if view & YES else NOTHING
    state = state._replace(storage=storage, view=view, alias=base.alias, inference=inference, base=bases)
    if m.mode & GRAD or base.requires_grad == NO or out.grad == "never":
        return state
    if base.inference == YES:
        return state  # what is a view of an inference tensor is no view to autograd
    # Outside grad mode a view still says what its base says, and leads nowhere.
    asks = asked_by_bases(m, bases) or base.requires_grad
    if base.view & YES and base.is_leaf & YES and not base.base:
        asks |= NO  # its base was made inside an op, and nobody told that to require grad
    plain = NO if view == YES else NO | asks
    return state._replace(
        requires_grad=asks if out.view == "always" else plain,
        is_leaf=YES,
        grad_fn=NO_FN,
        nodes=NOTHING,
        leaves=NOTHING,
        dtype=base.dtype,
    )
