"""Takes out of a program what raises, so that the rest of it is run."""

import ast
from collections.abc import Callable

from tools.probe.observed import Observation, Program

_MOST_TRIES = 40


def repair(program: Program, probe: Callable[[Program], Observation]) -> tuple[Program, Observation]:
    """The program without the statements that raise, and what it showed; it may still end early."""
    observation = probe(program)
    for _ in range(_MOST_TRIES):
        if observation.failure is None or observation.failure.row is None:
            break
        text = without_row(program.text, observation.failure.row)
        program = Program(text, program.path, program.folder)
        observation = probe(program)
    return program, observation


def without_row(text: str, row: int) -> str:
    """The program without the innermost statement that stands on a row; no other line moves."""
    lines = text.split("\n")
    statement = _innermost(ast.parse(text), row)
    if statement is None:
        return text
    indent = " " * statement.col_offset
    decorators = [node.lineno for node in getattr(statement, "decorator_list", ())]
    first, end = min([statement.lineno, *decorators]) - 1, statement.end_lineno or statement.lineno
    lines[first:end] = [f"{indent}pass"] + [""] * (end - first - 1)
    return "\n".join(lines)


def _innermost(tree: ast.Module, row: int) -> ast.stmt | None:
    found: ast.stmt | None = None
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and node.lineno <= row <= (node.end_lineno or node.lineno):
            found = node  # walk goes from the outside in
    return found
