"""A tree that follows its text: after an edit only what was edited is read again, and the rest keeps its nodes."""

import ast
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise, takewhile
from typing import NamedTuple

from gradvet.syntax.former import Completion
from gradvet.syntax.heal import Broken, Unreadable, blanked, read
from gradvet.syntax.parse import Module, problem
from gradvet.syntax.place import first_row
from gradvet.syntax.same import same_program
from gradvet.syntax.tree import inner, walk
from gradvet.text import Source

_PLACE = ("lineno", "col_offset", "end_lineno", "end_col_offset")


def moved(before: Module, source: Source, *, same: bool = False) -> Module | None:
    """The module of a new text, with the nodes of an older one where the program is the same there.

    Those nodes stand where the new text has them from then on: `before` and what was told of it must not be
    asked for places any more. None, and nothing is moved, where what was edited cannot be told apart, and, when just
    the `same` program is wanted, for another one.
    """
    old, new = before.source, source
    if type(old) is not type(new) or "\0" in old.text or "\0" in new.text:
        return None
    body = before.tree.body
    rows = _rows_of_chunks(body)
    if not rows:
        return None
    text = new.readable
    edit = _edit(before, text, rows)
    broken: Sequence[Broken] = ()
    if edit is None:
        text, broken = blanked(new, _chunks(before, rows))
        edit = _edit(before, text, rows) if broken else None
    if edit is None:
        return None
    head, edited, tail = _divided(body, rows, edit.first, edit.last)
    down = len(new.line_starts) - len(old.line_starts)
    completion = Completion(list(broken))
    end = first_row(tail[0]) + down if tail else len(new.line_starts) + 1
    there = edit.tree.body
    if broken:
        there = completion.completed(edited, there, rows[edit.first] if edit.first else 1, end)
    ahead, behind = _alike(edited, there)
    if same and not broken and not ahead + behind == len(edited) == len(there):
        return None
    gone = completion.place(before, new)
    _shift(tail, down)
    tree = ast.Module([*head, *_taken_over(edited, there, ahead, behind), *tail], [])
    problems = tuple(problem(new, one) for one in broken)
    former = [one for statements, _ in completion.former for one in statements]
    return Module(new, tree, problems, text, former, gone)


class _Edit(NamedTuple):
    """The chunks of statements that an edit touched, the first and the last, and what stands there now."""

    first: int
    last: int
    tree: ast.Module


def _edit(before: Module, text: str, rows: Sequence[int]) -> _Edit | None:
    """What an edit did to a module whose statements begin on some rows; None where what it touched will not parse."""
    old = before.healed
    starts = [0, *(before.source.line_starts[row - 1] for row in rows[1:]), len(old)]
    first, last = _touched(old, text, starts[:-1])
    for statement in before.former:  # whether anything still stands for it is to be seen
        at = bisect_right(rows, statement.lineno) - 1
        first, last = min(first, at), max(last, at)
    begin, end = starts[first], len(text) - (len(old) - starts[last + 1])
    top = 1 if first == 0 else rows[first]
    try:
        return _Edit(first, last, read("\n" * (top - 1) + text[begin:end]))
    except Unreadable:
        return None


def _chunks(module: Module, rows: Sequence[int]) -> frozenset[str]:
    """The texts of a module's statements, which begin on some rows: each with what stands behind it up to the next."""
    starts = [*(module.source.line_starts[row - 1] for row in rows), len(module.healed)]
    return frozenset(module.healed[start:end] for start, end in pairwise(starts))


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
    ahead = len(list(takewhile(lambda pair: same_program(*pair), zip(old, new, strict=False))))
    last = zip(reversed(old[ahead:]), reversed(new[ahead:]), strict=False)
    return ahead, len(list(takewhile(lambda pair: same_program(*pair), last)))


def _taken_over(old: Sequence[ast.stmt], new: Sequence[ast.stmt], ahead: int, behind: int) -> list[ast.stmt]:
    """New statements, and in the place of those that say the same as an old one that old one, where it is now."""
    kept = (*old[:ahead], *old[len(old) - behind :])
    for one, there in zip(kept, (*new[:ahead], *new[len(new) - behind :]), strict=True):
        _put(one, there)
    return [*old[:ahead], *new[ahead : len(new) - behind], *old[len(old) - behind :]]


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
