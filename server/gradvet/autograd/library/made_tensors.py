"""Tensors that are made: from nothing, from other values, from others by what is no op."""

import ast

from gradvet.autograd.held import held_tensors
from gradvet.autograd.knowledge.lookup import Op
from gradvet.autograd.library import flags
from gradvet.autograd.library.indexing import may_be_unknown
from gradvet.autograd.library.inputs import in_mode, made_in, operands_of
from gradvet.autograd.library.kept import Inputs as OpInputs
from gradvet.autograd.library.kept import Operand
from gradvet.autograd.library.results import computed, tensor_like
from gradvet.autograd.library.tensors import made_leaf
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import (
    FLOAT,
    INTEGER,
    MAYBE,
    NO,
    NOTHING,
    YES,
    Tensor,
)
from gradvet.autograd.memory.values import (
    FALSE,
    TRUE,
    Array,
    Number,
    Opaque,
    Ref,
    Sequence,
    Tuple,
    Value,
    atoms,
)
from gradvet.autograd.unknowns import unknown_cut


def copied(m: Machine, node: ast.AST, source: Value) -> None:
    """Note a constructor that is given a tensor: torch copies it, and warns."""
    state = m.tensor(source)
    if m.judge is not None and isinstance(node, ast.Call) and state is not None and not state.loose:
        m.judge.cut_notes.copied.setdefault(node, (m.where(), state))


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
        if not held and may_be_unknown(m, value):
            unknown.append(value)
    through = [o for o in operands if o.state.requires_grad & YES and o.state.dtype & FLOAT]
    truth = YES if any(o.state.requires_grad == YES for o in through) else MAYBE if through or unknown else NO
    address = m.address(site, f"combined{tag}")
    given = OpInputs({str(at): v for at, v in enumerate(inputs)}, tuple(operands), tuple(unknown))
    state = computed(m, site, address, words, fn, in_mode(m, truth), through, given, FLOAT, op)
    m.place(address, state)
    return Ref(address)
