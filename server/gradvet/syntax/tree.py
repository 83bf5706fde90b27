"""Going through a tree: what stands in a node, without a look at fields that hold no nodes."""

import ast
from collections.abc import Iterator

_WITHOUT_NODES = frozenset({"ctx", "op", "ops", "type_ignores", "type_comment", "kind", "conversion", "tag"})
"""Fields that hold words, numbers, or operators and contexts, which all uses of them share."""
_WORDS = frozenset({"id", "attr", "arg", "asname", "level", "module", "simple", "is_async", "lineno", "rest"})


def _parts(kind: type[ast.AST]) -> tuple[str, ...]:
    if kind in (ast.Constant, ast.Global, ast.Nonlocal, ast.MatchSingleton):
        return ()
    return tuple(name for name in kind._fields if name not in _WITHOUT_NODES | _WORDS)


def _kinds(kind: type[ast.AST]) -> Iterator[type[ast.AST]]:
    yield kind
    for inner in kind.__subclasses__():
        yield from _kinds(inner)


_PARTS: dict[type[ast.AST], tuple[str, ...]] = {kind: _parts(kind) for kind in _kinds(ast.AST)}


def inner(node: ast.AST) -> list[ast.AST]:
    """The nodes that stand directly in a node, in the order of its fields; without operators and contexts."""
    found: list[ast.AST] = []
    for name in _PARTS[type(node)]:
        part = getattr(node, name, None)
        if type(part) is list:
            found += [item for item in part if isinstance(item, ast.AST)]
        elif isinstance(part, ast.AST):
            found.append(part)
    return found


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all that stands in it, in no particular order; without operators and contexts."""
    stack = [node]
    while stack:
        one = stack.pop()
        yield one
        stack += inner(one)
