"""Edits that add a statement beside another one, or move one, with its lines and comments and nothing else.

Each function gives no edits where it cannot be sure of the place.
"""

import ast

from gradvet.syntax.parse import Module
from gradvet.syntax.place import is_block
from gradvet.text import Edit, Span


def insert(module: Module, node: ast.AST, text: str, *, after: bool) -> list[Edit]:
    """Add a statement before or after the one that a node is in."""
    lines = _lines(module, module.statement(node))
    if lines is None:
        return []
    return [_placed(module, lines, _margin(module, lines) + text + module.source.line_end, after=after)]


def move(module: Module, node: ast.AST, anchor: ast.AST, *, after: bool) -> list[Edit]:
    """Move a statement to before or after another one of the same block."""
    statement, target = module.statement(node), module.statement(anchor)
    lines, place = _lines(module, statement), _lines(module, target)
    if lines is None or place is None or statement is target or not _together(module, statement, target):
        return []
    text = module.source[lines]
    if not text.endswith(("\r", "\n")):
        text += module.source.line_end
    return [Edit(lines, ""), _placed(module, place, text, after=after)]


def _together(module: Module, one: ast.stmt, other: ast.stmt) -> bool:
    """Whether two statements stand in the same block."""
    holder = module.parents.get(one)
    if holder is None:
        return False
    blocks = (getattr(holder, name, None) for name in ("body", "orelse", "finalbody"))
    return any(isinstance(block, list) and one in block and other in block for block in blocks)


def _lines(module: Module, statement: ast.stmt) -> Span | None:
    """The whole lines of a plain statement; None when something else stands on them."""
    source = module.source
    if is_block(statement):
        return None
    own = source.span(statement)
    start = source.line_starts[statement.lineno - 1]
    last = statement.end_lineno or statement.lineno
    end = source.line_starts[last] if last < len(source.line_starts) else len(source.text)
    behind = source.text[own.end : end].strip()
    if source.text[start : own.start].strip() or (behind and not behind.startswith("#")):
        return None
    return Span(start, end)


def _margin(module: Module, lines: Span) -> str:
    text = module.source[lines]
    return text[: len(text) - len(text.lstrip())]


def _placed(module: Module, lines: Span, text: str, *, after: bool) -> Edit:
    at = lines.end if after else lines.start
    before = "" if not after or module.source.text[:at].endswith(("\r", "\n")) else module.source.line_end
    return Edit(Span(at, at), before + text)
