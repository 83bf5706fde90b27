"""Hooks: those of modules run with each call, those of tensors and of gradients when a backward comes by."""

import ast
from collections.abc import Callable, Iterable
from typing import NamedTuple

from gradvet.autograd.backward_pass import AFTER_BACKWARD
from gradvet.autograd.graph import reachable, surely_visited
from gradvet.autograd.held import held_tensors
from gradvet.autograd.library.inputs import in_mode
from gradvet.autograd.library.kept import Inputs, Operand
from gradvet.autograd.library.results import computed, tensor_like
from gradvet.autograd.machine import MODE, Machine
from gradvet.autograd.memory.domain import (
    ANY_FN,
    FLOAT,
    FUNCTIONS_RECORD,
    GRAD,
    MAYBE,
    NO,
    NO_FN,
    NO_GRAD,
    YES,
    Origin,
    Tensor,
    switched,
)
from gradvet.autograd.memory.values import (
    FALSE,
    NONE,
    PLACED,
    TRUE,
    Dict,
    Each,
    Ref,
    Tuple,
    Value,
    const,
    join,
)
from gradvet.autograd.python.calls import Call, call_value
from gradvet.autograd.python.control import fork

FORWARD, BEFORE = "register_forward_hook", "register_forward_pre_hook"
FULL, FULL_BEFORE = "register_full_backward_hook", "register_full_backward_pre_hook"
OF_MODULES = frozenset({FORWARD, BEFORE, FULL, FULL_BEFORE})
OF_TENSORS = frozenset({"register_hook", "register_post_accumulate_grad_hook"})
_POST = "register_post_accumulate_grad_hook"
RETAIN = "retain_grad"
WITH_KEYWORDS = " with_kwargs"
_HUNG = "#hung "
_VIEW = "BackwardHookFunctionBackward"
MOST_NUMBERED = 60


# -- hooks of modules


def placed_key(module: int, handle: int) -> tuple[int, str]:
    """The cell that tells whether the hook that a handle stands for is still at a module."""
    return (module, f"{PLACED}{handle}")


def register(m: Machine, modules: Value, name: str, call: Call) -> Value:
    """`module.register_forward_hook(hook)` and its kin; the handle takes the hook away again."""
    handle = m.unknown(call.node, "the handle of a hook", (), "hook")
    for ref in modules.refs if type(modules) is Each else (modules,):
        if type(ref) is Ref:
            known = m.hooks.of_modules.setdefault(ref.address & ~1, [])
            named = name + WITH_KEYWORDS if call.keywords.get("with_kwargs", FALSE) == TRUE else name
            entry = (named, call.args[0], handle.address)
            if entry not in known:
                known.append(entry)
            m.hooks.handles.setdefault(handle.address, []).append(ref.address & ~1)
            m.hooks.count += 1
            m.hooks.placed[ref.address, handle.address] = (m.hooks.count, call.node, m.where())
            m.store.set(placed_key(ref.address, handle.address), TRUE)
    return handle


def removed(m: Machine, handle: Ref) -> None:
    """`handle.remove()`; which of those of earlier iterations it takes away is not known."""
    number = handle.address & ~1
    for module in m.hooks.handles.get(number, ()):
        for address in (module, module | 1):
            key = placed_key(address, number)
            known = m.cells.get(key)
            if known is not None:
                m.store.set(key, FALSE if not handle.address & 1 else join(known, FALSE))


def copied(m: Machine, module: Ref, made: Ref) -> None:
    """A deep copy of a module has its hooks, which no handle takes away."""
    found = m.hooks.of_modules.get(module.address & ~1)
    if found:
        m.hooks.of_modules[made.address & ~1] = list(found)
        for _, _, handle in found:
            m.store.set(placed_key(made.address, handle), _placed(m, module, handle))


def _placed(m: Machine, module: Ref, handle: int) -> Value:
    """Whether the hook of a handle is at a module now: true, false, or either."""
    return m.cells.get(placed_key(module.address, handle), FALSE)


class _Hook(NamedTuple):
    """A hook that a module has, or (not `surely`) may have; some want the keywords of the call as well."""

    name: str
    hook: Value
    surely: bool
    keywords: bool


def _perhaps(m: Machine, hooked: Callable[[], Value], otherwise: Value, *, surely: bool) -> Value:
    """What comes of a hook, or also what is there without it where it may not have been placed."""
    if surely:
        return hooked()
    alive, value = fork(m, [lambda: (True, hooked()), lambda: (True, otherwise)])
    return value if alive and value is not None else otherwise


