"""What will not parse, taken as it last was: while a statement is being typed, its older self stands for it."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, NamedTuple

from gradvet.syntax.heal import Broken
from gradvet.syntax.parse import Module
from gradvet.syntax.place import first_row, is_block
from gradvet.syntax.same import same_part, same_program
from gradvet.syntax.tree import walk
from gradvet.text import Source

_BODIES = ("body", "orelse", "finalbody")
_CLAUSES = ("handlers", "cases")


@dataclass(slots=True)
class Completion:
    """Puts older statements among those that parse, just where something will not, and they are missing."""

    broken: list[Broken]
    """What nothing stands for yet."""
    former: list[tuple[Sequence[ast.stmt], Broken]] = field(default_factory=list)
    """What was put in one place, and what it stands for."""

    def completed(
        self, old: Sequence[ast.stmt], new: Sequence[ast.stmt], first: int, end: int
    ) -> list[ast.stmt]:
        """Statements on rows from `first` to before `end`, with those that are missing among them.

        What is missing within one of them is put there. The old ones stay as they are until `place` is called.
        """
        parsed = [one for one in new if not self._is_filler(one)]
        ends = [*(first_row(one) for one in parsed[1:]), end]
        found: list[ast.stmt] = []
        headless: list[ast.stmt] = []
        at = changed = 0
        for one, end_of_one in zip(parsed, ends, strict=False):
            older = _older(old, at, one)
            if older is None and any(other.hangs_below == one.lineno for other in self.broken):
                headless.append(one)
            elif older is None:
                changed += 1
            else:
                found += [] if changed else self._missing(old[at:older], first, first_row(one))
                self._complete(old[older], one, end_of_one)
                at, changed = older + 1, 0
            found.append(one)
            first = (one.end_lineno or one.lineno) + 1
        found += [] if changed else self._missing(old[at:], first, end)
        return [one for one in found if one not in headless or not self._is_stood_for(one)] or list(new)

    def place(self, before: Module, source: Source) -> list[ast.AST]:
        """Let what was put somewhere stand where that does for which it stands; gives the nodes of which the text is gone.

        The lines that say the same as `before` have their nodes still.
        """
        gone: list[ast.AST] = []
        for statements, broken in self.former:
            nodes: list[Any] = [node for one in statements for node in walk(one) if hasattr(node, "lineno")]
            code = [row for row in range(broken.first, broken.end) if source.line(row).strip()]
            rows = _rows_still_there(before.source, nodes, source, broken)
            lost = [row for row in code if row not in rows.values()] or [broken.first]
            starts = [rows.get(first_row(one), lost[0]) for one in statements]
            if starts != sorted(starts):  # no place is left for one between others
                rows, lost = {}, code
            first, last = source.line(lost[0]), source.line(lost[-1])
            columns = _bytes(first[: len(first) - len(first.lstrip())]), _bytes(last.rstrip())
            for node in reversed(nodes):  # what stands in a block before the block
                there = all(row in rows for row in range(node.lineno, node.end_lineno + 1))
                if there:
                    node.lineno, node.end_lineno = rows[node.lineno], rows[node.end_lineno]
                else:
                    node.lineno, node.end_lineno = lost[0], lost[-1]
                    node.col_offset, node.end_col_offset = columns
                if not there or node in before.gone:
                    gone.append(node)
                    _reach_around(node)
        return gone

    def _is_filler(self, statement: ast.stmt) -> bool:
        """Whether a statement only holds the place of what will not parse."""
        return isinstance(statement, ast.Pass | ast.Expr) and any(
            one.first <= statement.lineno < one.end for one in self.broken
        )

    def _is_stood_for(self, statement: ast.stmt) -> bool:
        """Whether an older statement stands for what hangs below this one, which then is but the begin of its head."""
        return any(broken.hangs_below == statement.lineno for _, broken in self.former)

    def _missing(self, old: Sequence[ast.stmt], first: int, end: int) -> Sequence[ast.stmt]:
        """Old statements, if they were where now something will not parse."""
        here = [one for one in self.broken if first <= one.first < end]
        if not old or not here:
            return ()
        for one in here:
            self.broken.remove(one)
        self.former.append((old, replace(here[0], end=here[-1].end)))
        return old

    def _complete(self, old: ast.stmt, new: ast.stmt, end: int) -> None:
        """Put what is missing into the bodies of a statement that is before row `end`."""
        if not is_block(new) or not any(new.lineno <= broken.first < end for broken in self.broken):
            return
        pairs = [pair for pair in zip(_bodies(old), _bodies(new), strict=True) if pair[1].statements]
        ends = [*(first_row(body.statements[0]) for _, body in pairs[1:]), end]
        first = new.lineno
        for (older, body), end_of_body in zip(pairs, ends, strict=True):
            completed = self.completed(older.statements, body.statements, first, end_of_body)
            last = body.statements[-1]
            first = (last.end_lineno or last.lineno) + 1
            body.statements[:] = completed


def _reach_around(block: Any) -> None:
    """Let a block reach as far as what stands in it."""
    for node in walk(block) if is_block(block) else ():
        end = getattr(node, "end_lineno", 0), getattr(node, "end_col_offset", 0)
        block.end_lineno, block.end_col_offset = max((block.end_lineno, block.end_col_offset), end)


def _rows_still_there(before: Source, nodes: Sequence[Any], source: Source, broken: Broken) -> dict[int, int]:
    """The rows of some nodes that stand, as they are, among those that will not parse, and where."""
    first, last = min(node.lineno for node in nodes), max(node.end_lineno for node in nodes)
    rows = range(broken.first, broken.end)
    old = [before.line(row) for row in range(first, last + 1)]
    new = [source.line(row) for row in rows]
    while new and (not new[-1].strip() or new[-1].lstrip()[0] == "#"):
        new.pop()
    found: dict[int, int] = {}
    for at in takewhile(lambda at: at < len(new) and old[at] == new[at], range(len(old))):
        found[first + at] = rows[at]
    for at in takewhile(lambda at: at < len(new) and old[~at] == new[~at], range(len(old) - len(found))):
        found[last - at] = rows[len(new) - 1 - at]
    return found


def _bytes(text: str) -> int:
    return len(text.encode(errors="replace"))


class _Body(NamedTuple):
    """A list of statements in another one, and the head of the clause that it is of."""

    statements: list[ast.stmt]
    head: tuple[object, ...]


def _bodies(node: ast.AST) -> Iterator[_Body]:
    """The lists of statements in a block, in their order, those that are empty as well."""
    for name in node._fields:
        part = getattr(node, name, None)
        if name in _BODIES and isinstance(part, list):
            yield _Body(part, ())
        elif name in _CLAUSES:
            for clause in part or ():
                yield _Body(
                    clause.body, tuple(getattr(clause, one, None) for one in clause._fields if one != "body")
                )


def _older(old: Sequence[ast.stmt], at: int, new: ast.stmt) -> int | None:
    """Which of the old statements, from one on, a new one is: the same, or else a block that begins in the same way."""
    later = range(at, len(old))
    found = next((n for n in later if same_program(old[n], new)), None)
    if found is None and is_block(new):
        found = next((n for n in later if _same_head(old[n], new)), None)
    return found


def _same_head(old: ast.stmt, new: ast.stmt) -> bool:
    """Whether two blocks say the same but for the statements in them, of which they have as many lists."""
    if type(old) is not type(new):
        return False
    names = [name for name in new._fields if name not in _BODIES and name not in _CLAUSES]
    one, other = [*_bodies(old)], [*_bodies(new)]
    return (
        len(one) == len(other)
        and all(same_part(getattr(old, name, None), getattr(new, name, None)) for name in names)
        and all(
            same_part(a, b)
            for x, y in zip(one, other, strict=True)
            for a, b in zip(x.head, y.head, strict=True)
        )
    )
