"""The span to show for a node: all of an expression, but only the head of a block."""

import ast
import re
from collections.abc import Iterator

from gradvet.syntax.parse import Module
from gradvet.text import Span

_DEFINITION = re.compile(r"(?:async[ \t\f\\\r\n]+)?(?:def|class)[ \t\f\\\r\n]+\w+")


def first_row(statement: ast.stmt) -> int:
    """The row on which a statement begins, with its decorators."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(decorator.lineno for decorator in decorators)])


def place(module: Module, node: ast.AST) -> Span:
    """Where to point for a node, whether or not `ast` gives it a position."""
    if isinstance(node, ast.Module):
        return _first_line(module)
    if not hasattr(node, "lineno"):
        inside = next((child for child in ast.walk(node) if hasattr(child, "lineno")), None)
        if inside is not None:
            return place(module, inside)
        above = module.parents.get(node) or _first_holder(module, node)
        return _first_line(module) if above is None else place(module, above)
    span = module.source.span(node)
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        match = _DEFINITION.match(module.source.text, span.start)
        return Span(span.start, match.end()) if match else span
    if is_block(node):
        return _head(module, node, span)
    return span


def _first_holder(module: Module, node: ast.AST) -> ast.AST | None:
    """What an operator stands in: Python makes one `+` for all of a tree, so it is the first that has it."""
    return next(
        (one for one in ast.walk(module.tree) if any(part is node for part in ast.iter_child_nodes(one))),
        None,
    )


def is_block(node: ast.AST) -> bool:
    """Whether other statements hang below this one."""
    return isinstance(node, (ast.stmt, ast.ExceptHandler)) and (
        hasattr(node, "body") or hasattr(node, "cases")
    )


def _head(module: Module, node: ast.AST, span: Span) -> Span:
    """From the keyword of a block to its colon."""
    ends = [module.source.span(part).end for part in _before_body(node) if hasattr(part, "end_lineno")]
    colon = module.bare.find(":", max(ends, default=span.start))
    return Span(span.start, len(module.bare[:colon].rstrip()))


def _before_body(node: ast.AST) -> Iterator[ast.AST]:
    for name, value in ast.iter_fields(node):
        if name in ("body", "orelse", "handlers", "finalbody", "cases"):
            continue
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, ast.AST):
                yield from ast.walk(part)


def _first_line(module: Module) -> Span:
    return Span(0, len(module.source.line(1).rstrip()))
