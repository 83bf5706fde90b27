"""Rewrites a tree so that every loaded expression passes through a recorder. Nothing else changes.

`E` becomes `__gradvet_see__(number, E)`, with the position of `E`. No statement is added, so lines in
tracebacks, docstrings and `from __future__` stay what they were. Left alone are callees by name
(`super()` and `locals()` look at who calls them), decorators, annotations and patterns.
"""

import ast
import sys
from typing import Any

from tools.probe.observed import Range

SEE = "__gradvet_see__"

_NEVER_TENSORS = (ast.Constant, ast.Lambda, ast.Slice, ast.Starred, ast.JoinedStr, ast.FormattedValue)
# Before Python 3.12 the parser gives wrong places to what stands inside an f-string.
_F_STRING_PLACES = sys.version_info >= (3, 12)


def place(node: ast.expr) -> Range:
    """Where an expression stands."""
    return Range(
        node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
    )


class Instrument(ast.NodeTransformer):
    """Rewrites one tree; `places[number]` is where the expression with that number stands."""

    def __init__(self) -> None:
        """Start with no expression seen."""
        self.places: list[Range] = []

    def visit(self, node: ast.AST) -> Any:
        """The node with its parts rewritten, inside a call of the recorder if it is a loaded expression."""
        if not isinstance(node, ast.expr) or not _watched(node):
            return super().visit(node)
        number = len(self.places)
        self.places.append(place(node))
        return _see(number, super().visit(node), node)

    def visit_Call(self, node: ast.Call) -> ast.Call:
        """The callee stays bare, but what its attribute is taken of is seen."""
        if isinstance(node.func, ast.Attribute):
            node.func.value = self.visit(node.func.value)
        elif not isinstance(node.func, ast.Name):
            node.func = self.visit(node.func)
        node.args = [self.visit(argument) for argument in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        """What stands inside an f-string, where its place can be told."""
        return self.generic_visit(node) if _F_STRING_PLACES else node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Body and defaults, not decorators and annotations."""
        self.visit(node.args)
        return self._body(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        """Body and defaults, not decorators and annotations."""
        self.visit(node.args)
        return self._body(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        """An argument holds nothing but an annotation."""
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """Target and value, not the annotation."""
        node.target = self.visit(node.target)
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """The body; bases and decorators are no tensors."""
        return self._body(node)

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        """Guard and body; the pattern must stay a pattern."""
        if node.guard is not None:
            node.guard = self.visit(node.guard)
        return self._body(node)

    def visit_TypeAlias(self, node: ast.AST) -> ast.AST:
        """A type alias holds no tensors."""
        return node

    def _body(self, node: Any) -> ast.AST:
        node.body = [self.visit(statement) for statement in node.body]
        return node  # type: ignore[no-any-return]


def _watched(node: ast.expr) -> bool:
    stored = isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del))
    return not stored and not isinstance(node, _NEVER_TENSORS)


def _see(number: int, value: ast.expr, at: ast.expr) -> ast.Call:
    call = ast.Call(ast.Name(SEE, ast.Load()), [ast.Constant(number), value], [])
    for node in (call, call.func, call.args[0]):
        ast.copy_location(node, at)
    return call
