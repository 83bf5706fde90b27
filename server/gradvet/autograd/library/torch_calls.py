"""The functions of torch that are more than an op: grad modes, backward, leaves made anew, wrappers."""

import ast
from contextlib import nullcontext

from gradvet.autograd.backward_pass import backward, backward_event, free, passed_by
from gradvet.autograd.events import Cut, InputUnreached
from gradvet.autograd.events_exit import LegacyVariable
from gradvet.autograd.graph import (
    add_gradient_node,
    gradient_asks,
    gradients_made,
    leads_to,
    reachable,
    unknown_key,
)
from gradvet.autograd.held import held_tensors, surely_asks
from gradvet.autograd.knowledge.lookup import load
from gradvet.autograd.library import layers, module_calls
from gradvet.autograd.library.arrays import array_in
from gradvet.autograd.library.constant_terms import DERIVATIVE
from gradvet.autograd.library.distributions import inputs_of
from gradvet.autograd.library.externals import handles
from gradvet.autograd.library.inputs import made_in
from gradvet.autograd.library.made_tensors import combined, numbers_in, rewrapped
from gradvet.autograd.library.made_tensors import copied as copied_by_constructor
from gradvet.autograd.library.operations import perform
from gradvet.autograd.library.optimizers import make_scaler
from gradvet.autograd.library.results import tensor_like
from gradvet.autograd.library.storages import goes_on_counting
from gradvet.autograd.library.tensors import made_leaf, set_attribute
from gradvet.autograd.machine import MODE, MODE_SETTER, Machine
from gradvet.autograd.memory.domain import (
    ANY_FN,
    ENABLED_INFERENCE,
    FLOAT,
    GRAD,
    INFERENCE,
    MAYBE,
    NO,
    NO_FN,
    NO_GRAD,
    NOTHING,
    YES,
    Alias,
    Origin,
    Tensor,
    switched,
)
from gradvet.autograd.memory.values import (
    FALSE,
    NONE,
    TRUE,
    Array,
    Bound,
    Const,
    Distribution,
    External,
    Function,
    Layer,
    Mode,
    Number,
    Opaque,
    Partial,
    Ref,
    Sequence,
    Tuple,
    Unknown,
    Value,
    const,
    join,
    refs,
)
from gradvet.autograd.python.calls import Call, call_value, unknown_call
from gradvet.autograd.python.control import fork, is_instance
from gradvet.autograd.python.objects import element_of, items_of
from gradvet.autograd.unknowns import opaque_inputs, unknown_cut

# -- grad modes


@handles("torch.no_grad", "torch.autograd.no_grad")
def _no_grad(m: Machine, name: str, call: Call) -> Value:
    return _mode_or_decorated(m, Mode(NO_GRAD, call.node, name), call)


@handles("torch.enable_grad", "torch.autograd.enable_grad")
def _enable_grad(m: Machine, name: str, call: Call) -> Value:
    return _mode_or_decorated(m, Mode(GRAD, call.node, name), call)


@handles("torch.inference_mode", "torch.autograd.inference_mode", "torch.autograd.grad_mode.inference_mode")
def _inference_mode(m: Machine, name: str, call: Call) -> Value:
    flag = call.argument(0, "mode")
    if flag is not None and type(flag) is Const and flag.kind == "bool" and not flag.value:
        return Mode(GRAD, call.node, name)
    if flag is not None and type(flag) is Number:
        return Mode(GRAD | INFERENCE, call.node, name)
    return _mode_or_decorated(m, Mode(INFERENCE, call.node, name), call)


def _mode_or_decorated(m: Machine, mode: Mode, call: Call) -> Value:
    """`torch.no_grad(function)`, as the decorator without parentheses calls it, gives the function."""
    if call.args and type(call.args[0]) not in (Const, Number):
        return call_value(m, mode, call)
    return mode


@handles("torch.set_grad_enabled", "torch.autograd.set_grad_enabled")
def _set_grad_enabled(m: Machine, name: str, call: Call) -> Value:
    flag = call.argument(0, "mode")
    modes = GRAD | NO_GRAD
    if type(flag) is Const:
        modes = GRAD if flag.value else NO_GRAD
    m.store.set(MODE, switched(m.mode, modes))
    bit = (
        1 << len(m.setters)
        if call.node not in m.setters.values()
        else next(b for b, n in m.setters.items() if n is call.node)
    )
    m.setters[bit] = call.node
    m.store.set(MODE_SETTER, bit)
    return Mode(modes, call.node)


