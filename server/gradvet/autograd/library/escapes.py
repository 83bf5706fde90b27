"""Work that leaves the grad mode it was started in: threads, generators, lambdas; and modes that leave their block."""

import ast
from functools import reduce
from operator import or_

from gradvet.autograd.events_mode import ModeEscaped
from gradvet.autograd.held import held_tensors
from gradvet.autograd.machine import MODE, Machine, Moment
from gradvet.autograd.memory.domain import GRAD, YES
from gradvet.autograd.memory.values import Mode, Ref, Sequence, Value
from gradvet.autograd.python.calls import LAMBDA_RAN, WAITING_MODE, Call, call_value


def own_mode(m: Machine) -> ast.AST | None:
    """The `with` of the function that runs which has turned grad mode off; None where another one has."""
    opened = m.mode_nodes[m.frames[-1].modes_before :]
    return opened[-1] if opened and not m.mode & GRAD else None


def suspended(m: Machine, node: ast.AST, kind: str) -> None:
    """A generator or coroutine stops inside a `with torch.no_grad()`: whoever goes on meanwhile runs under it."""
    frame, mode = m.frames[-1], own_mode(m)
    if kind == "yield":
        frame.waits.append((m.mode, mode))
    decorated = isinstance(frame.node, ast.FunctionDef) and bool(frame.node.decorator_list)
    if mode is None or m.judge is None or (kind == "yield" and decorated):
        return
    m.judge.escapes.suspended(ModeEscaped(node, m.where(), kind, mode, None))


def waiting_mode(waits: list[tuple[int, ast.AST | None]]) -> Mode | None:
    """The grad mode that a generator leaves in force whenever it waits; None when it leaves that of its consumer."""
    left = [(modes, node) for modes, node in waits if node is not None]
    if not left:
        return None
    modes = reduce(or_, (modes for modes, _ in left)) | (GRAD if len(left) < len(waits) else 0)
    return Mode(modes, left[0][1])


def entered_again(m: Machine, node: ast.AST, mode: ast.AST) -> None:
    """One grad mode object is entered inside its own block: leaving the outer one restores what the inner one met."""
    m.emit(ModeEscaped(node, m.where(), "twice", mode, None))


def in_thread(m: Machine, work: Value, call: Call) -> Value:
    """Call a function in a thread, which starts with grad mode on whatever the caller's is."""
    before = m.mode
    m.store.set(MODE, GRAD)
    mode_nodes, m.mode_nodes = m.mode_nodes, []
    start = m.moment()
    value = call_value(m, work, call)
    m.mode_nodes = mode_nodes
    m.store.set(MODE, before)
    place = m.mode_place()
    if not before & GRAD and place is not None and (records(m, value) or _keeps_graph(m, start)):
        m.emit(ModeEscaped(call.node, m.where(), "thread", place, work_node(call.node)))
    return value


def _keeps_graph(m: Machine, start: Moment) -> bool:
    """Whether an object that was there at the start holds what must have recorded a graph since."""
    return any(
        state.has_graph and max(state.nodes, default=0) > start.newest
        for key, content in m.changed_since(start)
        if content is not None
        for _, state in held_tensors(m, content if type(key) is tuple else Ref(key))
    )


def records(m: Machine, value: Value) -> bool:
    """Whether a graph must have been recorded to make this."""
    return any(state.has_graph for _, state in held_tensors(m, value))


def work_node(node: ast.AST) -> ast.AST | None:
    """The function that a call hands to a thread."""
    if not isinstance(node, ast.Call):
        return None
    for keyword in node.keywords:
        if keyword.arg in ("target", "func", "fn"):
            return keyword.value
    return next((arg for arg in node.args if isinstance(arg, (ast.Name, ast.Attribute, ast.Lambda))), None)


def mode_of_lazy(m: Machine, node: ast.AST) -> int:
    """The grad modes in which a generator expression may run that is no argument of a call: also its consumer's."""
    return m.mode if node in m.consumed or own_mode(m) is None else m.mode | GRAD


def lazy(m: Machine, node: ast.AST, value: Value) -> None:
    """A generator was made where grad mode is off: what it computes is computed where it is consumed."""
    mode = own_mode(m)
    content = m.cells.get(getattr(value, "address", -1))
    if mode is None or m.judge is None or type(content) is not Sequence or content.element is None:
        return
    if any(state.requires_grad & YES and state.nodes for _, state in held_tensors(m, content.element)):
        m.judge.escapes.lazily_made(ModeEscaped(node, m.where(), "lazy", mode, None))


def lambda_made(m: Machine, node: ast.Lambda) -> None:
    """A lambda was made where grad mode is off: it runs in the mode of its caller."""
    mode = own_mode(m)
    if mode is not None and m.judge is not None:
        m.judge.escapes.lambdas[node] = mode


def lambda_ran(m: Machine, node: ast.Lambda, value: Value) -> None:
    """A lambda has run; if that was under no `with` and a graph came of it, its mode was left behind."""
    mode = m.judge.escapes.lambdas.get(node) if m.judge is not None else None
    if mode is not None and m.mode == GRAD and m.alone is False and records(m, value):
        m.emit(ModeEscaped(node, m.where(), "lambda", mode, m.calls[-1] if m.calls else None))


LAMBDA_RAN.append(lambda_ran)
WAITING_MODE.append(waiting_mode)
