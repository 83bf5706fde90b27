"""Changes in place: what is changed, what torch refuses, and what the graph of the changed tensor is afterwards."""

import ast

from gradvet.autograd.graph import add_node, unknown_key
from gradvet.autograd.knowledge.lookup import Op
from gradvet.autograd.library.constant_terms import dead_terms
from gradvet.autograd.library.inputs import in_mode
from gradvet.autograd.library.kept import Inputs, Operand, Places, saved_by
from gradvet.autograd.library.results import MOST_ORIGINS
from gradvet.autograd.library.storages import (
    bases_of,
    changed_unseen,
    count_change,
    leaf_behind,
    reach_aliases,
)
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import (
    ANY_FN,
    EXPANDED,
    FLOAT,
    GRAD,
    INFERRING,
    INTEGER,
    MAYBE,
    NO,
    NOTHING,
    ONE_OF_MANY,
    UNRECORDED,
    YES,
    Origin,
    Tensor,
)
from gradvet.autograd.memory.values import Tuple, Value


def _own_places(state: Tensor, op: Op | None) -> Places:
    """Where an op that works in place makes its result: in the tensor itself, wherever that stands in the result."""
    if op is None or len(state.storage) != 1:
        return {}
    return dict.fromkeys((entry.operand for entry in op.saves_out), next(iter(state.storage)))


def _take_cuts(
    m: Machine, site: ast.AST, target: Value, before: Tensor, words: str, others: tuple[Operand, ...]
) -> None:
    """A change that leaves no graph takes over the cuts of what is written, and is one when grad mode is off."""
    lost = [o.state for o in others if o.state.requires_grad & YES]
    cuts = frozenset[int]().union(before.cuts, *(o.state.cuts for o in others))
    if lost and not m.mode & GRAD:
        behind = frozenset().union(*(s.leaves for s in lost))
        cuts |= {m.cut("no_grad", words, site, behind, NOTHING)}
    if cuts != before.cuts:
        m.update(target, lambda t: t._replace(cuts=t.cuts | cuts) if type(t) is Tensor else t)


def edit(
    m: Machine,
    site: ast.AST,
    target_value: Value,
    words: str,
    others: tuple[Operand, ...] = (),
    *,
    fn: tuple[str, ...] = (),
    zero: bool = False,
    target: ast.expr | None = None,
    tag: str = "",
    op: Op | None = None,
    parameter: str = "self",
    maker: ast.AST | None = None,
    unknown: tuple[Value, ...] = (),
    places: tuple[Operand, ...] = (),
) -> None:
    """Change a tensor in place: bump its version, and record in the graph what autograd records.

    What is `unknown` among the arguments may be a tensor that requires grad. Of constants that are written at some
    `places` a tensor tells no more than which those are: `mask[best] = 1`.
    """
    before = m.tensor(target_value)
    if before is None:
        return
    asks_itself = before.requires_grad == YES and m.mode == GRAD and not (op is not None and op.leaf_ok)
    leaf = leaf_behind(m, before) if asks_itself else None
    if leaf is not None:
        if m.judge is not None:
            asked = any(o.state.requires_grad & YES and o.state.leaves for o in others)
            m.judge.walks.leaf_changed(site, before, leaf, target, words, asks=asked)
        return  # torch raises; the tensor stays what it was
    if _is_barred(m, before, words, others):
        if m.judge is not None:
            m.judge.walks.view_changed(site, before, target, words)
    elif m.judge is not None:
        m.judge.edited(site, before, target, words)
        m.judge.written(site, before, [operand.state for operand in others], words)
        m.judge.walks.changed(site, target_value, before, target, words, maker)
        m.judge.overwritten.changed(site, target_value, maker)
    if before.inference == YES and not before.counted and not m.mode & INFERRING:
        return  # torch raises
    count_change(m, before)
    asks = _asking(op, others)
    open_ = bool(unknown) and bool(m.mode & GRAD) and (op is None or bool(op.grad_from))
    if before.dtype == INTEGER or not (asks or before.requires_grad & YES or open_):
        _take_cuts(m, site, target_value, before, words, (*others, *places))
        changed_unseen(m, target_value, before)
        return
    if not m.mode & GRAD:
        changed_unseen(m, target_value, before)
        return
    address = m.address(site, f"edit{tag}")
    granted = _granted(m, [before, *(operand.state for operand in asks)])
    leaves, cuts, assumes = _taken_on(NOTHING if zero else before.leaves, before, asks)
    names: frozenset[str | None] = frozenset(fn) or frozenset({ANY_FN})
    own = Operand(parameter, target_value, before)
    inputs = Inputs({}, (own, *others), ())
    saved, keeps, higher, graphed = saved_by(m, address, _own_places(before, op), op, inputs, leaves)
    made_by = [before, *(o.state for o in asks)]
    add_node(
        m, address, words, site, made_by, saved, keeps, all_known=not unknown, higher=higher, graphed=graphed
    )
    if unknown:
        m.store.set(unknown_key(address), Tuple(unknown))
    if m.judge is not None:
        m.judge.flow.changed(address, words, site, (own, *others))
    origins = tuple(s.origin for s in (before, *(o.state for o in asks)) if s.origin is not None)[
        :MOST_ORIGINS
    ]

    def change(content: object) -> object:
        if type(content) is not Tensor:
            return content
        return content._replace(
            requires_grad=YES if YES in (granted, content.requires_grad) else content.requires_grad | granted,
            is_leaf=NO if granted == YES else content.is_leaf | NO,
            grad_fn=names if granted == YES else content.grad_fn | names,
            nodes=frozenset({address}) if granted == YES else content.nodes | {address},
            leaves=leaves,
            cuts=cuts,
            assumes=assumes,
            origin=Origin(site, words, origins),
            dtype=FLOAT if asks or before.requires_grad & YES else content.dtype,
            dead=dead_terms(m, words, Inputs({}, (Operand("self", target_value, before), *others), ())),
        )

    bases = bases_of(m, target_value)
    changed_unseen(m, target_value, before)  # views of other bases on the same storage
    if before.view & YES:
        names = frozenset({ANY_FN})  # the view is made again from its base
    m.update(target_value, change)
    reach_aliases(m, target_value, before, bases, change)