@handles("torch.is_grad_enabled")
def _is_grad_enabled(m: Machine, name: str, call: Call) -> Value:
    on = m.mode & (GRAD | ENABLED_INFERENCE)
    return const(False) if not on else TRUE if m.mode == on else Number("bool")


@handles(
    "torch.autocast", "torch.amp.autocast", "torch.cuda.amp.autocast", "torch.autograd.detect_anomaly",
    "torch.autograd.set_detect_anomaly", "torch.profiler.profile", "torch.profiler.record_function",
    "torch.autograd.profiler.profile", "torch.random.fork_rng", "torch.device",
    "torch.autograd.graph.save_on_cpu",
)  # fmt: skip
def _other_context(m: Machine, name: str, call: Call) -> Value:
    return External(f"{name}()")


@handles("torch.autograd.graph.saved_tensors_hooks")
def _saved_tensors_hooks(m: Machine, name: str, call: Call) -> Value:
    """Functions through which what is saved for backward goes, and comes out again: as often as there is something."""
    for number, function in enumerate(call.args):

        def run(function: Value = function, number: int = number) -> tuple[bool, Value]:
            state = Tensor(MAYBE, MAYBE, frozenset({None, ANY_FN}), dtype=FLOAT, view=MAYBE)
            saved = m.new(call.node, state, f"saved {number}")
            with m.numbered(call.node, number):
                return True, call_value(m, function, Call(call.node, (saved,)))

        fork(m, [run, lambda: (True, None)])
    return External(f"{name}()")


# -- backward


@handles("torch.autograd.backward")
def _autograd_backward(m: Machine, name: str, call: Call) -> Value:
    call = call.with_options("retain_graph", "create_graph")
    roots = call.argument(0, "tensors") or NONE
    items = items_of(m, roots)
    with m.judge.walks.one_pass() if m.judge is not None else nullcontext():
        for root in items if items is not None else (roots,):
            backward(
                m,
                call.node,
                root,
                retain=call.argument(2, "retain_graph"),
                create=call.argument(3, "create_graph"),
                how="autograd.backward()",
                inputs=call.argument(5, "inputs"),
            )
    return NONE


