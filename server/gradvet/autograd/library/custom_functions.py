"""Custom autograd Functions: `apply` runs `forward` without recording and makes one node of it."""

import ast

from gradvet.autograd.graph import add_node
from gradvet.autograd.held import held_tensors
from gradvet.autograd.library.again import now_held, runs_again
from gradvet.autograd.library.externals import handles
from gradvet.autograd.library.inputs import in_mode, made_in, operands_of
from gradvet.autograd.machine import MODE, Machine
from gradvet.autograd.memory.domain import (
    ANY_FN,
    FUNCTIONS_RECORD,
    GRAD,
    INFERRING,
    INTEGER,
    MAYBE,
    NO,
    NO_FN,
    NO_GRAD,
    NOTHING,
    YES,
    Origin,
    Tensor,
    switched,
)
from gradvet.autograd.memory.values import (
    FALSE,
    NONE,
    TRUE,
    Class,
    Const,
    Function,
    Number,
    Opaque,
    Ref,
    Sequence,
    Text,
    Tuple,
    Value,
    join,
)
from gradvet.autograd.python.calls import Call, call_value, find_in_class, unknown_call
from gradvet.syntax.tree import walk

FUNCTION = "torch.autograd.Function"
DIRTY, NON_DIFFERENTIABLE, UNMATERIALIZED = "#dirty", "#plain", "#unmaterialized"
"""Cells of a ctx: what `forward` has said of its inputs and outputs."""
MARKS = {"mark_dirty": DIRTY, "mark_non_differentiable": NON_DIFFERENTIABLE}


def is_custom_function(m: Machine, value: Value) -> bool:
    """Whether a value is a class of the file that extends torch.autograd.Function."""
    if type(value) is not Class or value.address not in m.classes:
        return False
    return bool(m.classes[value.address].external & {FUNCTION, "torch.autograd.function.Function"})


@handles("torch.autograd.function.once_differentiable")
def _once_differentiable(m: Machine, name: str, call: Call) -> Value:
    """`@once_differentiable`: the backward runs without recording, and refuses to be differentiated itself."""
    if call.args and type(call.args[0]) is Function:
        m.once_differentiable.add(call.args[0].node)
        return call.args[0]
    return unknown_call(m, call, "a backward")


def _once(m: Machine, backward: Value | None) -> ast.AST | None:
    """The definition of a backward that is marked so; None of any other."""
    return backward.node if type(backward) is Function and backward.node in m.once_differentiable else None


def apply(m: Machine, function: Class, call: Call) -> Value:
    """`Fn.apply(...)`: the result requires grad when an input does, whatever `forward` did."""
    site = call.node
    info = m.classes[function.address]
    inputs = [o.state for value in call.all_values() for o in operands_of(m, "", value)]
    ctx = m.new(site, Opaque("the ctx of a custom Function"), f"ctx {function.address}")
    m.write_cell(ctx, "needs_input_grad", _needs(m, call))
    before = m.mode
    m.store.set(MODE, switched(before, NO_GRAD))
    setup = find_in_class(m, function.address, "setup_context")
    forward = find_in_class(m, function.address, "forward")
    result: Value = NONE
    if forward is not None:
        args = call.args if setup is not None else (ctx, *call.args)
        result = call_value(m, forward, call._replace(args=args))
    if setup is not None:
        with m.numbered(site, 61):
            call_value(m, setup, Call(site, (ctx, Tuple(call.args), result)))
    m.store.set(MODE, before)
    if m.judge is not None:
        sites = {
            name: m.judge.walks.attributes[key][0]
            for name in m.attributes.get(ctx.address & ~1, ())
            if (key := (ctx.address & ~1, name)) in m.judge.walks.attributes
        }
        m.judge.functions.applied(ctx, call.args, result, sites, getattr(forward, "node", None))
    kept = m.cells.get((ctx.address, "saved_tensors"))
    backward = find_in_class(m, function.address, "backward")
    keeps = _reads_saved(backward.node.body) if type(backward) is Function else MAYBE
    marked = {word: m.cells.get((ctx.address, word)) for word in (DIRTY, NON_DIFFERENTIABLE)}
    once = _once(m, backward)
    higher = MAYBE if once is None else NO
    made = _outputs(m, site, info.name, result, inputs, kept, keeps, marked, higher=higher)
    if once is not None and m.judge is not None:
        m.judge.walks.twice.applied(site, info.name, once)
    if backward is not None:
        given = _visit_backward(m, function, backward, ctx, made, site)
        cut = _left_out(m, call, backward, given, info.name)
        if cut:
            made = _outputs(m, site, info.name, result, inputs, kept, keeps, marked, cut, higher=higher)

        saved = [] if kept is None else [kept]
        before_it = now_held(m, saved)

        def comes_by() -> None:
            # A saved tensor is given back as it is by then: `detach_()` changes that, and no version counter.
            if m.mode & INFERRING or now_held(m, saved) != before_it:
                with m.replayed():
                    _visit_backward(m, function, backward, ctx, made, site, passing=True)

        runs_again(m, made, comes_by)
    return made


