"""Distributions: what one keeps of its parameters, and what its results are computed from."""

import ast
from collections.abc import Callable

from gradvet.autograd.graph import node_key
from gradvet.autograd.held import held_tensors
from gradvet.autograd.knowledge.lookup import Distribution as Known
from gradvet.autograd.knowledge.lookup import load
from gradvet.autograd.library.inputs import made_in
from gradvet.autograd.library.made_tensors import combined
from gradvet.autograd.library.operations import TRUTH
from gradvet.autograd.library.results import tensor_like
from gradvet.autograd.library.storages import bases_of
from gradvet.autograd.machine import MODE, Machine
from gradvet.autograd.memory.domain import (
    ANY_FN,
    EXPANDED,
    FLOAT,
    GRAD,
    INTEGER,
    MAYBE,
    NO,
    NO_FN,
    NOTHING,
    YES,
    Node,
    Tensor,
    switched,
)
from gradvet.autograd.memory.values import NONE, Const, Distribution, Number, Ref, Value, join
from gradvet.autograd.python.calls import Call

_COMPUTED = ("log_prob", "cdf", "icdf", "rsample", "entropy", "perplexity")
_OF_AN_ARGUMENT = ("log_prob", "cdf", "icdf")


def make(m: Machine, name: str, call: Call) -> Value:
    """A distribution. Some of its parameters it keeps as they are; from others it computes what it keeps."""
    known = load().distribution(name)
    init = known.init if known is not None else ()
    given = [(init[at] if at < len(init) else "", value) for at, value in enumerate(call.args)]
    inputs = []
    for parameter, value in (*given, *call.keywords.items()):
        computes = known is not None and parameter in known.computes and held_tensors(m, value)
        kept = combined(m, call.node, parameter, [value], tag=parameter) if computes else value
        if computes:
            _may_share(m, kept, [value])
        inputs.append((parameter, kept))
    return m.new(call.node, Distribution(name, tuple(inputs)), name.rpartition(".")[2])


def inputs_of(m: Machine, content: Distribution, result: str) -> list[Value]:
    """The values from which a gradient may come to a result; those inside a distribution that it was made from too."""
    known = load().distribution(content.name)
    without = known.without.get(result, ()) if known is not None else ()
    found: list[Value] = []
    for parameter, value in content.inputs:
        if parameter in without:
            continue
        inner = m.cells.get(getattr(value, "address", -1))
        found += inputs_of(m, inner, result) if type(inner) is Distribution else [value]
    return found


def call_distribution(m: Machine, ref: Ref, content: Distribution, name: str, call: Call) -> Value:
    """A method of a distribution."""
    known = load().distribution(content.name)
    result = known.results.get(name) if known is not None else None
    if name in ("sample", "sample_n"):
        return _sample(m, content, call)
    if name in _COMPUTED and (known is None or result == "grad"):
        if name == "log_prob" and m.judge is not None:
            m.judge.cut_notes.scored |= samples(m, call)
        given = [*inputs_of(m, content, name), *(call.args if name in _OF_AN_ARGUMENT else ())]
        made = combined(m, call.node, f"{name}()", given)
        _saves(m, made, content, name)
        m.update(made, lambda t: t._replace(view=_viewed(m, content, name)) if type(t) is Tensor else t)
        return made
    if name == "expand":
        return ref
    if result == "no grad":
        view = _viewed(m, content, name)
        return tensor_like(m, call.node, name, view=view, inference=made_in(m), dtype=FLOAT | INTEGER)
    return m.unknown(call.node, f"the result of `{name}`", (ref, *call.args), "call")


def _saves(m: Machine, made: Ref, content: Distribution, result: str) -> None:
    """A result saves nothing where only such parameters ask for a gradient as need nothing: `loc`, for `rsample`."""
    known, node = load().distribution(content.name), m.cells.get(node_key(made.address))
    free = known.again.get(result, ()) if known is not None else ()
    if not free or type(node) is not Node:
        return
    without = known.without.get(result, ()) if known is not None else ()
    asks = [
        (parameter in free, state.requires_grad)
        for parameter, value in content.inputs
        if parameter not in without
        for _, state in held_tensors(m, value)
        if state.requires_grad & YES
    ]
    if any(asked == YES and not needs_nothing for needs_nothing, asked in asks):
        return
    keeps = NO if asks and all(needs_nothing for needs_nothing, _ in asks) else MAYBE
    m.store.set(node_key(made.address), node._replace(keeps=keeps))


def samples(m: Machine, call: Call) -> frozenset[int]:
    """The cuts of samples that a call is given."""
    cuts = [state.cuts for value in call.all_values() for _, state in m.tensors(value) if state.cuts]
    return frozenset(c for c in frozenset[int]().union(*cuts) if m.cuts[c].kind == "sample")


def _sample(m: Machine, content: Distribution, call: Call) -> Value:
    known = load().distribution(content.name)
    cuts = NOTHING
    for value in inputs_of(m, content, "sample"):
        for _, state in held_tensors(m, value):
            cuts |= state.cuts
            if state.requires_grad & YES:
                number = m.cut("sample", "sample()", call.node, state.leaves, state.nodes, cuts)
                m.cuts[number].form = "rsample" if known is not None and known.has_rsample else ""
                cuts |= {number}
    integer = known is not None and known.sample_dtype != "float"
    made = tensor_like(
        m,
        call.node,
        "sample()",
        dtype=INTEGER if integer else FLOAT,
        view=_viewed(m, content, "sample"),
        inference=made_in(m),
    )
    m.update(made, lambda t: t._replace(cuts=cuts))
    return made


