"""Hooks: those of modules run with each call, those of tensors and of gradients when a backward comes by."""

import ast
from collections.abc import Callable, Iterable

from gradvet.autograd.graph import AFTER_BACKWARD, held_tensors
from gradvet.autograd.library.kept import Inputs, Operand
from gradvet.autograd.library.operations import computed, in_mode, tensor_like
from gradvet.autograd.machine import MODE, Machine
from gradvet.autograd.memory.domain import ANY_FN, FLOAT, GRAD, MAYBE, NO, NO_FN, NO_GRAD, YES, Origin, Tensor
from gradvet.autograd.memory.values import (
    FALSE,
    NONE,
    TRUE,
    Each,
    Ref,
    Tuple,
    Value,
    atoms,
    const,
    join,
)
from gradvet.autograd.python.calls import Call, call_value

FORWARD, BEFORE = "register_forward_hook", "register_forward_pre_hook"
FULL, FULL_BEFORE = "register_full_backward_hook", "register_full_backward_pre_hook"
OF_MODULES = frozenset({FORWARD, BEFORE, FULL, FULL_BEFORE})
OF_TENSORS = frozenset({"register_hook", "register_post_accumulate_grad_hook"})
_POST = "register_post_accumulate_grad_hook"
RETAIN = "retain_grad"
_CELL = "#hooks"
_VIEW = "BackwardHookFunctionBackward"
MOST_NUMBERED = 60


# -- hooks of modules


def register(m: Machine, modules: Value, name: str, call: Call) -> Value:
    """`module.register_forward_hook(hook)` and its kin; the handle takes the hook away again."""
    handle = m.unknown(call.node, "the handle of a hook", (), "hook")
    for ref in modules.refs if type(modules) is Each else (modules,):
        if type(ref) is Ref:
            known = m.hooks.of_modules.setdefault(ref.address & ~1, [])
            if (name, call.args[0]) not in known:
                known.append((name, call.args[0]))
            m.hooks.handles.setdefault(handle.address, []).append((ref.address & ~1, (name, call.args[0])))
            m.hooks.count += 1
            m.hooks.placed[ref.address, handle.address] = (m.hooks.count, call.node, m.where())
            m.store.set(placed_key(ref.address, handle.address), TRUE)
    return handle


def placed_key(module: int, handle: int) -> tuple[int, str]:
    """The cell that tells whether the hook that a handle stands for is still at a module."""
    return (module, f"#hook {handle}")


def removed(m: Machine, handle: Ref) -> None:
    """`handle.remove()`."""
    for address, hook in m.hooks.handles.get(handle.address, ()):
        m.store.set(placed_key(address, handle.address), FALSE)
        m.hooks.of_modules[address] = [
            other for other in m.hooks.of_modules.get(address, ()) if other != hook
        ]


def copied(m: Machine, module: Ref, made: Ref) -> None:
    """A deep copy of a module has its hooks, which no handle takes away."""
    found = m.hooks.of_modules.get(module.address & ~1)
    if found:
        m.hooks.of_modules[made.address & ~1] = list(found)