@handles("torch.autograd.grad")
def _autograd_grad(m: Machine, name: str, call: Call) -> Value:
    call = call.with_options("retain_graph", "create_graph")
    outputs = call.argument(0, "outputs") or Unknown()
    inputs = call.argument(1, "inputs") or Unknown()
    retain, create = call.argument(3, "retain_graph"), call.argument(4, "create_graph")
    unused, zeros = call.argument(6, "allow_unused"), call.argument(8, "materialize_grads")
    makes = _is_true(create)
    keeps, inference = (
        makes or _is_true(retain),
        gradients_made(m, handed=call.argument(2, "grad_outputs") not in (None, NONE)),
    )
    leaves, nodes, cuts, assumes = NOTHING, NOTHING, NOTHING, frozenset[str]()
    states = [state for _, state in held_tensors(m, outputs)]
    wanted = [state for _, state in held_tensors(m, inputs)]
    certain = len(states) == 1 and surely_asks(m, outputs) and (retain is None or type(retain) is Const)
    if not wanted or not surely_asks(m, inputs):
        certain = False
    for state in states:
        leaves, nodes, cuts, assumes = (
            leaves | state.leaves,
            nodes | state.nodes,
            cuts | state.cuts,
            assumes | state.assumes,
        )
        if state.requires_grad & YES:
            kept = wanted if certain else None
            found = free(m, call.node, state, certain=certain, keep=keeps, inputs=kept)
            start = state if certain else None
            passed_by(m, call.node, (*found, *state.leaves), YES if makes else NO, start, accumulated=False)
    if m.judge is not None:
        if makes:
            m.judge.doubles.differentiated(outputs, call.node)
        m.judge.reached(_wanted(m, inputs, leaves), cuts if leaves else NOTHING, call.node)
    if states and all(state.requires_grad == NO for state in states):
        m.emit(backward_event(m, call.node, states[0]._replace(cuts=cuts), "autograd.grad()"))
    items = items_of(m, inputs)
    count = len(items) if items is not None else 1
    single = items is None and m.tensor(inputs) is not None
    made = []
    for at in range(count):
        address = m.address(call.node, f"gradient {at}")
        target = items[at] if items is not None else inputs
        granted = _granted(m, call, states, target)
        if _raises(m, call, states, outputs, target):
            _tell_unreached(m, call, target, cuts)
            granted = MAYBE  # what comes after is looked at as if the gradient were there
        weights: list[Tensor] = []
        if granted & YES:
            weights = [state for _, state in held_tensors(m, call.argument(2, "grad_outputs") or NONE)]
            add_gradient_node(m, address, call.node, states, target, weights)
        elif leaves:
            cuts |= {_cut_derivative(m, call, target, leaves, nodes, cuts)}
        elif not states and not makes and (create is None or create == FALSE):
            cuts |= unknown_cut(m, outputs, "grad", "autograd.grad()", call.node)
        m.place(
            address,
            Tensor(
                requires_grad=granted,
                is_leaf=NO if granted == YES else MAYBE if granted == MAYBE else YES,
                grad_fn=frozenset({ANY_FN})
                if granted == YES
                else NO_FN | {ANY_FN}
                if granted == MAYBE
                else NO_FN,
                storage=frozenset({address}) | m.given_back,
                nodes=frozenset({address}) if granted & YES else NOTHING,
                leaves=leaves.union(*(w.leaves for w in weights)) if granted & YES else NOTHING,
                cuts=cuts,
                view=MAYBE,
                origin=Origin(call.node, "autograd.grad()", tuple(s.origin for s in states[:2] if s.origin)),
                assumes=assumes,
                inference=inference,
            ),
        )
        given: Value = Ref(address)
        if _is_true(unused) and not _is_true(zeros):
            comes = _reached(m, states, outputs, target)
            given = NONE if comes == NO else given if comes == YES else join(given, NONE)
        made.append(given)
    if single or items is not None:
        return Tuple(tuple(made))
    return m.new(call.node, Sequence("tuple", None, made[0], nonempty=True), "gradients")


def _cut_derivative(
    m: Machine, call: Call, target: Value, leaves: frozenset[int], nodes: frozenset[int], cuts: frozenset[int]
) -> int:
    """The cut of a gradient without a graph; one by what is no parameter is a derivative of the network."""
    number = m.cut("grad", "autograd.grad()", call.node, leaves, nodes, cuts)
    by = m.tensor(target)
    if by is not None and by.parameter == NO:
        m.cuts[number].form = m.cuts[number].form or DERIVATIVE
        m.cuts[number].by |= by.nodes | by.storage
    return number


def _wanted(m: Machine, inputs: Value, leaves: frozenset[int]) -> frozenset[int]:
    """Of the leaves behind an output those that get a gradient: what the way leads through may still get none."""
    asked = held_tensors(m, inputs)
    reached = NOTHING if asked else leaves
    for ref, state in asked:
        reached |= leaves & state.leaves
        m.judge.cut_notes.gradient_wanted(ref.address)
    return reached


def _granted(m: Machine, call: Call, states: list[Tensor], target: Value) -> int:
    """Whether the gradient for a target requires grad: only with `create_graph`, which turns grad mode on for it."""
    create = call.argument(4, "create_graph")
    if not _is_true(create):
        return NO if create is None or type(create) is Const or not m.mode & GRAD else MAYBE
    if len(states) != 1:
        return MAYBE
    granted = gradient_asks(m, states[0], target)
    weights = call.argument(2, "grad_outputs")
    # Where it is not known whether the output requires grad, parts of it are not known: there may be a graph in them.
    open_ended = states[0].requires_grad == MAYBE or (weights is not None and weights != NONE)
    if granted == NO and (open_ended or _may_lead_on(m, states, m.tensors(target))):
        return MAYBE
    return granted


