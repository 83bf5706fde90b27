"""The state of a tensor that an op has made, and its node in the graph."""

import ast

from gradvet.autograd.graph import add_node, unknown_key
from gradvet.autograd.knowledge.lookup import Op, Output
from gradvet.autograd.library import unrecorded
from gradvet.autograd.library.cancelled import cancelled
from gradvet.autograd.library.constant_terms import dead_terms
from gradvet.autograd.library.inputs import argument_cuts, made_in
from gradvet.autograd.library.kept import Inputs, Operand, Places, saved_by
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import ANY_FN, FLOAT, GRAD, MAYBE, NO, NO_FN, NOTHING, YES, Origin, Tensor
from gradvet.autograd.memory.values import Ref, Tuple
from gradvet.autograd.unknowns import is_data, unknown_behind, unknown_cut

MOST_ORIGINS = 4


ALONE = frozenset({"the caller, which is not in this file, leaves grad mode on"})


def computed(
    m: Machine,
    site: ast.AST,
    address: int,
    words: str,
    fn: tuple[str, ...],
    granted: int,
    through: list[Operand],
    inputs: Inputs,
    dtype: int,
    op: Op | None = None,
    out: Output | None = None,
    also_saved: frozenset[int] = NOTHING,
    places: Places | None = None,
) -> Tensor:
    """The state of a tensor that an op has just made, and its node in the graph, which keeps what is `also_saved`.

    `places` are the addresses of all that the op makes, when that is more than this tensor.
    """
    cuts = argument_cuts(m, inputs)
    assumes: frozenset[str] = frozenset()
    leaves = NOTHING
    valued = _valued(op, inputs.operands)
    for operand in valued:
        cuts |= operand.state.cuts
    for operand in through:
        leaves |= operand.state.leaves
        assumes |= operand.state.assumes
    stopped = [o.state for o in valued if o.state.requires_grad & YES]
    if op is not None and op.name.endswith("_like"):
        cuts = NOTHING  # it takes the shape and none of the values
    elif granted == NO and stopped:
        kind = "no_grad" if m.mode != GRAD and (out is None or out.grad != "never") else "nondiff"
        behind = frozenset().union(*(s.leaves for s in stopped))
        nodes = frozenset().union(*(s.nodes for s in stopped))
        place = m.mode_place() or site if kind == "no_grad" else site
        cuts |= {m.cut(kind, words, place, behind, nodes, cuts)}
    elif granted == NO and out is not None and out.grad == "never" and m.mode == GRAD:
        for value in inputs.unknown:
            if not is_data(m, value):
                cuts |= unknown_cut(m, value, "nondiff", words, site)
    origins = tuple(o.state.origin for o in (through or inputs.operands) if o.state.origin is not None)[
        :MOST_ORIGINS
    ]
    origin = Origin(site, words, origins)
    _note_cast(m, site)
    inference = made_in(m)
    if m.alone and m.mode == GRAD and granted != NO and not m.mode_nodes:
        assumes |= ALONE
    if granted == NO:
        own = frozenset({address})
        if m.deriving is not None:
            m.deriving.plain(address, inputs)
        return Tensor(
            dtype=dtype, storage=own, cuts=cuts, origin=origin, inference=inference, assumes=assumes
        )
    if words in _TOGETHER and m.judge is not None:
        cuts -= _put_back(m, cuts, inputs)
    _from_unknown(m, address, inputs)
    names: frozenset[str | None] = frozenset(fn) or frozenset({ANY_FN})
    unrecorded.used(m, site, op, inputs.operands)
    saved, keeps, higher, graphed = saved_by(m, address, places or {"0": address}, op, inputs, leaves)
    saved |= also_saved
    known = not inputs.unknown
    add_node(
        m,
        address,
        words,
        site,
        [o.state for o in through],
        saved,
        keeps,
        all_known=known,
        higher=higher,
        graphed=graphed,
    )
    if not known:
        m.store.set(unknown_key(address), Tuple(inputs.unknown))
    if address in m.expected:
        assumes |= {m.expected[address]}
    if (
        op is not None
        and op.no_backward
        and m.judge is not None
        and any(op.no_backward.get(o.parameter) == "always" for o in through)
    ):
        m.judge.cut_notes.no_backward.add(site)
    if m.judge is not None:
        m.judge.flow.computed(address, words, site, inputs)
    lost, zeros = _flattened(m, site, words, op, out, inputs, leaves, cuts)
    cuts, leaves = cuts | zeros, leaves - lost
    return Tensor(
        requires_grad=granted,
        is_leaf=NO if granted == YES else MAYBE,
        grad_fn=names if granted == YES else names | NO_FN,
        dtype=FLOAT if granted == YES else dtype,
        storage=frozenset({address}),
        inference=inference,
        nodes=frozenset({address}),
        leaves=leaves,
        cuts=cuts,
        origin=origin,
        assumes=assumes,
        dead=dead_terms(m, words, inputs),
    )