def _left_out(
    m: Machine, call: Call, backward: Value, given: Value, name: str
) -> list[tuple[frozenset[int], int]]:
    """The storage of the inputs that ask for a gradient and get None, with the cuts that stand for that."""
    if type(given) is not Tuple or type(backward) is not Function or call.star is not None or m.mode != GRAD:
        return []
    returns = [node.value for node in walk(backward.node) if isinstance(node, ast.Return)]
    last = returns[-1] if returns else None
    others = frozenset[int]().union(
        *(s.storage for v, g in zip(call.args, given.items) if g != NONE for _, s in m.tensors(v))
    )
    found = []
    for at, (value, gradient) in enumerate(zip(call.args, given.items)):
        state = m.tensor(value)
        if gradient != NONE or state is None or state.requires_grad != YES or state.storage & others:
            continue
        node = last.elts[at] if isinstance(last, ast.Tuple) and len(last.elts) > at else last
        number = m.cut(
            "unreturned", f"{name}.backward()", node or backward.node, state.leaves, state.nodes, state.cuts
        )
        found.append((state.storage, number))
    return found


def _needs(m: Machine, call: Call) -> Value:
    """`ctx.needs_input_grad`: for each argument whether its gradient is asked for."""
    if call.star is not None or call.stars is not None:
        return m.new(call.node, Sequence("tuple", None, Number("bool")), "needs")
    states = [m.tensor(value) for value in call.args]
    asks = [NO if state is None else state.requires_grad for state in states]
    loose = [
        state is None and type(value) not in (Const, Number, Text) for state, value in zip(states, call.args)
    ]
    known = {YES: TRUE, NO: FALSE}
    return Tuple(
        tuple(Number("bool") if open_ else known.get(ask, Number("bool")) for ask, open_ in zip(asks, loose))
    )


def _reads_saved(body: list[ast.stmt] | ast.expr) -> int:
    """Whether a backward asks for what was saved, which torch refuses once it is freed: on each way, on some, or never."""
    if isinstance(body, ast.expr):
        return MAYBE if _mentions_saved(body) else NO
    found = NO
    for statement in body:
        match statement:
            case ast.With(items=items, body=inner):
                read = _reads_saved(inner)
                read = YES if any(_mentions_saved(item) for item in items) else read
            case ast.Assign() | ast.AnnAssign() | ast.Expr() | ast.Return():
                read = YES if _mentions_saved(statement) else NO
            case _:
                read = MAYBE if _mentions_saved(statement) else NO
        if read == YES:
            return YES
        found |= read & YES
    return found | NO


def _mentions_saved(node: ast.AST) -> bool:
    return any(isinstance(part, ast.Attribute) and part.attr == "saved_tensors" for part in ast.walk(node))