def _raises(m: Machine, call: Call, states: list[Tensor], outputs: Value, target: Value) -> bool:
    """Whether torch raises, since the gradient of something was asked for that is surely in none of the graphs."""
    allowed = [call.argument(6, "allow_unused"), call.argument(8, "materialize_grads")]
    if call.star is not None or call.stars is not None or any(a not in (None, NONE, FALSE) for a in allowed):
        return False
    asked = [state for _, state in m.tensors(target)]
    if any(state.requires_grad == NO and not (state.assumes or state.loose) for state in asked):
        return len(asked) == 1 and all(state.requires_grad == YES for state in states) and bool(states)
    plain = [
        state.requires_grad == YES and not state.assumes and not state.loose for state in (*states, *asked)
    ]
    return len(asked) == 1 and all(plain) and bool(states) and _reached(m, states, outputs, target) == NO


def _tell_unreached(m: Machine, call: Call, target: Value, cuts: frozenset[int]) -> None:
    own = {ref.address & ~1 for ref, _ in m.tensors(target)}
    ways = [m.cuts[cut] for cut in sorted(cuts) if own & {leaf & ~1 for leaf in m.cuts[cut].leaves}]
    node = call.node
    source = node.args[1] if isinstance(node, ast.Call) and len(node.args) > 1 else None
    if isinstance(source, (ast.Tuple, ast.List)):
        source = source.elts[0] if len(source.elts) == 1 else None
    m.emit(InputUnreached(node, m.where(), source, tuple(Cut(way.kind, way.name, way.node) for way in ways)))


def _reached(m: Machine, states: list[Tensor], outputs: Value, target: Value) -> int:
    """Whether a gradient of the outputs comes to a target; where it does not, it is None."""
    found = m.tensors(target)
    if m.tensor(target) is None or any(state.assumes for state in states):
        return MAYBE
    known = 0
    for state in states:
        for ref, asked in found:
            known |= leads_to(m, state, asked, ref.address)
    if known == MAYBE and len(found) == 1 and items_of(m, outputs) is not None:
        (ref, asked), *_ = found
        return YES if any(leads_to(m, state, asked, ref.address) == YES for state in states) else MAYBE
    if known & YES or not _may_lead_on(m, states, found):
        return known or NO
    return MAYBE


def _may_lead_on(m: Machine, states: list[Tensor], found: list[tuple[Ref, Tensor]]) -> bool:
    """Whether something went into the graph of the outputs that was made of a target, in a way that was not followed."""
    nodes = NOTHING.union(*(reachable(m, state.nodes) for state in states))
    cells = [m.cells.get(unknown_key(at)) for at in nodes]
    items = dict.fromkeys(item for unknown in cells if type(unknown) is Tuple for item in unknown.items)
    behind = opaque_inputs(m, *items)
    return any(type(item) is Unknown for item in items) or any(
        leads_to(m, state, asked, ref.address) & YES for state in behind for ref, asked in found
    )


def _is_true(value: Value | None) -> bool:
    return type(value) is Const and bool(value.value)


@handles("torch.nn.utils.vector_to_parameters")
def _vector_to_parameters(m: Machine, name: str, call: Call) -> Value:
    """Each parameter gets a part of a vector as its `.data`."""
    vector, parameters = call.argument(0, "vec"), call.argument(1, "parameters")
    if vector is not None and parameters is not None:
        members = items_of(m, parameters) or (element_of(m, parameters, call.node),)
        for member in members:
            set_attribute(m, member, "data", vector, call.node)
    return NONE


# -- tensors made from other things


@handles(
    "torch.tensor",
    "torch.FloatTensor",
    "torch.Tensor",
    "torch.LongTensor",
    "torch.DoubleTensor",
    "torch.IntTensor",
)
def _tensor(m: Machine, name: str, call: Call) -> Value:
    keywords = call.keywords
    if name == "torch.LongTensor":
        keywords = {**keywords, "dtype": External("torch.long")}
    source = call.argument(0, "data")
    if name != "torch.tensor" and len(call.args) == 1 and m.tensor(source) is not None:
        return _alias(m, call, source)
    if name == "torch.tensor" and source is not None:
        copied_by_constructor(m, call.node, source)
    if name in ("torch.FloatTensor", "torch.Tensor") or _is_float_data(m, source):
        keywords = {"dtype": External("torch.float"), **keywords}
    elif name == "torch.tensor" and _is_integer_data(m, source):
        keywords = {"dtype": External("torch.long"), **keywords}
    made = rewrapped(m, call.node, source if source is not None else NONE, f"{name}()", keywords)
    array = m.cells.get(getattr(source, "address", -1))
    if name != "torch.tensor" and type(array) is Array:  # an array of the right dtype is not copied
        m.update(made, lambda t: t._replace(storage=t.storage | array.storage) if type(t) is Tensor else t)
    return made