def _put_back(m: Machine, cuts: frozenset[int], inputs: Inputs) -> frozenset[int]:
    """The cuts of collectives whose own tensor was put back among the copies that are joined here."""
    gathered = {n: filled for n, filled in m.judge.cut_notes.gathered.items() if n in cuts}
    if not gathered:
        return NOTHING
    joined = {ref.address & ~1 for o in inputs.operands for ref, _ in m.tensors(o.value)}
    return frozenset(n for n, filled in gathered.items() if not filled.isdisjoint(joined))


def _flattened(
    m: Machine,
    site: ast.AST,
    words: str,
    op: Op | None,
    out: Output | None,
    inputs: Inputs,
    leaves: frozenset[int],
    cuts: frozenset[int],
) -> tuple[frozenset[int], frozenset[int]]:
    """The leaves that get a gradient of zeros, by the op or since two cancel out, and the cut that stands for it.

    What is drawn from a normal distribution could be made of its mean and standard deviation, as `rsample()` does.
    """
    flat = out is not None and out.zero
    lost = leaves if flat else cancelled(m, words, inputs)
    if not flat and not lost:
        return NOTHING, NOTHING
    drawn = op is not None and op.name == "torch.normal"
    number = m.cut("sample" if drawn else "zero" if flat else "cancelled", words, site, lost, NOTHING, cuts)
    m.cuts[number].form = "rsample" if drawn else ""
    return lost, frozenset({number})


def _valued(op: Op | None, operands: tuple[Operand, ...]) -> tuple[Operand, ...]:
    """The operands whose values matter: `x.to(y)` and `x.view_as(y)` take the dtype or the shape of `y`."""
    short = "" if op is None else op.name.rpartition(".")[2]
    if op is None or (short != "to" and not short.endswith(("_as", "_as_"))):
        return operands
    return tuple(operand for operand in operands if operand.parameter == op.parameter(0))


def _note_cast(m: Machine, site: ast.AST) -> None:
    """Which autocast an op ran under; none when at times under none."""
    if m.autocasts:
        m.casting.setdefault(site, m.autocasts[-1])
    elif site in m.casting:
        m.casting[site] = None


_TOGETHER = frozenset({"cat()", "stack()", "concat()", "concatenate()"})


def _from_unknown(m: Machine, address: int, inputs: Inputs) -> None:
    """Note what unknown things a tensor was computed from."""
    if m.judge is None or not (inputs.unknown or m.judge.cut_notes.unknown_of):
        return
    behind = unknown_behind(m, *inputs.unknown, *(operand.value for operand in inputs.operands))
    if behind:
        m.judge.cut_notes.unknown_of[address & ~1] = behind


def tensor_like(m: Machine, site: ast.AST, tag: str, **fields: object) -> Ref:
    """A new tensor with storage of its own."""
    address = m.address(site, tag)
    m.place(address, Tensor(storage=frozenset({address}), origin=Origin(site, tag), **fields))  # type: ignore[arg-type]
    return Ref(address)
