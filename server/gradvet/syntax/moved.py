"""A tree that follows its text: after an edit only what was edited is read again, and the rest keeps its nodes."""

import ast
from bisect import bisect_right
from collections.abc import Sequence
from itertools import takewhile

from gradvet.syntax.heal import Unreadable, read
from gradvet.syntax.parse import Module
from gradvet.syntax.place import first_row
from gradvet.syntax.tree import inner, walk
from gradvet.text import Source

_PLACE = ("lineno", "col_offset", "end_lineno", "end_col_offset")


def moved(before: Module, source: Source, *, same: bool = False) -> Module | None:
    """The module of a new text, with the nodes of an older one where the program is the same there.

    Those nodes stand where the new text has them from then on: `before` and what was told of it must not be
    asked for places any more. None, and nothing is moved, where one of the texts does not parse, and, when just
    the `same` program is wanted, for another one.
    """
    old, new = before.source, source
    if type(old) is not Source or type(new) is not Source or before.problems or "\0" in new.text:
        return None
    body = before.tree.body
    rows = _rows_of_chunks(body)
    if not rows:
        return None
    starts = [0, *(old.line_starts[row - 1] for row in rows[1:])]
    first, last = _touched(old.readable, new.readable, starts)
    ends = [*starts[1:], len(old.readable)]
    begin, end = starts[first], len(new.readable) - (len(old.readable) - ends[last])
    top = 1 if first == 0 else rows[first]
    try:
        tree = read("\n" * (top - 1) + new.readable[begin:end])
    except Unreadable:
        return None
    head, edited, tail = _divided(body, rows, first, last)
    ahead, behind = _alike(edited, tree.body)
    if same and not ahead + behind == len(edited) == len(tree.body):
        return None
    _shift(tail, len(new.line_starts) - len(old.line_starts))
    return Module(new, ast.Module([*head, *_taken_over(edited, tree.body, ahead, behind), *tail], []))


def _rows_of_chunks(body: Sequence[ast.stmt]) -> list[int]:
    """The rows on which the statements of a module begin, those on one row as one."""
    return list(dict.fromkeys(map(first_row, body)))


def _touched(old: str, new: str, starts: Sequence[int]) -> tuple[int, int]:
    """The first and last chunk that an edit may have changed: next to its ends, too, things may have met."""
    same = _common(old, new)
    most = min(len(old), len(new)) - same
    after = _common_end(old, new, most)
    return (
        max(bisect_right(starts, max(same - 1, 0)) - 1, 0),
        max(bisect_right(starts, len(old) - after) - 1, 0),
    )


def _common(a: str, b: str) -> int:
    """How many characters two texts have in common at their start."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _common_end(a: str, b: str, most: int) -> int:
    """How many characters two texts have in common at their end, no more than so many."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if a[len(a) - middle : len(a) - low] == b[len(b) - middle : len(b) - low]:
            low = middle
        else:
            high = middle - 1
    return low


def _divided(
    body: Sequence[ast.stmt], rows: Sequence[int], first: int, last: int
) -> tuple[Sequence[ast.stmt], Sequence[ast.stmt], Sequence[ast.stmt]]:
    """The statements before, in and after some chunks."""
    here = [at for at, statement in enumerate(body) if rows[first] <= first_row(statement) <= rows[last]]
    return body[: here[0]], body[here[0] : here[-1] + 1], body[here[-1] + 1 :]


def _shift(statements: Sequence[ast.stmt], down: int) -> None:
    """Move statements down by so many rows."""
    if not down:
        return
    for statement in statements:
        for node in walk(statement):
            if hasattr(node, "lineno"):
                node.lineno += down
                node.end_lineno += down  # type: ignore[attr-defined]


def _alike(old: Sequence[ast.stmt], new: Sequence[ast.stmt]) -> tuple[int, int]:
    """How many statements say the same at the start of both, and how many of the others at the end."""
    ahead = len(list(takewhile(lambda pair: _same(*pair), zip(old, new, strict=False))))
    last = zip(reversed(old[ahead:]), reversed(new[ahead:]), strict=False)
    return ahead, len(list(takewhile(lambda pair: _same(*pair), last)))


def _taken_over(old: Sequence[ast.stmt], new: Sequence[ast.stmt], ahead: int, behind: int) -> list[ast.stmt]:
    """New statements, and in the place of those that say the same as an old one that old one, where it is now."""
    kept = (*old[:ahead], *old[len(old) - behind :])
    for one, there in zip(kept, (*new[:ahead], *new[len(new) - behind :]), strict=True):
        _put(one, there)
    return [*old[:ahead], *new[ahead : len(new) - behind], *old[len(old) - behind :]]


def _same(old: ast.AST, new: ast.AST) -> bool:
    """Whether two trees are of the same program, wherever they stand and whatever is said of it in docstrings."""
    if type(old) is not type(new):
        return False
    if _is_docstring(old) and _is_docstring(new):
        return True
    for name in old._fields:
        a, b = getattr(old, name, None), getattr(new, name, None)
        if isinstance(a, ast.AST):
            if not isinstance(b, ast.AST) or not _same(a, b):
                return False
        elif isinstance(a, list):
            if not isinstance(b, list) or len(a) != len(b) or not all(map(_same_part, a, b)):
                return False
        elif type(a) is not type(b) or (a != b and a is not b) or repr(a) != repr(b):
            return False
    return True


def _same_part(a: object, b: object) -> bool:
    return _same(a, b) if isinstance(a, ast.AST) and isinstance(b, ast.AST) else a == b


def _is_docstring(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _put(old: ast.AST, new: ast.AST) -> None:
    """Put a tree where one that says the same stands, with what that says in its docstrings."""
    pairs = [(old, new)]
    while pairs:
        one, there = pairs.pop()
        for name in _PLACE:
            if hasattr(there, name):
                setattr(one, name, getattr(there, name))
        if isinstance(one, ast.Constant):
            one.value = there.value  # type: ignore[attr-defined]
        pairs += zip(inner(one), inner(there), strict=True)