def _alias(m: Machine, call: Call, source: Value) -> Value:
    """`torch.Tensor(tensor)` is a view of all of it."""
    view = load().method("view_as")
    if view is None:
        return unknown_call(m, call, "a view")
    op = view._replace(out=tuple(out._replace(fn=("AliasBackward0",)) for out in view.out))
    return perform(m, call.node, op, (source,), {}, name="Tensor()")


def _is_integer_data(m: Machine, source: Value | None) -> bool:
    """Whether all of what a tensor is made of are whole numbers, or truths, that are written out."""
    if isinstance(source, Const):
        return source.kind in ("int", "bool")
    items = items_of(m, source) if source is not None else None
    return bool(items) and all(_is_integer_data(m, item) for item in items or ())


def _is_float_data(m: Machine, source: Value | None) -> bool:
    if isinstance(source, (Const, Number)):
        return source.kind == "float"
    items = items_of(m, source) if source is not None else None
    return bool(items) and any(_is_float_data(m, item) for item in items or ())


@handles("torch.from_numpy", "torch.from_dlpack")
def _from_numpy(m: Machine, name: str, call: Call) -> Value:
    source = call.args[0] if call.args else NONE
    address = m.address(call.node, "from_numpy")
    storage = frozenset({address})
    content = m.cells.get(getattr(source, "address", -1))
    alias = None
    if type(content) is Array and content.storage:
        storage = content.storage
        alias = content.alias or Alias("numpy", NOTHING, call.node)
    elif type(content) is Opaque and type(source) is Ref:
        storage, alias = frozenset({source.address}), Alias("numpy", NOTHING, call.node)
    if alias is not None and m.judge is not None:
        m.judge.arrays.shares(storage)
    m.place(
        address,
        Tensor(
            dtype=FLOAT | 2,
            storage=storage,
            cuts=numbers_in(m, source),
            alias=alias,
            origin=Origin(call.node, "from_numpy()"),
            inference=made_in(m),
        ),
    )
    return Ref(address)


@handles("torch.broadcast_tensors")
def _broadcast(m: Machine, name: str, call: Call) -> Value:
    """Each tensor as it is or expanded, with its own gradient."""
    op = load().function(name)
    args = items_of(m, call.args[0]) if len(call.args) == 1 and m.tensor(call.args[0]) is None else call.args
    if op is None or args is None or call.star is not None:
        return unknown_call(m, call, "broadcast tensors")
    made = [perform(m, call.node, op, (value,), {}, tag=f"{at}") for at, value in enumerate(args)]
    return Tuple(tuple(element_of(m, value, call.node) for value in made))


@handles("torch.as_tensor", "torch.asarray")
def _as_tensor(m: Machine, name: str, call: Call) -> Value:
    source = call.argument(0, "data")
    state = m.tensor(source) if source is not None else None
    if state is not None and source is not None:
        moved = {k: v for k, v in call.keywords.items() if k in ("dtype", "device")}
        op = load().method("to")
        return (
            perform(m, call.node, op, (source, *moved.values()), {}, name="to()")
            if (moved or m.transformed) and op is not None  # a transform wraps what it is given back
            else source
        )
    if source is not None and not call.keywords and array_in(m, source) is not None:
        return _from_numpy(m, name, call)
    return rewrapped(m, call.node, source if source is not None else NONE, f"{name}()", call.keywords)