def _outputs(
    m: Machine,
    site: ast.AST,
    name: str,
    result: Value,
    inputs: list[Tensor],
    kept: Value | None,
    keeps: int,
    marked: dict[str, Value | None],
    left_out: list[tuple[frozenset[int], int]] | None = None,
    *,
    higher: int,
) -> Value:
    saved = (
        NOTHING.union(*(s.storage for _, s in held_tensors(m, kept) if len(s.storage) == 1))
        if kept and keeps == YES  # what backward does not ask for is not looked at
        else NOTHING
    )
    asking = [state for state in inputs if state.requires_grad & YES]
    truth = YES if any(state.requires_grad == YES for state in asking) else MAYBE if asking else NO
    granted = in_mode(m, truth, FUNCTIONS_RECORD)
    cuts = frozenset[int]().union(*(state.cuts for state in inputs))
    for storage, number in left_out or ():
        asking = [state for state in asking if state.storage != storage]
        cuts |= {number}
    leaves = frozenset[int]().union(*(state.leaves for state in asking))
    assumes = frozenset[str]().union(*(state.assumes for state in asking))
    given = frozenset[int]().union(*(state.storage for state in inputs))

    def output(value: Value, tag: str) -> Value:
        if type(value) is Tuple:
            return Tuple(tuple(output(item, f"{tag}{at}") for at, item in enumerate(value.items)))
        content = m.cells.get(getattr(value, "address", -1))
        if type(content) is Sequence and content.kind == "tuple":
            items = tuple(output(item, f"{tag}{at}") for at, item in enumerate(content.items or ()))
            rest = None if content.rest is None else output(content.rest, f"{tag}*")
            some = items if content.items is not None else None
            return m.new(site, content._replace(items=some, rest=rest), f"outputs of {name}")
        state = m.tensor(value)
        if state is None:
            return value
        dirty = type(value) is Ref and _is_marked(value, marked[DIRTY])
        own = dirty or (type(value) is Ref and not state.storage & given)
        address = value.address if own else m.address(site, f"output of {name}{tag}")
        plain = state.dtype == INTEGER or _is_marked(value, marked[NON_DIFFERENTIABLE])
        grants = NO if plain else granted
        if grants == NO and (dirty or state.view == YES):
            return value  # it stays what forward has made of it; a view says what its base says
        if grants & YES:
            add_node(m, address, f"{name}.apply()", site, asking, saved, keeps, higher=higher)
        names: frozenset[str | None] = frozenset({f"{name}Backward"})
        if dirty and state.view & YES:
            names |= {ANY_FN}  # it is made again from its base
        m.write(
            Ref(address),
            Tensor(
                requires_grad=grants,
                is_leaf=NO if grants == YES else MAYBE if grants & YES else YES,
                grad_fn=names if grants == YES else NO_FN | names if grants & YES else NO_FN,
                dtype=state.dtype,
                storage=state.storage,
                view=MAYBE if state.storage & given else state.view,
                inference=state.inference,
                nodes=frozenset({address}) if grants & YES else NOTHING,
                leaves=leaves if grants & YES else NOTHING,
                cuts=cuts,
                origin=Origin(site, f"{name}.apply()", tuple(s.origin for s in asking if s.origin)[:2]),
                assumes=assumes,
            ),
        )
        if m.loops and not own:
            m.loops[-1].allocs.add(address)
        return Ref(address)  # what forward made is itself what the node gives

    return output(result, "")


def _is_marked(value: Value, marked: Value | None) -> bool:
    """Whether `forward` has handed a value to `ctx.mark_dirty` or the like."""
    return type(marked) is Tuple and value in marked.items


def _visit_backward(
    m: Machine,
    function: Class,
    backward: Value,
    ctx: Ref,
    made: Value,
    site: ast.AST,
    *,
    passing: bool = False,
) -> Value:
    """What `backward` gives, run as a later backward pass will: it records only when that pass creates a graph.

    In such a pass, inference mode is on if it is there.
    """
    before, inference = m.mode, made_in(m) if passing else NO
    count = len(made.items) if type(made) is Tuple else 1
    gradients = []
    addresses = [m.address(site, f"grad output {at} of {function.address}") for at in range(count)]
    for address in addresses:
        if m.judge is not None:
            m.judge.walks.given[address & ~1] = "backward"
        m.place(
            address,
            Tensor(
                requires_grad=MAYBE if m.creates_graphs else NO,
                is_leaf=MAYBE,
                grad_fn=frozenset({"*", None}) if m.creates_graphs else NO_FN,
                storage=frozenset(addresses),  # several may be one and the same
                view=MAYBE,
                inference=inference,
                origin=Origin(site, "the gradient of an output"),
            ),
        )
        maybe = (ctx.address, UNMATERIALIZED) in m.cells
        gradients.append(join(Ref(address), NONE) if maybe else Ref(address))
    recording = NO_GRAD | (GRAD if m.creates_graphs and _once(m, backward) is None else 0)
    m.store.set(MODE, switched(before if passing else GRAD, recording))
    several = type(m.cells.get(getattr(made, "address", -1))) is Sequence
    passed = Call(site, (ctx,), star=gradients[0]) if several else Call(site, (ctx, *gradients))
    with m.numbered(site, 62):
        given = call_value(m, backward, passed)
    m.given_back |= NOTHING.union(*(state.storage for _, state in held_tensors(m, given)))
    m.store.set(MODE, before)
    return given
