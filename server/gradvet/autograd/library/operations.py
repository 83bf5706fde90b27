"""The transfer of one measured op: what its outputs hold, given what its inputs hold and the grad mode."""

import ast
from collections.abc import Callable

from gradvet.autograd.graph import (
    add_node,
    added_numbers,
    held_tensors,
    is_data,
    is_of_data,
    is_weight,
    node_key,
    surely_asks,
    unknown_behind,
    unknown_cut,
    unknown_key,
    version_key,
)
from gradvet.autograd.knowledge.lookup import Op, Output
from gradvet.autograd.knowledge.ops import joined
from gradvet.autograd.library import batches, forgotten, unrecorded
from gradvet.autograd.library.kept import Inputs, Operand, Places, saved_by
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import (
    ANY_FN,
    EXPANDED,
    FLOAT,
    GRAD,
    INFERENCE,
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
    Node,
    Origin,
    Tensor,
    join_tensors,
)
from gradvet.autograd.memory.values import (
    Const,
    Each,
    External,
    Method,
    Number,
    Opaque,
    Ref,
    Sequence,
    Text,
    Tuple,
    Union,
    Unknown,
    Value,
    atoms,
    const,
    join,
    join_all,
)

TRUTH = {"always": YES, "maybe": MAYBE, "never": NO}
MOST_ORIGINS = 4
_DTYPES = {"float": FLOAT, "complex": FLOAT, "int": INTEGER, "bool": INTEGER, "maybe": FLOAT | INTEGER}
_INTEGER_TYPES = frozenset(
    f"torch.{name}"
    for name in ("long", "int", "int64", "int32", "int16", "int8", "uint8", "bool", "short", "LongTensor")
)
_FLOAT_TYPES = frozenset(
    f"torch.{name}"
    for name in ("float", "double", "half", "float32", "float64", "float16", "bfloat16", "cfloat")
)


def bind(m: Machine, site: ast.AST, op: Op, args: tuple[Value, ...], keywords: dict[str, Value]) -> Inputs:
    """Give each argument the name of its parameter and find the tensors among them."""
    arguments: dict[str, Value] = {}
    rest: list[Value] = []
    for at, value in enumerate(args):
        name = op.parameter(at, tensor=m.tensor(value) is not None)
        if name is None or name in arguments:
            rest.append(value)
            arguments[f"arg{at}"] = value
        else:
            arguments[name] = value
    arguments |= {_spoken(op, word): value for word, value in keywords.items()}
    operands: list[Operand] = []
    unknown: list[Value] = []
    asking = False
    for name, value in arguments.items():
        kind = type(value)
        if kind in (Const, Number, Text, External):
            continue
        if kind is Method:
            forgotten.used(m, value, site)
        held = operands_of(m, name, value)
        operands += held
        if not held or m.tensor(value) is None:
            found = [
                atom
                for atom in _leaves_of(m, value)
                if type(atom) is Unknown or type(m.cells.get(getattr(atom, "address", -1))) is Opaque
            ]
            asking = asking or bool(found and (name in op.grad_from or name.startswith("arg")))
            unknown += found
    return Inputs(arguments, tuple(operands), tuple(unknown), asking)


_NUMPY_WORDS = {
    "axis": "dim",
    "keepdims": "keepdim",
    "a": "input",
    "x": "input",
    "x1": "input",
    "x2": "other",
}
"""numpy's names for parameters, which torch takes too (torch/csrc/utils/python_arg_parser.cpp)."""


def _spoken(op: Op, word: str) -> str:
    """The name of a parameter that is given by numpy's name for it."""
    other = _NUMPY_WORDS.get(word)
    if other is None:
        return word
    named = {name for names in op.params for name in names.lstrip("*").split("|")}
    return other if word not in named and other in named else word


def operands_of(m: Machine, name: str, value: Value) -> list[Operand]:
    """The tensors of an argument. Of what is only one of several alternatives, none must require grad."""
    state = m.tensor(value)
    if state is not None:
        return [Operand(name, value, state)]
    held = held_tensors(m, value)
    if any(state.requires_grad & YES for _, state in held) and not surely_asks(m, value):
        held = [(ref, state._replace(requires_grad=state.requires_grad | NO)) for ref, state in held]
    return [Operand(name, ref, state) for ref, state in held]