def _tell_legacy(m: Machine, call: Call, state: Tensor | None, flag: Value | None) -> None:
    node = call.node
    if not isinstance(node, ast.Call):
        return
    cuts = state is not None and bool(state.requires_grad & YES)
    plain = len(node.args) == 1 and not node.keywords
    source = node.args[0] if node.args and not isinstance(node.args[0], ast.Starred) else None
    volatile = "volatile" in call.keywords
    if volatile or (state is not None and flag in (None, FALSE)):  # a new leaf is asked for otherwise
        m.emit(LegacyVariable(node, m.where(), source, volatile, cuts, plain))


@handles("torch.autograd.Variable")
def _variable(m: Machine, name: str, call: Call) -> Value:
    source = call.argument(0, "data")
    state = m.tensor(source) if source is not None else None
    flag = call.argument(1, "requires_grad")
    unknown = m.cells.get(getattr(source, "address", -1))
    _tell_legacy(m, call, state, flag)
    if type(unknown) is Opaque and flag == TRUE:
        cuts = unknown_cut(m, source, "rewrap", "Variable()", call.node)
        return _leaf(m, call.node, "Variable()", Tensor(), flag, cuts, default=NO)
    if state is None or source is None:
        return (
            source
            if source is not None and type(source) is not Const
            else unknown_call(m, call, "a Variable")
        )
    cuts = state.cuts
    if state.requires_grad & YES and state.is_leaf != YES:
        cuts |= {m.cut("rewrap", "Variable()", call.node, state.leaves, state.nodes, cuts)}
    return _leaf(m, call.node, "Variable()", state, flag, cuts, default=NO)


def _leaf(
    m: Machine,
    site: ast.AST,
    words: str,
    state: Tensor,
    flag: Value | None,
    cuts: frozenset[int],
    *,
    default: int,
) -> Ref:
    granted = default if flag is None else (YES if flag.value else NO) if type(flag) is Const else MAYBE
    address = m.address(site, words)
    m.place(
        address,
        Tensor(
            requires_grad=granted,
            dtype=state.dtype if granted == NO else FLOAT,
            storage=state.storage or frozenset({address}),
            leaves=frozenset({address}) if granted & YES else NOTHING,
            cuts=cuts,
            origin=Origin(site, words),
            inference=state.inference,
        ),
    )
    if granted == YES and cuts:
        forced = made_leaf(m, site, Ref(address), m.cells[address])
        m.update(Ref(address), lambda t: t._replace(cuts=cuts | forced, dead=forced))
    return Ref(address)


@handles("torch.nn.Parameter", "torch.nn.Buffer", "torch.nn.UninitializedParameter")
def _parameter(m: Machine, name: str, call: Call) -> Value:
    source = call.argument(0, "data")
    flag = call.argument(1, "requires_grad")
    state = m.tensor(source) if source is not None else None
    cuts = state.cuts if state is not None else NOTHING
    if state is not None and state.requires_grad & YES and state.is_leaf != YES:
        cuts |= {m.cut("rewrap", "nn.Parameter()", call.node, state.leaves, state.nodes, cuts)}
    default = NO if name.endswith("Buffer") else YES
    ref = _leaf(
        m, call.node, "nn.Parameter", state if state is not None else Tensor(), flag, cuts, default=default
    )
    if default == YES:
        m.update(ref, lambda t: t._replace(parameter=YES))
    if state is not None:
        goes_on_counting(m, ref.address, state)
    return ref


# -- wrappers and helpers


@handles(
    "torch.compile", "torch.nn.DataParallel", "torch.nn.parallel.DataParallel",
    "torch.nn.parallel.DistributedDataParallel",
    "torch.nn.SyncBatchNorm.convert_sync_batchnorm", "torch._dynamo.optimize", "torch.jit.ignore", "torch.jit.export",
)  # fmt: skip
def _wrapper(m: Machine, name: str, call: Call) -> Value:
    if name.endswith("Parallel") and call.args:
        given = {ref.address & ~1: call.node for ref in refs(call.args[0])}
        m.in_wrapper.update(given)
        if "Distributed" in name:
            m.parallel.update(given)
    return call.args[0] if call.args else Partial(External("gradvet.identity"), (), ())


_SCRIPTED = "gradvet.scripted"


