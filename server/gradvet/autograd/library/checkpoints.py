"""Checkpoints: functions that run once more when a backward comes to what they gave."""

from gradvet.autograd.held import held_tensors
from gradvet.autograd.library.again import now_held, runs_again
from gradvet.autograd.library.externals import handles
from gradvet.autograd.library.inputs import in_mode
from gradvet.autograd.machine import MODE, Machine
from gradvet.autograd.memory.domain import (
    ENABLED_INFERENCE,
    FUNCTIONS_RECORD,
    GRAD,
    INFERENCE,
    MAYBE,
    NO,
    NO_FN,
    NO_GRAD,
    NOTHING,
    YES,
    Tensor,
)
from gradvet.autograd.memory.values import NONE, Bound, Const, Function, Opaque, Value, atoms
from gradvet.autograd.python.calls import Call, call_value
from gradvet.autograd.python.names import read_from_outside


@handles("torch.utils.checkpoint.checkpoint")
def _checkpoint(m: Machine, name: str, call: Call) -> Value:
    """Runs a function and forgets its graph until backward.

    With `use_reentrant=True` (also when it is not given) the function first runs under no_grad, and the result
    requires grad only when a tensor that is handed in does (measured on torch 2.13).
    """
    keywords = {k: v for k, v in call.keywords.items() if k not in ("use_reentrant", "preserve_rng_state")}
    if not call.args:
        return NONE
    inner = Call(call.node, call.args[1:], keywords)
    # What the ops in it save is computed again; of what it was given torch sees that it was changed since.
    given = [m.tensor(value) for value in inner.all_values()]
    kept = NOTHING.union(*(state.storage for state in given if state is not None and len(state.storage) == 1))
    flag = call.keywords.get("use_reentrant")
    if flag is not None and not (type(flag) is Const and flag.value):
        with m.packing(kept):
            value = call_value(m, call.args[0], inner)
        _keep(m, call.args[0], inner, value, cuts_off=False)
        return value
    asked = [s for value in call.args[1:] for _, s in held_tensors(m, value)]
    before = m.mode
    if before == GRAD:
        m.store.set(MODE, GRAD | NO_GRAD)  # once without recording, once more in backward
    elif before & ENABLED_INFERENCE:
        m.store.set(MODE, before & ~ENABLED_INFERENCE | INFERENCE)
    with m.packing(kept):
        value = call_value(m, call.args[0], inner)
    m.store.set(MODE, before)
    granted = YES if any(s.requires_grad == YES for s in asked) else MAYBE
    if all(s.requires_grad == NO for s in asked):
        granted = NO
    granted = in_mode(m, granted, FUNCTIONS_RECORD)  # a custom Function makes the result
    cuts = NOTHING
    unknown = any(type(m.cells.get(getattr(v, "address", -1))) is Opaque for v in inner.all_values())
    made = held_tensors(m, value)
    behind = frozenset[int]().union(*(state.leaves for _, state in made))
    if granted == NO and before == GRAD and behind and not unknown:
        nodes = frozenset[int]().union(*(state.nodes for _, state in made))
        cuts = frozenset({m.cut("checkpoint", "checkpoint()", call.node, behind, nodes)})

    def change(t: object) -> object:
        if type(t) is not Tensor:
            return t
        if granted == NO:
            bare = t._replace(requires_grad=NO, is_leaf=YES, grad_fn=NO_FN, nodes=NOTHING, leaves=NOTHING)
            return bare._replace(cuts=t.cuts | cuts)
        return t._replace(
            requires_grad=granted,
            is_leaf=NO if granted == YES else MAYBE,
            grad_fn=frozenset({"CheckpointFunctionBackward"}) | (NO_FN if granted != YES else frozenset()),
        )

    if before & GRAD:
        _keep(m, call.args[0], inner, value, cuts_off=True)
    for ref, _ in held_tensors(m, value):
        m.update(ref, change)
    return value


def _keep(m: Machine, function: Value, call: Call, value: Value, *, cuts_off: bool) -> None:
    """A function runs once more, and comes by what was changed since.

    Where nothing was, and it has the same tensors, the first run has shown all there is to see. A reentrant
    checkpoint `cuts_off` what it is given: the second run has leaves in the place of tensors.
    """
    read, mode = _read(m, function, call), m.mode

    def again() -> None:
        if not cuts_off and _read(m, function, call) == read:
            return
        with m.replayed():
            m.store.set(MODE, mode)
            args = (_cut_off(m, arg, call, at) if cuts_off else arg for at, arg in enumerate(call.args))
            call_value(m, function, call._replace(args=tuple(args)))

    runs_again(m, value, again)


def _read(m: Machine, function: Value, call: Call) -> tuple[object, ...]:
    """What autograd holds for what a function is given and reads from outside."""
    inner = [atom.function if type(atom) is Bound else atom for atom in atoms(function)]
    outside = [value for one in inner if type(one) is Function for value in read_from_outside(m, one)]
    return now_held(m, (*call.all_values(), *outside))


def _cut_off(m: Machine, value: Value, call: Call, at: int) -> Value:
    """A leaf in the place of a tensor that is handed in by itself; others go in as they are."""
    state = m.tensor(value)
    if state is None:
        return value
    made = m.new(
        call.node,
        Tensor(requires_grad=state.requires_grad, dtype=state.dtype, storage=state.storage),
        f"again {at}",
    )
    own = frozenset({made.address}) if state.requires_grad & YES else NOTHING
    m.update(made, lambda t: t._replace(leaves=own) if type(t) is Tensor else t)
    return made
