"""Whether what the author says of a gradient, `# grad: stop` or `# grad: keep`, is what the run held."""

import ast
from collections.abc import Iterator

from gradvet.autograd.events import KeepCut, StopCrossed
from gradvet.autograd.graph import reachable
from gradvet.autograd.judging.judge import Judge
from gradvet.autograd.machine import CutInfo, Machine
from gradvet.autograd.memory.domain import NO, YES, Tensor
from gradvet.syntax.parse import Module
from gradvet.syntax.place import is_block
from gradvet.syntax.suppress import Suppressions


def intents(m: Machine, judge: Judge, module: Module) -> None:
    """Emit the stated intents that the run contradicts."""
    stated = Suppressions.of(module).intents
    if not stated:
        return
    at_rows = _statements(module)
    for intent in stated:
        statement = at_rows.get(intent.row)
        for value in _values(m, statement) if statement is not None else ():
            state = m.states[value]
            if value in m.vague:
                continue
            if intent.wish == "stop":
                if state.requires_grad == YES:
                    m.emit(StopCrossed(value, m.calls_of.get(value, ()), state))
            elif (cut := _cut(m, judge, state)) is not None:
                m.emit(KeepCut(value, m.calls_of.get(value, ()), state, *cut))


def _statements(module: Module) -> dict[int, ast.stmt]:
    """The innermost plain statement on each row."""
    found: dict[int, ast.stmt] = {}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.stmt) and not is_block(node):
            for row in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                found.setdefault(row, node)
    return found


def _values(m: Machine, statement: ast.stmt) -> Iterator[ast.expr]:
    """The tensors that a statement is about: its value, or what is handed over when that is none."""
    value = getattr(statement, "value", None)
    if not isinstance(value, ast.expr):
        return
    if value in m.states:
        yield value
    elif isinstance(value, ast.Call):
        yield from (argument for argument in value.args if argument in m.states)


def _cut(m: Machine, judge: Judge, state: Tensor) -> tuple[tuple[ast.AST, ...], bool] | None:
    """The places that cut a gradient which is to be kept, and whether that is later; None while it may be kept."""
    if state.requires_grad == NO:
        return tuple(m.cuts[number].node for number in sorted(state.cuts)), False
    if state.requires_grad != YES or m.cut_short or not judge.used_nodes:
        return None
    nodes = state.nodes | {node | 1 for node in state.nodes}
    if not nodes or any(node in judge.used_nodes or node in judge.escaped_nodes for node in nodes):
        return None
    later = tuple(info.node for info in m.cuts if _behind(m, info, nodes))
    return (later, True) if later else None


def _behind(m: Machine, info: CutInfo, nodes: frozenset[int]) -> bool:
    """Whether a cut takes its value from one of the nodes."""
    return any(node in nodes for node in reachable(m, frozenset(info.nodes)))