def _leaves_of(m: Machine, value: Value) -> list[Value]:
    out: list[Value] = []
    for atom in atoms(value):
        content = m.cells.get(getattr(atom, "address", -1))
        if type(atom) is Tuple:
            out += [x for item in atom.items for x in _leaves_of(m, item)]
        elif type(content) is Sequence and content.element is not None:
            out += atoms(content.element)
        else:
            out.append(atom)
    return out


def argument_kind(m: Machine, value: Value) -> str:
    """The kind of an argument, by which an op's form is chosen."""
    kind = type(value)
    if kind is Const:
        if value.value is None:
            return "none"
        if value.kind == "bool":
            return "true" if value.value else "false"
        return "str" if value.kind == "str" else "number"
    if kind is Number:
        return "other" if value.kind == "bool" else "number"
    if kind is Text:
        return "str"
    if kind is Tuple:
        return "list"
    if m.tensor(value) is not None:
        return "tensor"
    content = m.cells.get(getattr(value, "address", -1))
    return "list" if type(content) is Sequence else "other"


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
    if short == "copy_" and m.judge is not None and len(inputs.arguments) > 1:
        m.judge.snapshots.restored(site, *list(inputs.arguments.values())[:2])
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
    for part in out.items if type(out) is Tuple else (out,):
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
ALONE = frozenset({"the caller, which is not in this file, leaves grad mode on"})
Carried = tuple[int, list[Operand]]


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


def scalar_cuts(m: Machine, site: ast.AST, words: str, operands: tuple[Operand, ...]) -> frozenset[int]:
    """The cuts that a Python number made from tensors carries."""
    cuts = NOTHING
    for operand in operands:
        batches.read(m, site, operand.state, "number")
        cuts |= operand.state.cuts
        if operand.state.requires_grad & YES:
            cuts |= {
                m.cut("item", words, site, operand.state.leaves, operand.state.nodes, operand.state.cuts)
            }
    return cuts


ON_UNKNOWN = "the result of an operator on something unknown"


def argument_cuts(m: Machine, inputs: Inputs) -> frozenset[int]:
    """The cuts that plain numbers among the arguments carry, also where something unknown was added to them."""
    cuts = NOTHING
    for value in inputs.arguments.values():
        kind = type(value)
        if kind is Number:
            cuts |= value.cuts
        elif kind is not Const and (kind is not Ref or type(m.cells.get(value.address)) is Opaque):
            cuts |= added_numbers(m, value)
    return cuts


def carried(op: Op, inputs: Inputs) -> tuple[int, list[Operand]]:
    """Whether gradients may come through the inputs, and through which."""
    truth, through = NO, []
    for operand in inputs.operands:
        answer = op.grad_from.get(operand.parameter)
        if answer is None and operand.parameter.startswith("arg"):
            answer = (
                op.grad_from.get("tensors")
                or (op.params and op.grad_from.get(op.params[-1].lstrip("*")))
                or None
            )
        if answer is None or operand.state.dtype == INTEGER:
            continue
        if operand.state.requires_grad & YES:
            through.append(operand)
            certain = operand.state.requires_grad == YES and answer == "always"
            truth = YES if certain or truth == YES else MAYBE
    if truth == NO and inputs.asking and op.grad_from:
        truth = MAYBE
    return truth, through


FILL = "fill_value"
"""The parameter that decides the dtype of what is filled with it: `torch.full((), 3)` is a tensor of integers."""


def _dtype_of_number(value: Value) -> int:
    kind = value.kind if type(value) in (Const, Number) else ""
    return FLOAT if kind in ("float", "complex") else INTEGER if kind in ("int", "bool") else FLOAT | INTEGER