def around(m: Machine, ref: Ref, call: Call, forward: Callable[[Call], Value]) -> Value:
    """Call a module with the hooks that it has: what they give takes the place of inputs and outputs."""
    known = [
        _Hook(name.removesuffix(WITH_KEYWORDS), hook, placed == TRUE, name.endswith(WITH_KEYWORDS))
        for name, hook, handle in m.hooks.of_modules.get(ref.address & ~1, ())
        for placed in (_placed(m, ref, handle),)
        if placed != FALSE
    ]
    if not known:
        return forward(call)
    m.hooks.count += 1
    m.hooks.ran[ref.address & ~1] = m.hooks.count
    before = [hook for hook in known if hook.name == BEFORE]
    after = [hook for hook in known if hook.name == FORWARD]
    backward = [hook for hook in known if hook.name in (FULL, FULL_BEFORE)]
    for number, hook in enumerate(before):
        call = _changed_arguments(m, ref, call, hook, number)
    inputs = call.args
    full = [hook.surely for hook in backward if hook.name == FULL]
    if full:
        seen = tuple(_seen_through(m, call, v, f"in {at}", surely=any(full)) for at, v in enumerate(inputs))
        call = call._replace(args=seen)
    value = forward(call)
    for number, hook in enumerate(after):
        value = _changed_result(m, ref, call, hook, value, MOST_NUMBERED // 2 + number)
    if backward:
        value = _seen_through(m, call, value, "out", surely=any(hook.surely for hook in backward))
        for number, hook in enumerate(backward):
            entry = Tuple((const(hook.name), hook.hook, ref, Tuple(inputs), value))
            place = m.address(call.node, f"hung {number}")
            for held, state in held_tensors(m, value):
                if state.requires_grad & YES:
                    _hang(m, held, place, entry, surely=hook.surely)
    return value


def _changed_arguments(m: Machine, ref: Ref, call: Call, hook: _Hook, number: int) -> Call:
    """The call with the arguments that a hook before the forward gives instead, if it gives any."""
    own = Tuple(call.args)

    def hooked() -> Value:
        given = _run(m, hook.hook, call, (ref, own, *_keywords(m, call, hook)), number)
        if hook.keywords:  # it gives both, or nothing
            return given.items[0] if type(given) is Tuple and given.items else own
        if type(given) is Tuple:
            return given
        return Tuple((given, *call.args[1:])) if m.tensor(given) is not None else own

    given = _perhaps(m, hooked, own, surely=hook.surely)
    return call._replace(args=given.items) if type(given) is Tuple else call


def _changed_result(m: Machine, ref: Ref, call: Call, hook: _Hook, value: Value, number: int) -> Value:
    """What a hook after the forward makes of the result."""

    def hooked() -> Value:
        given = _run(m, hook.hook, call, (ref, Tuple(call.args), *_keywords(m, call, hook), value), number)
        return given if given != NONE and m.tensor(given) is not None else value

    return _perhaps(m, hooked, value, surely=hook.surely)


def _keywords(m: Machine, call: Call, hook: _Hook) -> tuple[Value, ...]:
    """The keywords of a call, for a hook that wants them."""
    if not hook.keywords:
        return ()
    pairs = tuple((const(word), value) for word, value in call.keywords.items())
    return (m.new(call.node, Dict(pairs, call.stars), "keywords"),)


def _run(m: Machine, hook: Value, call: Call, args: tuple[Value, ...], number: int) -> Value:
    m.hooks.forwards += 1
    with m.numbered(call.node, number % MOST_NUMBERED):
        given = call_value(m, hook, Call(call.node, args))
    m.hooks.forwards -= 1
    return given


def _seen_through(m: Machine, call: Call, value: Value, tag: str, *, surely: bool) -> Value:
    """What a full backward hook makes of a tensor on its way: a view that a node of its own has made."""
    if type(value) is Tuple:
        items = enumerate(value.items)
        return value._replace(
            items=tuple(_seen_through(m, call, v, f"{tag}.{at}", surely=surely) for at, v in items)
        )
    state = m.tensor(value)
    if state is None or state.requires_grad == NO or not m.mode & FUNCTIONS_RECORD:
        return value
    address = m.address(call.node, f"hooked {tag}")
    operand = Operand("input", value, state)
    granted = in_mode(m, state.requires_grad, FUNCTIONS_RECORD)
    made = computed(
        m,
        call.node,
        address,
        "a backward hook",
        (_VIEW,),
        granted,
        [operand],
        Inputs({}, (operand,), ()),
        FLOAT,
    )
    m.place(
        address,
        made._replace(
            storage=state.storage, inference=state.inference, view=YES if granted == YES else state.view | YES
        ),
    )
    return Ref(address) if surely else join(value, Ref(address))


# -- hooks of tensors, and what a backward does


def hang(m: Machine, call: ast.AST, receiver: Value, name: str, hook: Value) -> Value:
    """`tensor.register_hook(hook)`; the handle takes the hook away again."""
    handle = m.unknown(call, "the handle of a hook", (), name)
    for ref, _ in m.tensors(receiver):
        surely = type(receiver) is Each or m.only(receiver) == ref.address
        _hang(m, ref, handle.address, Tuple((const(name), hook)), surely=surely)
        m.hooks.handles.setdefault(handle.address, []).append(ref.address & ~1)
    return handle


def retains(m: Machine, ref: Ref) -> bool:
    """Whether `retain_grad()` may have been called on a tensor."""
    for handle in m.hooks.of_tensors.get(ref.address & ~1, ()):
        entry = m.cells.get((ref.address, f"{_HUNG}{handle}"))
        if type(entry) is Tuple and entry.items[0].value == RETAIN:
            return True
    return False


def _hang(m: Machine, ref: Ref, handle: int, entry: Tuple, *, surely: bool) -> None:
    hung = m.hooks.of_tensors.setdefault(ref.address & ~1, [])
    if handle not in hung:
        hung.append(handle)
    m.store.set((ref.address, f"{_HUNG}{handle}"), entry)
    key = placed_key(ref.address, handle)
    m.store.set(key, TRUE if surely else join(m.cells.get(key, FALSE), TRUE))


def fire(
    m: Machine, site: ast.AST, visited: Iterable[int], creates: int, root: Tensor | None, *, accumulated: bool
) -> None:
    """A backward comes by: run the hooks of what it visits, the hooks after accumulation when that is done.

    From a `root` that it surely starts from, it visits some of that surely.
    """
    if not m.hooks.of_tensors or m.hooks.firing:
        return
    m.hooks.firing = True
    before, raised = m.mode, m.raised
    m.store.set(MODE, _in_backward(before, creates))
    sure = frozenset[int]() if root is None else surely_visited(m, root, reachable(m, root.nodes))
    number = 0
    for address in visited:
        for handle in m.hooks.of_tensors.get(address & ~1, ()):
            entry, placed = m.cells.get((address, f"{_HUNG}{handle}")), _placed(m, Ref(address), handle)
            if type(entry) is not Tuple or placed == FALSE:
                continue
            surely = placed == TRUE and address in sure and not address & 1
            name = entry.items[0].value
            if name == RETAIN and not accumulated:
                _retained(m, site, address, surely=surely)
            elif name != RETAIN and (name == _POST) is accumulated:

                def run(at: int = address, entry: Tuple = entry, name: str = name, n: int = number) -> Value:
                    with m.numbered(site, n % MOST_NUMBERED):
                        _call(m, site, at, name, entry.items[1:], creates)
                    return NONE

                _perhaps(m, run, NONE, surely=surely)
                number += 1
    m.store.set(MODE, before)
    m.raised, m.hooks.firing = raised, False


def _in_backward(mode: int, creates: int) -> int:
    """The grad mode in a backward: it records if it creates a graph, and inference mode stays on."""
    recording = {YES: GRAD, NO: NO_GRAD}.get(creates, GRAD | NO_GRAD)
    return switched(mode, recording)


def _retained(m: Machine, site: ast.AST, address: int, *, surely: bool) -> None:
    """After `retain_grad()` a tensor that is no leaf has a gradient too."""
    made = m.place_part(address, "gradient", Tensor(view=MAYBE, origin=Origin(site, ".grad")))
    own, inference = frozenset({made.address}), m.gradients_made
    m.update(made, lambda t: t._replace(storage=own, inference=inference) if type(t) is Tensor else t)
    known = m.cells.get((address, "grad"), NONE)
    m.store.set((address, "grad"), made if surely else join(known, made))
    m.grads.add(made.address)


def _call(m: Machine, site: ast.AST, address: int, name: str, entry: tuple[Value, ...], creates: int) -> None:
    hook = entry[0]
    args: tuple[Value, ...]
    if name == _POST:
        args = (Ref(address),)
    elif name in OF_TENSORS:
        args = (_gradient(m, site, "gradient", creates),)
    else:
        module, inputs, output = entry[1:]
        outputs = output.items if type(output) is Tuple else (output,)
        given = tuple(
            _or_none(m, v, _gradient(m, site, f"of output {at}", creates)) for at, v in enumerate(outputs)
        )
        asked = tuple(
            _or_none(m, v, _gradient(m, site, f"of input {at}", creates)) for at, v in enumerate(inputs.items)
        )
        args = (module, Tuple(asked), Tuple(given)) if name == FULL else (module, Tuple(given))
    given = call_value(m, hook, Call(site, args))
    m.given_back |= frozenset[int]().union(*(state.storage for _, state in held_tensors(m, given)))


def _gradient(m: Machine, site: ast.AST, tag: str, creates: int) -> Ref:
    made = tensor_like(m, site, tag, view=MAYBE, inference=m.gradients_made)
    m.given_back |= {made.address}
    if m.judge is not None:
        m.judge.walks.given[made.address & ~1] = "hook"
    if creates & YES:  # it has a graph if it depends on what requires grad
        m.update(made, lambda t: t._replace(requires_grad=MAYBE, is_leaf=MAYBE, grad_fn=NO_FN | {ANY_FN}))
    return made


def _or_none(m: Machine, value: Value, gradient: Ref) -> Value:
    """The gradient of an input or output, which is None where none was asked for."""
    state = m.tensor(value)
    if state is None or state.requires_grad == NO:
        return NONE
    return gradient if state.requires_grad == YES else join(NONE, gradient)


AFTER_BACKWARD.append(fire)