def _viewed(m: Machine, content: Distribution, result: str) -> int:
    """Whether a result is a view; autograd does not track those of what is made in inference mode."""
    known = load().distribution(content.name)
    view = MAYBE if known is None else TRUTH[known.views.get(result, "never")]
    return NO if made_in(m) == YES else view | NO if made_in(m) == MAYBE else view


def distribution_property(m: Machine, ref: Ref, content: Distribution, name: str, node: ast.AST) -> Value:
    """mean, stddev, logits, probs, … of a distribution."""
    if name in ("has_rsample", "has_enumerate_support"):
        return Number("bool")
    if name in ("batch_shape", "event_shape", "param_shape"):
        return m.sizes
    known = load().distribution(content.name)
    if known is None:
        return _perhaps_parameter(m, name, inputs_of(m, content, name), node)
    name, _, part = known.same.get(name, name).partition(".")
    given = next((v for parameter, v in content.inputs if parameter == name and v != NONE), None)
    if part:
        inner = m.cells.get(getattr(given, "address", -1))
        if type(given) is Ref and type(inner) is Distribution:
            return distribution_property(m, given, inner, part, node)
        return _perhaps_parameter(m, part, inputs_of(m, content, part), node)
    there = m.cells.get((ref.address, name))
    if there is not None:
        return there
    if type(given) in (Const, Number):
        number = tensor_like(m, node, name, view=MAYBE, inference=made_in(m) | NO)
        cuts = given.cuts if type(given) is Number else NOTHING
        m.update(number, lambda t: t._replace(cuts=cuts) if type(t) is Tensor else t)
        m.write_cell(ref, name, number)
        return number
    if given is not None:
        return _parameter(m, content, known, name, given, node)
    if name in known.lazy:
        made = _in_grad_mode(m, lambda: _computed(m, content, name, node))
        m.write_cell(ref, name, made)
        return made
    result = known.results.get(name)
    if result is None:
        return _perhaps_parameter(m, name, inputs_of(m, content, name), node)
    if result == "no grad":
        return tensor_like(m, node, name, view=_viewed(m, content, name), inference=made_in(m))
    return _computed(m, content, name, node)


def _computed(m: Machine, content: Distribution, name: str, node: ast.AST) -> Value:
    view, given = _viewed(m, content, name), inputs_of(m, content, name)
    made = combined(m, node, name, given)
    _saves(m, made, content, name)
    m.update(made, lambda t: t._replace(view=view) if type(t) is Tensor else t)
    if view & YES:
        _may_share(m, made, given)
    return made


def _parameter(
    m: Machine, content: Distribution, known: Known, name: str, given: Value, node: ast.AST
) -> Value:
    """A parameter as the distribution has it: as it was given, expanded to the shape of the others, or computed."""
    inside = m.cells.get(getattr(given, "address", -1))
    if type(inside) is Distribution:
        return given
    state = m.tensor(given)
    if state is None or name not in known.kept:
        return _perhaps_parameter(m, name, [given], node)
    if name in known.computes:
        return given
    alone = all(v == given or type(v) in (Const, Number) for _, v in content.inputs)
    if alone:
        return given
    expanded = state._replace(
        is_leaf=state.is_leaf | (NO if state.requires_grad & YES else 0),
        grad_fn=state.grad_fn | (frozenset({"ExpandBackward0"}) if state.requires_grad & YES else NO_FN),
        view=YES,
        made_as=EXPANDED,
        base=bases_of(m, given),
        parameter=NO,
    )
    return join(given, m.new(node, expanded, f"expanded {name}"))


def _in_grad_mode(m: Machine, make: Callable[[], Value]) -> Value:
    """What is made after `enable_grad`."""
    before = m.mode
    m.store.set(MODE, switched(before, GRAD))
    made = make()
    m.store.set(MODE, before)
    return made


def _perhaps_parameter(m: Machine, name: str, given: list[Value], node: ast.AST) -> Value:
    """An attribute that was not measured: a parameter, or something that is computed of them, now or before."""
    made = _in_grad_mode(m, lambda: combined(m, node, name, given))
    asking = {state.requires_grad for v in given for _, state in held_tensors(m, v)}
    # It may come from those of the parameters alone that ask for nothing.
    plain = NO if len(asking) > 1 or not m.mode & GRAD else 0
    m.update(made, lambda t: t._replace(requires_grad=t.requires_grad | plain) if type(t) is Tensor else t)
    _may_share(m, made, given)
    m.update(made, _may_be_parameter)
    return made


def _may_share(m: Machine, made: Value, given: list[Value]) -> None:
    """What a distribution gives may be a parameter of it, or a view of one."""
    places = NOTHING.union(*(state.storage for value in given for _, state in held_tensors(m, value)))
    m.update(made, lambda t: t._replace(storage=t.storage | places) if type(t) is Tensor else t)


def _may_be_parameter(content: object) -> object:
    if type(content) is not Tensor or content.requires_grad == NO:
        return content._replace(view=MAYBE) if type(content) is Tensor else content
    return content._replace(is_leaf=MAYBE, grad_fn=NO_FN | {ANY_FN}, view=MAYBE)