def dtype_of(op: Op, out: Output, inputs: Inputs) -> int:
    """The dtype class of an output."""
    wanted = inputs.arguments.get("dtype")
    for value in (wanted, *inputs.arguments.values()) if out.dtype == "maybe" else (wanted,):
        if type(value) is Union and any(type(atom) is External for atom in value.atoms):
            return FLOAT | INTEGER
        if type(value) is External:
            if value.name in _INTEGER_TYPES:
                return INTEGER
            if value.name in _FLOAT_TYPES:
                return FLOAT
    if FILL in inputs.arguments and not inputs.operands:
        return _dtype_of_number(inputs.arguments[FILL])
    if out.dtype in _DTYPES and out.dtype != "maybe":
        return _DTYPES[out.dtype]
    if not inputs.operands:
        return FLOAT | INTEGER if inputs.unknown or out.dtype == "maybe" else FLOAT
    if out.dtype == "maybe":
        # What is not seen to be a dtype is a size or a device: `x.to(device)` keeps the dtype.
        others = [o.state.dtype for o in inputs.operands[1:] if o.parameter == "other"]
        return others[0] if others else inputs.operands[0].state.dtype
    if out.dtype == "promote":
        known = [o.state.dtype for o in inputs.operands]
        if FLOAT in known:
            return FLOAT
        number = any(
            type(v) is Number or (type(v) is Const and v.kind == "float") for v in inputs.arguments.values()
        )
        surely = not (number or inputs.unknown) and all(d == INTEGER for d in known)
        return INTEGER if surely else FLOAT | INTEGER
    first = inputs.operands[0]
    # `unknown.gather(1, index)` has the dtype of what is not known, never that of its index.
    return FLOAT | INTEGER if inputs.unknown and first.parameter != op.parameter(0) else first.state.dtype


def in_mode(m: Machine, truth: int) -> int:
    """What requires grad is left of `truth` in the present grad modes."""
    mode = m.mode
    if not mode & GRAD:
        return NO
    return truth if mode == GRAD else truth | NO


def _output(
    m: Machine, site: ast.AST, op: Op, at: int, inputs: Inputs, words: str, places: Places, found: Carried
) -> Value:
    out = op.out[at]
    shared = [o for o in inputs.operands if o.parameter in out.of] or list(inputs.operands[:1])
    if out.same == "always":
        given = [value for parameter, value in inputs.arguments.items() if parameter in out.of]
        if shared or given:
            return shared[0].value if shared else given[0]
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
        state = _as_view(m, state, shared[0], out, words, site)
    elif out.share != "never" and shared:
        state = state._replace(storage=state.storage | shared[0].state.storage)
    if out.view != "never" and not shared and inputs.unknown:
        state = state._replace(view=MAYBE)
    strange = m.mode & ~INFERENCE and any(o.state.inference & YES for o in inputs.operands)
    if (out.inner != "never" or strange) and state.view == NO and state.inference != YES:
        state = state._replace(view=MAYBE)  # which path inside was taken depends on more than was measured
    m.place(address, state)
    ref = Ref(address)
    if out.same == "maybe" and shared and shared[0].state.dtype & dtype:
        return join(shared[0].value, ref)
    return ref


def made_in(m: Machine) -> int:
    """Whether what is made now is an inference tensor."""
    return YES if m.mode == INFERENCE else MAYBE if m.mode & INFERENCE else NO


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
    for operand in inputs.operands:
        cuts |= operand.state.cuts
    for operand in through:
        leaves |= operand.state.leaves
        assumes |= operand.state.assumes
    stopped = [o.state for o in inputs.operands if o.state.requires_grad & YES]
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
    if m.autocasts:
        m.casting.setdefault(site, m.autocasts[-1])
    elif site in m.casting:
        m.casting[site] = None
    inference = made_in(m)
    if m.alone and m.mode == GRAD and granted != NO and not m.mode_nodes:
        assumes |= ALONE
    if granted == NO:
        return Tensor(
            dtype=dtype,
            storage=frozenset({address}),
            cuts=cuts,
            origin=origin,
            inference=inference,
            assumes=assumes,
        )
    if words in _TOGETHER and m.judge is not None:
        cuts -= m.judge.cut_notes.gathered  # the own tensor was put back among the copies
    _from_unknown(m, address, inputs)
    names: frozenset[str | None] = frozenset(fn) or frozenset({ANY_FN})
    unrecorded.used(m, site, op, inputs.operands)
    saved, keeps, higher = saved_by(m, address, places or {"0": address}, op, inputs, leaves)
    saved |= also_saved
    known = not inputs.unknown
    add_node(
        m, address, words, site, [o.state for o in through], saved, keeps, all_known=known, higher=higher
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
    if out is not None and out.zero:
        cuts |= {m.cut("zero", words, site, leaves, NOTHING, cuts)}
        leaves = NOTHING
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
        dead=_dead(m, words, inputs),
    )


_LINEAR = frozenset({"+", "-", "+=", "-=", "*", "/", "*=", "/=", "neg", "mean()", "sum()", "add()", "sub()"})
_ADDING = frozenset({"+", "-", "+=", "-=", "add()", "sub()"})


