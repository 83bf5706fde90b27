"""Makes a program small while something stays true of it."""

import ast
from collections.abc import Callable, Iterator

_BLOCKS = ("body", "orelse", "finalbody")


def shrink(text: str, holds: Callable[[str], bool], most_tries: int = 2000) -> str:
    """The smallest program found, by taking statements out, unwrapping blocks and simplifying expressions.

    `holds` is asked of every candidate, and of `text` itself it must be true.
    """
    text = ast.unparse(ast.parse(text))
    tries = 0
    progress = True
    while progress:
        progress = False
        for candidate in candidates(text):
            tries += 1
            if tries > most_tries:
                return text
            if holds(candidate):
                text, progress = candidate, True
                break
    return text


def candidates(text: str) -> Iterator[str]:
    """Programs that are a step smaller, the boldest steps first."""
    tree = ast.parse(text)
    for make in (_without_statements, _unwrapped, _without_parts, _smaller_expressions):
        for candidate in make(tree):
            if candidate != text and _parses(candidate):
                yield candidate


def _without_statements(tree: ast.Module) -> Iterator[str]:
    """Without a run of statements: halves first, single ones last; later ones first."""
    blocks = list(_statement_lists(tree))
    widest = max((len(block) for block in blocks), default=0)
    size = max(widest // 2, 1)
    while True:
        for block in blocks:
            for start in range(len(block) - size, -1, -size):
                kept = block[:]
                block[start : start + size] = [] if size < len(block) else [ast.Pass()]
                yield ast.unparse(tree)
                block[:] = kept
        if size == 1:
            return
        size //= 2


def _unwrapped(tree: ast.Module) -> Iterator[str]:
    """With the body of a block in the place of the block."""
    for block in _statement_lists(tree):
        for at, statement in enumerate(block):
            for name in _BLOCKS:
                inner = getattr(statement, name, None)
                if inner and not isinstance(statement, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
                    block[at : at + 1] = inner
                    yield ast.unparse(tree)
                    block[at : at + len(inner)] = [statement]


def _without_parts(tree: ast.Module) -> Iterator[str]:
    """Without one decorator, argument, element or the like."""
    for node in ast.walk(tree):
        for name in ("decorator_list", "keywords", "args", "elts", "items", "targets", "generators", "ifs"):
            parts = getattr(node, name, None)
            if not isinstance(parts, list) or (len(parts) < 2 and name in ("items", "targets", "generators")):
                continue
            for at in range(len(parts) - 1, -1, -1):
                part = parts.pop(at)
                yield ast.unparse(tree)
                parts.insert(at, part)


def _smaller_expressions(tree: ast.Module) -> Iterator[str]:
    """With an expression replaced by one that stands inside it."""
    for node in ast.walk(tree):
        for name, value in ast.iter_fields(node):
            values = value if isinstance(value, list) else [value]
            for at, old in enumerate(values):
                if not isinstance(old, ast.expr) or isinstance(
                    getattr(old, "ctx", None), (ast.Store, ast.Del)
                ):
                    continue
                for new in _inside(old):
                    _put(node, name, value, at, new)
                    yield ast.unparse(tree)
                _put(node, name, value, at, old)


def _put(node: ast.AST, name: str, value: object, at: int, new: ast.expr) -> None:
    if isinstance(value, list):
        value[at] = new
    else:
        setattr(node, name, new)


def _inside(node: ast.expr) -> Iterator[ast.expr]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield child
        elif isinstance(child, ast.keyword):
            yield child.value


def _statement_lists(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        for name in (*_BLOCKS, "handlers"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                yield block


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True
