"""What a node stands in. Parts of a tree are gone through when one asks about a node in them."""

import ast
from collections.abc import ItemsView
from typing import Any, TypeVar, overload

from gradvet.syntax.tree import inner

_Other = TypeVar("_Other")
_SPLIT = (ast.Module, ast.ClassDef, ast.If, ast.Try)
"""What is gone through by the statements in it, as it may be long."""


class Parents:
    """The node that each node of some trees stands in; the trees themselves stand in nothing."""

    def __init__(self, *trees: ast.Module) -> None:
        """Hold the trees; nothing is gone through yet."""
        self._trees = trees
        self._found: dict[ast.AST, ast.AST] = {}
        self._left: dict[int, list[ast.AST]] | None = None
        """By row, the statements that begin or go on there and were not gone through yet."""

    @overload
    def get(self, node: ast.AST | None) -> ast.AST | None: ...

    @overload
    def get(self, node: ast.AST | None, default: _Other) -> ast.AST | _Other: ...

    def get(self, node: ast.AST | None, default: Any = None) -> Any:
        """What a node stands in; `default` for what is in none of the trees."""
        if node is None or isinstance(node, ast.Module):
            return default
        found = self._found.get(node)
        if found is None:
            self._look_near(node)
            found = self._found.get(node)
        return default if found is None else found

    def __getitem__(self, node: ast.AST) -> ast.AST:
        """What a node stands in. Raises KeyError for what is in none of the trees."""
        found = self.get(node)
        if found is None:
            raise KeyError(node)
        return found

    def __contains__(self, node: ast.AST | None) -> bool:
        """Whether a node is in one of the trees, and not one itself."""
        return self.get(node) is not None

    def items(self) -> ItemsView[ast.AST, ast.AST]:
        """All nodes with what they stand in."""
        self._go_through_all()
        return self._found.items()

    def _look_near(self, node: ast.AST) -> None:
        """Go through what stands where the node says that it stands; through all, when it is not there."""
        if self._left is None:
            self._left = {}
            for tree in self._trees:
                self._split(tree, self._left)
        for statement in self._left.pop(getattr(node, "lineno", 0), ()):
            self._fill(statement)
        if node not in self._found:
            self._go_through_all()

    def _go_through_all(self) -> None:
        for tree in self._trees:
            self._fill(tree)
        self._left, self._trees = {}, ()

    def _split(self, holder: ast.AST, left: dict[int, list[ast.AST]]) -> None:
        """Note where each statement stands, and go through what else is in what holds it."""
        for part in inner(holder):
            self._found[part] = holder
            if isinstance(part, _SPLIT):
                self._split(part, left)
            elif isinstance(part, ast.ExceptHandler) or not isinstance(part, ast.stmt):
                self._fill(part)
            else:
                decorators = [one.lineno for one in getattr(part, "decorator_list", ())]
                for row in range(min([part.lineno, *decorators]), (part.end_lineno or part.lineno) + 1):
                    left.setdefault(row, []).append(part)

    def _fill(self, outermost: ast.AST) -> None:
        found = self._found
        stack = [outermost]
        while stack:
            node = stack.pop()
            parts = inner(node)
            for part in parts:
                found[part] = node
            stack += parts