@handles("torch.jit.load")
def _loaded_program(m: Machine, name: str, call: Call) -> Value:
    """A module of TorchScript: most are saved to be run, with or without parameters that train."""
    ref = m.unknown(call.node, "what `torch.jit.load()` gives")
    content = m.cells[ref.address]
    if type(content) is Opaque:
        layers.as_module(m, ref, content, "what `torch.jit.load()` gives", call.node, trains=MAYBE)
    return ref


@handles("torch.jit.script", "torch.jit.trace", "torch.jit.script_if_tracing")
def _script(m: Machine, name: str, call: Call) -> Value:
    """What TorchScript compiles: the same, but that after a while it runs as one node, of no name that is known here."""
    if not call.args:
        return Partial(External("gradvet.identity"), (), ())
    given = call.args[0]
    if type(given) in (Function, Bound, External, Partial):
        return Partial(External(_SCRIPTED), (given,), ())
    if type(given) is Ref and layers.is_module(m, given):
        m.write_cell(given, layers.SCRIPTED, TRUE)
    return given


@handles(_SCRIPTED)
def _scripted(m: Machine, name: str, call: Call) -> Value:
    function, *args = call.args
    value = call_value(m, function, call._replace(args=tuple(args)))
    module_calls.as_one_node(m, value)
    return value


@handles("gradvet.identity", "functools.wraps()", "functools.lru_cache()", "functools.cache")
def _identity(m: Machine, name: str, call: Call) -> Value:
    return call.args[0] if call.args else NONE


@handles("functools.wraps", "functools.lru_cache", "functools.update_wrapper", "typing.overload")
def _decorator_maker(m: Machine, name: str, call: Call) -> Value:
    return External("gradvet.identity")


@handles("functools.partial")
def _partial(m: Machine, name: str, call: Call) -> Value:
    if not call.args:
        return unknown_call(m, call, "a partial")
    return Partial(call.args[0], call.args[1:], tuple(call.keywords.items()))


@handles("torch.is_tensor")
def _is_tensor(m: Machine, name: str, call: Call) -> Value:
    known = NO
    atoms = m.alternatives(call.args[0]) if call.args else ()
    for at, atom in enumerate(atoms):
        answer = is_instance(m, atom, (External("torch.Tensor"),))
        known = answer if at == 0 else known | answer
    return const(known == YES) if known in (YES, NO) else Number("bool")


@handles("torch.distributions.kl_divergence", "torch.distributions.kl.kl_divergence")
def _kl(m: Machine, name: str, call: Call) -> Value:
    inputs: list[Value] = []
    for value in call.args:
        content = m.cells.get(getattr(value, "address", -1))
        inputs += inputs_of(m, content, "log_prob") if type(content) is Distribution else [value]
    return combined(m, call.node, "kl_divergence()", inputs)


@handles("torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad_norm", "torch.nn.utils.clip_grad_value_")
def _clip(m: Machine, name: str, call: Call) -> Value:
    if m.judge is not None:
        m.judge.protocol.clip(call.argument(0, "parameters") or NONE, call.node)
    if name.endswith("value_"):
        return NONE
    return tensor_like(m, call.node, "clip_grad_norm_()", inference=made_in(m))


@handles(
    "torch.save",
    "torch.manual_seed",
    "torch.cuda.manual_seed_all",
    "torch.cuda.empty_cache",
    "torch.cuda.synchronize",
)
def _none(m: Machine, name: str, call: Call) -> Value:
    return NONE


@handles("torch.load", "torch.hub.load")
def _loaded(m: Machine, name: str, call: Call) -> Value:
    return unknown_call(m, call, "something that was loaded")


@handles("torch.cuda.is_available", "torch.backends.mps.is_available", "torch.cuda.device_count")
def _asks(m: Machine, name: str, call: Call) -> Value:
    return Number("bool" if "is_" in name else "int")


@handles("torch.nn.Module")
def _bare_module(m: Machine, name: str, call: Call) -> Value:
    return m.new(call.node, Layer(name), "module")


@handles(
    "torch.amp.GradScaler",
    "torch.GradScaler",
    "torch.cuda.amp.GradScaler",
    "torch.amp.grad_scaler.GradScaler",
)
def _scaler(m: Machine, name: str, call: Call) -> Value:
    return make_scaler(m, name, call)