_TOGETHER = frozenset({"cat()", "stack()", "concat()", "concatenate()"})


def _from_unknown(m: Machine, address: int, inputs: Inputs) -> None:
    """Note what unknown things a tensor was computed from."""
    if m.judge is None or not (inputs.unknown or m.judge.cut_notes.unknown_of):
        return
    behind = unknown_behind(m, *inputs.unknown, *(operand.value for operand in inputs.operands))
    if behind:
        m.judge.cut_notes.unknown_of[address & ~1] = behind


def _dead(m: Machine, words: str, inputs: Inputs) -> frozenset[int]:
    """The cuts of terms that are only added: whatever their weight, they change a loss and no gradient."""
    asking = [o for o in inputs.operands if o.state.requires_grad & YES]
    if (
        (inputs.unknown or asking)
        and all(o.state.requires_grad == MAYBE and o.state.dead for o in asking)
        and all(is_data(m, value) for value in inputs.unknown)
        and all(is_of_data(m, o.value) for o in asking)
    ):
        # Whatever is computed of constants and of data is a constant; that it may require grad is for the data's sake.
        behind = frozenset[int]().union(*(o.state.cuts for o in inputs.operands))
        return m.nearest_cut(behind | argument_cuts(m, inputs))
    if words not in _LINEAR or not inputs.operands:
        return NOTHING
    dead = NOTHING
    if words in _ADDING:
        for operand in inputs.operands:
            state = operand.state
            if state.requires_grad == YES:
                dead |= state.dead
                if not state.leaves and not state.assumes:
                    dead |= m.nearest_cut(frozenset(c for c in state.cuts if m.cuts[c].kind == "zero"))
            elif state.requires_grad == NO:
                dead |= m.nearest_cut(state.cuts)
            else:
                dead |= state.dead
        dead |= m.nearest_cut(argument_cuts(m, inputs))
    elif len(inputs.operands) == 1 and all(is_weight(m, value) for value in inputs.unknown):
        state = inputs.operands[0].state
        # A weight of which nothing is known makes of a constant no more than a constant that is weighted.
        dead = state.dead if state.requires_grad != NO else m.nearest_cut(state.cuts)
    return dead


def version_of(m: Machine, storage: int) -> int:
    """How often a storage was changed in place; -1 when that is not known."""
    version = m.cells.get(version_key(storage))
    if version is None:
        return 0
    return version.value if type(version) is Const else -1


def changed_storage(m: Machine, storage: int, *, certain: bool) -> None:
    """Count a change of a storage; one that may not have happened makes the count unknown."""
    version = version_of(m, storage)
    known = certain and not storage & 1 and version >= 0
    m.store.set(version_key(storage), Const("int", version + 1) if known else Number("int"))


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