def around(m: Machine, ref: Ref, call: Call, forward: Callable[[Call], Value]) -> Value:
    """Call a module with the hooks that it has: what they give takes the place of inputs and outputs."""
    found = m.hooks.of_modules.get(ref.address & ~1)
    if not found:
        return forward(call)
    m.hooks.count += 1
    m.hooks.ran[ref.address & ~1] = m.hooks.count
    before = [hook for name, hook in found if name == BEFORE]
    after = [hook for name, hook in found if name == FORWARD]
    backward = [(name, hook) for name, hook in found if name in (FULL, FULL_BEFORE)]
    for number, hook in enumerate(before):
        given = _run(m, hook, call, (ref, Tuple(call.args)), number)
        if type(given) is Tuple:
            call = call._replace(args=given.items)
        elif m.tensor(given) is not None:
            call = call._replace(args=(given, *call.args[1:]))
    inputs = call.args
    if any(name == FULL for name, _ in backward):
        call = call._replace(args=tuple(_seen_through(m, call, v, f"in {at}") for at, v in enumerate(inputs)))
    value = forward(call)
    for number, hook in enumerate(after):
        given = _run(m, hook, call, (ref, Tuple(call.args), value), MOST_NUMBERED // 2 + number)
        if given != NONE and m.tensor(given) is not None:
            value = given
    if backward:
        value = _seen_through(m, call, value, "out")
        for name, hook in backward:
            entry = Tuple((const(name), hook, ref, Tuple(inputs), value))
            for held, state in held_tensors(m, value):
                if state.requires_grad & YES:
                    _hang(m, held, entry)
    return value


def _run(m: Machine, hook: Value, call: Call, args: tuple[Value, ...], number: int) -> Value:
    with m.numbered(call.node, number % MOST_NUMBERED):
        return call_value(m, hook, Call(call.node, args))


def _seen_through(m: Machine, call: Call, value: Value, tag: str) -> Value:
    """What a full backward hook makes of a tensor on its way: a view that a node of its own has made."""
    if type(value) is Tuple:
        return value._replace(
            items=tuple(_seen_through(m, call, v, f"{tag}.{at}") for at, v in enumerate(value.items))
        )
    state = m.tensor(value)
    if state is None or state.requires_grad == NO or not m.mode & GRAD:
        return value
    address = m.address(call.node, f"hooked {tag}")
    operand = Operand("input", value, state)
    granted = in_mode(m, state.requires_grad)
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
    m.place(address, made._replace(storage=state.storage, view=YES if granted == YES else state.view | YES))
    return Ref(address)


# -- hooks of tensors, and what a backward does


def hang(m: Machine, receiver: Value, name: str, hook: Value) -> None:
    """`tensor.register_hook(hook)`."""
    for ref, _ in m.tensors(receiver):
        _hang(m, ref, Tuple((const(name), hook)))


def _hang(m: Machine, ref: Ref, entry: Tuple) -> None:
    m.hooks.on_tensors = True
    key = (ref.address, _CELL)
    known = m.cells.get(key)
    entries = known.items if type(known) is Tuple else ()
    if entry not in entries:
        m.store.set(key, Tuple((*entries, entry)))


def fire(m: Machine, site: ast.AST, visited: Iterable[int], creates: int, *, accumulated: bool) -> None:
    """A backward comes by: run the hooks of what it visits, the hooks after accumulation when that is done."""
    if not m.hooks.on_tensors or m.hooks.firing:
        return
    m.hooks.firing = True
    before, raised = m.mode, m.raised
    m.store.set(MODE, {YES: GRAD, NO: NO_GRAD}.get(creates, GRAD | NO_GRAD))
    number = 0
    for address in visited:
        for cell in atoms(m.cells.get((address, _CELL), NONE)):
            for entry in cell.items if type(cell) is Tuple else ():
                name = entry.items[0].value
                if name == RETAIN and not accumulated:
                    _retained(m, site, address)
                elif name != RETAIN and (name == _POST) is accumulated:
                    with m.numbered(site, number % MOST_NUMBERED):
                        _call(m, site, address, name, entry.items[1:], creates)
                    number += 1
    m.store.set(MODE, before)
    m.raised, m.hooks.firing = raised, False


def _retained(m: Machine, site: ast.AST, address: int) -> None:
    """After `retain_grad()` a tensor that is no leaf has a gradient too."""
    made = m.place_part(address, "gradient", Tensor(view=MAYBE, origin=Origin(site, ".grad")))
    m.update(made, lambda t: t._replace(storage=frozenset({made.address})) if type(t) is Tensor else t)
    known = m.cells.get((address, "grad"), NONE)
    m.store.set((address, "grad"), join(known, made) if address & 1 else made)
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
    call_value(m, hook, Call(site, args))


def _gradient(m: Machine, site: ast.AST, tag: str, creates: int) -> Ref:
    made = tensor_like(m, site, tag, view=MAYBE)
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