def _granted(m: Machine, states: list[Tensor]) -> int:
    """Whether a change of these tensors is recorded; of inference tensors alone it need not be, and they stay so."""
    granted = in_mode(m, YES if any(state.requires_grad == YES for state in states) else MAYBE)
    return granted | NO if all(state.inference & YES for state in states) else granted


def _asking(op: Op | None, others: tuple[Operand, ...]) -> list[Operand]:
    """Those of the operands of an edit through which a gradient may come."""
    asks = [o for o in others if o.state.requires_grad & YES and o.state.dtype != INTEGER]
    return asks if op is None else [o for o in asks if o.parameter in op.grad_from]


def _taken_on(
    leaves: frozenset[int], before: Tensor, asks: list[Operand]
) -> tuple[frozenset[int], frozenset[int], frozenset[str]]:
    """The leaves, cuts and assumptions of a tensor after a change by operands that ask for gradients."""
    cuts, assumes = before.cuts, before.assumes
    for operand in asks:
        leaves |= operand.state.leaves
        cuts |= operand.state.cuts
        assumes |= operand.state.assumes
    return leaves, cuts, assumes


_ELEMENTWISE = frozenset({
    "+=", "-=", "*=", "/=", "**=", "add_()", "sub_()", "mul_()", "div_()", "clamp_()", "relu_()", "sigmoid_()", "tanh_()",
    "exp_()", "neg_()", "sqrt_()", "abs_()", "copy_()", "normal_()", "uniform_()",
})  # fmt: skip
"""Ops that refuse an expanded tensor (measured; `fill_`, `zero_` and `masked_fill_` do not)."""


def _is_barred(m: Machine, state: Tensor, words: str, others: tuple[Operand, ...]) -> bool:
    """Whether torch must refuse a change in place of this view."""
    if state.view != YES:
        return False
    if state.made_as == EXPANDED:
        return words in _ELEMENTWISE
    asks = state.requires_grad == YES or any(o.state.requires_grad == YES for o in others)
    return m.mode == GRAD and asks and state.made_as in {ONE_OF_MANY, UNRECORDED, ONE_OF_MANY | UNRECORDED}