def _as_view(m: Machine, state: Tensor, source: Operand, out: Output, words: str, site: ast.AST) -> Tensor:
    """The state of an output that is, or may be, a view of a tensor."""
    base = source.state
    view = TRUTH[out.view]
    unrecorded.view_made(m, site)
    storage = base.storage if out.share == "always" or view == YES else base.storage | state.storage
    if base.inference & YES and view & YES:
        view = NO if base.inference == YES else MAYBE  # autograd does not track views of inference tensors
    if view & YES:
        state = state._replace(made_as=_view_made(m, base, out) | (ORDINARY if view != YES else 0))
    if m.batched:
        view |= NO
    sure = out.share == "always" or out.view == "always"
    inference = base.inference if sure else state.inference | base.inference
    bases = bases_of(m, source.value) if view & YES else NOTHING
    state = state._replace(storage=storage, view=view, alias=base.alias, inference=inference, base=bases)
    if m.mode & GRAD or base.requires_grad == NO or out.grad == "never":
        return state
    if base.inference == YES:
        return state  # what is a view of an inference tensor is no view to autograd
    # Outside grad mode a view still says what its base says, and leads nowhere.
    asks = asked_by_bases(m, bases) or base.requires_grad
    plain = NO if view == YES else NO | asks
    return state._replace(
        requires_grad=asks if out.view == "always" else plain,
        is_leaf=YES,
        grad_fn=NO_FN,
        nodes=NOTHING,
        leaves=NOTHING,
        dtype=base.dtype,
    )


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
) -> None:
    """Change a tensor in place: bump its version, and record in the graph what autograd records.

    What is `unknown` among the arguments may be a tensor that requires grad.
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
    if before.inference == YES and not before.counted and not m.mode & INFERENCE:
        return  # torch raises
    _count_change(m, before)
    asks = _asking(op, others)
    open_ = bool(unknown) and bool(m.mode & GRAD) and (op is None or bool(op.grad_from))
    if before.dtype == INTEGER or not (asks or before.requires_grad & YES or open_):
        _take_cuts(m, site, target_value, before, words, others)
        changed_unseen(m, target_value, before)
        return
    if not m.mode & GRAD:
        changed_unseen(m, target_value, before)
        return
    address = m.address(site, f"edit{tag}")
    certain = any(o.state.requires_grad == YES for o in asks) or before.requires_grad == YES
    granted = in_mode(m, YES if certain else MAYBE)
    leaves, cuts, assumes = _taken_on(NOTHING if zero else before.leaves, before, asks)
    names: frozenset[str | None] = frozenset(fn) or frozenset({ANY_FN})
    own = Operand(parameter, target_value, before)
    inputs = Inputs({}, (own, *others), ())
    saved, keeps, higher = saved_by(m, address, _own_places(before, op), op, inputs, leaves)
    made_by = [before, *(o.state for o in asks)]
    add_node(m, address, words, site, made_by, saved, keeps, all_known=not unknown, higher=higher)
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
            requires_grad=content.requires_grad | granted if granted != YES else YES,
            is_leaf=NO if granted == YES else content.is_leaf | NO,
            grad_fn=names if granted == YES else content.grad_fn | names,
            nodes=frozenset({address}) if granted == YES else content.nodes | {address},
            leaves=leaves,
            cuts=cuts,
            assumes=assumes,
            origin=Origin(site, words, origins),
            dtype=FLOAT if asks or before.requires_grad & YES else content.dtype,
            dead=_dead(m, words, Inputs({}, (Operand("self", target_value, before), *others), ())),
        )

    bases = bases_of(m, target_value)
    changed_unseen(m, target_value, before)  # views of other bases on the same storage
    if before.view & YES:
        names = frozenset({ANY_FN})  # the view is made again from its base
    m.update(target_value, change)
    _reach_aliases(m, target_value, before, bases, change)


def _asking(op: Op | None, others: tuple[Operand, ...]) -> list[Operand]:
    """Those of the operands of an edit through which a gradient may come."""
    asks = [o for o in others if o.state.requires_grad & YES and o.state.dtype != INTEGER]
    return asks if op is None else [o for o in asks if o.parameter in op.grad_from]


def _count_change(m: Machine, state: Tensor) -> None:
    """A change is counted for each storage that a tensor may have; `.data` and arrays have counters of their own."""
    for storage in state.storage if counts_with_source(state) else ():
        changed_storage(m, storage, certain=len(state.storage) == 1)


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


def leaf_behind(m: Machine, state: Tensor) -> Tensor | None:
    """The leaf that requires grad and is this tensor, or the base of which it is a view; None if it may be neither."""
    if state.is_leaf == YES and state.view == NO:
        return state if state.alias is None else None
    if state.view != YES or not state.base:
        return _leaf_shared(m, state)
    bases = [m.cells.get(address) for address in sorted(state.base)]
    leaves = [_leaf_shared(m, base) for base in bases if type(base) is Tensor]
    return leaves[0] if len(leaves) == len(bases) and all(leaf is not None for leaf in leaves) else None


def _leaf_shared(m: Machine, state: Tensor) -> Tensor | None:
    """The leaf that requires grad and is this tensor, or whose storage a part of its graph surely is."""
    if state.requires_grad == state.is_leaf == YES and state.view == NO:
        return state
    if not (
        state.view & YES and state.requires_grad == YES and state.alias is None and len(state.leaves) == 1
    ):
        return None
    leaf = m.cells.get(min(state.leaves))
    if type(leaf) is not Tensor or leaf.view != NO or not leaf.is_leaf == leaf.requires_grad == YES:
        return None
    return leaf if len(state.storage) == 1 and leaf.storage == state.storage else None


def changed_unseen(m: Machine, value: Value, before: Tensor | None = None) -> None:
    """After a change that autograd does not record, the grad_fn of a view is made again when it is next asked for.

    So is that of all views which count their versions together with what was changed.
    """
    if before is not None and not _may_count_with_source(before):
        return
    storage = frozenset[int]().union(*(state.storage for _, state in m.tensors(value)))
    for address in m.store.sharing.on(storage):
        other = m.cells.get(address)
        if type(other) is not Tensor or not other.storage & storage:
            continue
        if other.view & YES and other.requires_grad & YES and _may_count_with_source(other):
            m.store.set(address, made_again(other))


def written_unseen(m: Machine, value: Value) -> None:
    """A tensor is written while grad mode is off, by something that is told of in another way."""
    state = m.tensor(value)
    if state is not None:
        _count_change(m, state)
        changed_unseen(m, value, state)


def _may_count_with_source(state: Tensor) -> bool:
    """What only may be a view of an array or of `.data` may as well be something of its own."""
    return state.view == MAYBE or counts_with_source(state)


def counts_with_source(state: Tensor) -> bool:
    """Whether a tensor counts its versions together with what it was taken from; `.data` and arrays do not."""
    return state.alias is None or state.alias.kind == "detach"


def made_again(view: Tensor) -> Tensor:
    """A view whose grad_fn may be made again from its base; one that had none as a leaf may have one then."""
    return view._replace(is_leaf=view.is_leaf | NO, grad_fn=view.grad_fn | {ANY_FN})


def bases_of(m: Machine, value: Value) -> frozenset[int]:
    """What a view of this value is a view of: of a view its base, of another tensor that tensor."""
    found = NOTHING
    for ref, state in m.tensors(value):
        if state.view & YES:
            found |= state.base
        if state.view & NO or not state.base:
            found |= {ref.address}
    return found


def asked_by_bases(m: Machine, bases: frozenset[int]) -> int:
    """Whether what a view may be a view of requires grad; nothing when none of it is known."""
    found = 0
    for address in bases:
        base = m.cells.get(address)
        found |= base.requires_grad if type(base) is Tensor else 0
    return found


def tracked_together(m: Machine, bases: frozenset[int]) -> list[tuple[int, Tensor]]:
    """The tensors, by address, that are these bases or may be views of them."""
    known = ((at, m.cells.get(at)) for at in sorted({*bases, *m.store.sharing.over(bases)}))
    return [
        (at, other) for at, other in known if type(other) is Tensor and (at in bases or other.base & bases)
    ]


def _reach_aliases(
    m: Machine, target: Value, before: Tensor, bases: frozenset[int], change: Callable[[object], object]
) -> None:
    """What autograd tracks as the base, or as another view, of a tensor that was changed gets its graph too."""
    done = _all_refs(target)
    for address, other in tracked_together(m, bases):
        if Ref(address) in done:
            continue
        m.charge(20)
        is_base = address in bases
        certain = len(bases) == 1 and (is_base or (other.view == YES and len(other.base) == 1))
        certain = certain and (len(done) == 1 and (before.view == YES or not is_base))
        made = change(other)
        if type(made) is Tensor:
            made = made._replace(grad_fn=made.grad_fn | frozenset({ANY_FN}), dead=other.dead)
            m.store.set(address, made if certain and not address & 1 else join_tensors(other, made))


def _all_refs(value: Value) -> tuple[Ref, ...]:
    return value.refs if type(value) is Each else tuple(a for a in atoms(value) if type(a) is Ref)


def savers(m: Machine, state: Tensor) -> list[int]:
    """The nodes, not freed yet, that saved this tensor's storage for backward as it is now."""
    if len(state.storage) != 1:
        return []
    (place,) = state.storage
    return [address for address, node in saving(m, place) if node.freed == NO and node.spoiled == NO]


def saving(m: Machine, storage: int) -> list[tuple[int, Node]]:
    """The nodes, by address, that saved a storage."""
    found = []
    for at in sorted(m.judge.walks.saved_by.get(storage & ~1, ())) if m.judge is not None else ():
        for address in (at, at | 1):
            node = m.cells.get(node_key(address))
            if type(node) is Node and storage in node.saved:
                found.append((address, node))
    return found


def tensor_like(m: Machine, site: ast.AST, tag: str, **fields: object) -> Ref:
    """A new tensor with storage of its own."""
    address = m.address(site, tag)
    m.place(address, Tensor(storage=frozenset({address}), origin=Origin(site, tag), **fields))  # type: ignore[arg-type]
    return Ref(address)
