"""Makes a program small while something stays true of it."""

import ast
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice

Holds = Callable[[str], bool]
Edit = Callable[[], None]

_BLOCKS = ("body", "orelse", "finalbody", "handlers")
_PARTS = ("decorator_list", "keywords", "args", "elts", "generators", "ifs", "items", "targets")
_NEEDED = frozenset({"generators", "items", "targets"})
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_PLAIN = "torch.ones(3, 3)"


def shrink(text: str, holds: Holds, most_tries: int) -> str:
    """The smallest program found by taking statements out, unwrapping blocks and simplifying expressions.

    `holds` is asked of every candidate; of `text` itself it must be true.
    """
    search = _Search(ast.unparse(ast.parse(text)), holds, most_tries)
    before = None
    while before != search.text:
        before = search.text
        search.drop_statements()
        for edits in (_unwrapped, _without_parts, _smaller_expressions):
            search.try_each(edits)
    return search.text


class _Search:
    """The smallest text so far, and how many tries are left."""

    def __init__(self, text: str, holds: Holds, tries: int) -> None:
        self.text = text
        self._holds = holds
        self._left = tries
        self._asked: set[str] = set()

    def drop_statements(self) -> None:
        """Take out runs of statements, long ones first, from the end to the start."""
        size = max(len(list(_statements(ast.parse(self.text)))) // 2, 1)
        while size:
            at = len(list(_statements(ast.parse(self.text)))) - size
            while at > -size:
                self._take(_without(self.text, range(max(at, 0), at + size)))
                at -= size
            size //= 2

    def try_each(self, edits: Callable[[ast.Module], Iterator[Edit]]) -> None:
        """Try each edit once; after one that holds, go on with those that come after it."""
        number = 0
        while self._left > 0:
            tree = ast.parse(self.text)
            edit = next(islice(edits(tree), number, None), None)
            if edit is None:
                return
            edit()
            if not self._take(ast.unparse(tree)):
                number += 1

    def _take(self, candidate: str) -> bool:
        """Whether a candidate is smaller, or as small, and holds; then it is the text."""
        known = candidate in self._asked or candidate == self.text
        if known or len(candidate) > len(self.text) or self._left <= 0:
            return False
        self._asked.add(candidate)
        self._left -= 1
        if not _parses(candidate) or not self._holds(candidate):
            return False
        self.text = candidate
        return True


def _statements(node: ast.AST) -> Iterator[tuple[list[ast.stmt], ast.stmt]]:
    """Each statement with the list that it stands in, in the order of the text."""
    for name in _BLOCKS:
        block: list[ast.stmt] = getattr(node, name, [])
        for inner in list(block) if isinstance(block, list) else ():  # a lambda's body is no list
            if isinstance(inner, ast.stmt):
                yield block, inner
            yield from _statements(inner)


def _without(text: str, numbers: range) -> str:
    tree = ast.parse(text)
    for block, statement in list(_statements(tree))[numbers.start : numbers.stop]:
        block[:] = [other for other in block if other is not statement] or [ast.Pass()]
    return ast.unparse(tree)


def _unwrapped(tree: ast.Module) -> Iterator[Edit]:
    """The body of a block in the place of the block."""
    for block, statement in _statements(tree):
        for name in _BLOCKS:
            inner = getattr(statement, name, None)
            if inner and not isinstance(statement, _DEFINITIONS):
                at = block.index(statement)
                yield partial(block.__setitem__, slice(at, at + 1), inner)


def _without_parts(tree: ast.Module) -> Iterator[Edit]:
    """One decorator, argument, element or the like taken out."""
    for node in ast.walk(tree):
        for name in _PARTS:
            parts = getattr(node, name, None)
            if isinstance(parts, list) and len(parts) > (name in _NEEDED):
                for at in range(len(parts) - 1, -1, -1):
                    yield partial(parts.__delitem__, at)


def _smaller_expressions(tree: ast.Module) -> Iterator[Edit]:
    """An expression replaced by a plain one, or by one that stands inside it."""
    for node in ast.walk(tree):
        for name, value in ast.iter_fields(node):
            for at, old in enumerate(value if isinstance(value, list) else [value]):
                if isinstance(old, ast.expr) and not isinstance(
                    getattr(old, "ctx", None), (ast.Store, ast.Del)
                ):
                    for new in (ast.parse(_PLAIN, mode="eval").body, *_inside(old)):
                        yield partial(_put, node, name, at, new)


def _put(node: ast.AST, name: str, at: int, new: ast.expr) -> None:
    value = getattr(node, name)
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


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True
