"""Going through a tree: what stands in a node, without a look at fields that hold no nodes."""

import ast
from collections.abc import Collection, Iterator
from typing import Generic, TypeVar

_WITHOUT_NODES = frozenset({
    "ctx", "op", "ops", "type_ignores", "type_comment", "kind", "conversion", "tag", "id", "attr", "arg", "asname", "level",
    "module", "simple", "is_async", "lineno", "rest", "kwd_attrs", "str",
})  # fmt: skip
"""Fields that hold words, numbers, or operators and contexts, which all uses of them share."""
_NAMES = frozenset({"name", "names"})
"""Fields that hold nodes in some kinds and words in others."""
_NAMED_BY_NODES = (ast.Import, ast.ImportFrom)
_WITH_GAPS = frozenset({ast.Dict, ast.arguments})
"""Kinds whose lists have None among the nodes: `{**rest}`, and keywords without a default."""


def _parts(kind: type[ast.AST]) -> tuple[str, ...]:
    if kind in (ast.Constant, ast.MatchSingleton):
        return ()
    words = (
        _WITHOUT_NODES if kind in _NAMED_BY_NODES or kind.__name__ == "TypeAlias" else _WITHOUT_NODES | _NAMES
    )
    return tuple(name for name in kind._fields if name not in words)


def _kinds(kind: type[ast.AST]) -> Iterator[type[ast.AST]]:
    yield kind
    for inner in kind.__subclasses__():
        yield from _kinds(inner)


_PARTS: dict[type[ast.AST], tuple[str, ...]] = {kind: _parts(kind) for kind in _kinds(ast.AST)}


def inner(node: ast.AST) -> list[ast.AST]:
    """The nodes that stand directly in a node, in the order of its fields; without operators and contexts."""
    kind = type(node)
    found: list[ast.AST] = []
    for name in _PARTS[kind]:
        part = getattr(node, name, None)
        if type(part) is list:
            found += part
        elif part is not None:
            found.append(part)
    return [one for one in found if one is not None] if kind in _WITH_GAPS else found


def on_rows(tree: ast.Module, rows: Collection[int]) -> Iterator[ast.AST]:
    """The statements of a tree that stand on these rows, and all in them but other statements; in no particular order."""
    stack = inner(tree)
    while stack:
        one = stack.pop()
        if isinstance(one, ast.stmt):
            start = min([one.lineno, *(part.lineno for part in getattr(one, "decorator_list", ()))])
            end = one.end_lineno or start
            if not any(start <= row <= end for row in rows):
                continue
        yield one
        stack += inner(one)


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all that stands in it, in no particular order; without operators and contexts."""
    stack = [node]
    while stack:
        one = stack.pop()
        yield one
        stack += inner(one)


_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


def statements(tree: ast.Module) -> Iterator[ast.AST]:
    """All statements of a module, also those in functions and classes, the outer ones before the inner ones."""
    queue: list[ast.AST] = list(tree.body)
    for one in queue:
        yield one
        if type(one) in _BLOCKED:
            for name in _BLOCKS:
                queue += getattr(one, name, ())


_BLOCKED = frozenset(kind for kind in _kinds(ast.AST) if "body" in kind._fields or "cases" in kind._fields)
"""The kinds in which statements stand, or handlers and cases with statements of their own."""

T = TypeVar("T")


class Kept(Generic[T]):
    """What was once found in nodes, kept with them: it is gone when the tree is."""

    def __init__(self, name: str) -> None:
        """The name is for this use alone."""
        self._name = f"gradvet: {name}"

    def at(self, node: ast.AST) -> T | None:
        """What is kept with a node."""
        found: T | None = node.__dict__.get(self._name)
        return found

    def keep(self, node: ast.AST, found: T) -> T:
        """Keep it, and give it back."""
        node.__dict__[self._name] = found
        return found
