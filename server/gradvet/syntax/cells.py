"""A notebook's cells as one source: in their order, with what only IPython understands masked."""

import bisect
import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import accumulate, pairwise

from gradvet.syntax.lexical import lexemes
from gradvet.text import Edit, Source, Span, apply

_BETWEEN = "\n"
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_MAGIC = re.compile(
    r"(?P<margin>[ \t]*)(?P<escape>%{1,2}(?=[\w?])|!{1,2}|\?{1,2}(?=[\w%])|,(?=\w)|;(?=\w)|/(?=\w))"
)
_ASSIGNED = re.compile(r"[ \t]*[\w.,* \t\[\]\"']*?[^=!<>]=[ \t]*(?P<magic>[%!](?!=))")
_TIMED = re.compile(r"%(?:time|timeit|prun|memit|mprun|lprun)\b(?=[ \t]+(?!-)[^\s])")
_HELP = re.compile(r"[^\r\n#\"']*[\w\])]\?{1,2}[ \t]*\Z")
_CELL_MAGIC = re.compile(r"\s*%%(?P<name>\w+)")
_OF_PYTHON = frozenset({"capture", "debug", "memit", "prun", "python", "python3", "pypy", "time", "timeit"})
"""Cell magics whose cell is Python all the same."""
_OPENING, _CLOSING = "([{", ")]}"


class CellSource(Source):
    """The cells of a notebook one below another, each followed by a line end that belongs to none.

    Each cell is to parse by itself: a string that one leaves open does not reach into the next.
    """

    def __init__(self, path: str, cells: Sequence[str], names: Sequence[str] = ()) -> None:
        """Join the texts of the cells; without names, they are numbered."""
        super().__init__(path, "".join(f"{cell}{_BETWEEN}" for cell in cells))
        self.cells = tuple(cells)
        self.names = tuple(names) or tuple(f"cell {number}" for number in range(1, len(cells) + 1))

    @cached_property
    def starts(self) -> list[int]:
        """The offset at which each cell begins, and the end of the text."""
        return list(accumulate((len(cell) + len(_BETWEEN) for cell in self.cells), initial=0))

    def cell_at(self, offset: int) -> int:
        """The number, from 0, of the cell that an offset lies in."""
        last = max(len(self.cells) - 1, 0)
        return min(max(bisect.bisect_right(self.starts, offset) - 1, 0), last)

    def cell_span(self, number: int) -> Span:
        """From the first character of a cell to the end of its last."""
        start = self.starts[number]
        return Span(start, start + len(self.cells[number]))

    @cached_property
    def readable(self) -> str:
        """The text with magics, shell lines and cells in other languages masked, character for character."""
        return Source(self.path, "".join(f"{masked(cell)}{_BETWEEN}" for cell in self.cells)).readable

    @property
    def parts(self) -> Sequence[tuple[int, int]]:
        """The rows of each cell."""
        rows = [self.row_column(start)[0] for start in self.starts]
        return tuple((first, end) for first, end in pairwise(rows) if first < end)

    @property
    def texts(self) -> Sequence[Span]:
        """The cells."""
        return tuple(self.cell_span(number) for number in range(len(self.cells)))

    def settled(self, edits: Sequence[Edit]) -> list[Edit]:
        """The edits, each within its cell: what ends a cell's last line is not in the cell."""
        return [self._settled(edit) for edit in edits]

    def _settled(self, edit: Edit) -> Edit:
        span, text = edit.span, edit.text
        cell = self.cell_span(self.cell_at(span.start))
        if span.end <= cell.end:
            return edit
        if span.end > cell.end + len(_BETWEEN):
            raise ValueError("an edit reaches over several cells")
        if text.endswith("\n"):
            return Edit(Span(span.start, cell.end), text[:-1].removesuffix("\r"))
        before = self.text[cell.start : span.start]
        start = span.start
        if not text and before.endswith("\n"):  # a line that goes takes the end of the line above along
            start -= len("\r\n") if before.endswith("\r\n") else len("\n")
        return Edit(Span(start, cell.end), text)

    def edited(self, edits: Iterable[Edit]) -> "CellSource":
        """The notebook after edits, with as many cells."""
        mine: list[list[Edit]] = [[] for _ in self.cells]
        for edit in self.settled(list(edits)):
            number = self.cell_at(edit.span.start)
            start = self.starts[number]
            mine[number].append(Edit(Span(edit.span.start - start, edit.span.end - start), edit.text))
        cells = [apply(cell, own) for cell, own in zip(self.cells, mine, strict=True)]
        return CellSource(self.path, cells, self.names)

    def spot(self, offset: int) -> tuple[str, int, int]:
        """The cell's name, and row and column in it."""
        if not self.cells:
            return super().spot(offset)
        number = self.cell_at(offset)
        row, column = self.row_column(offset)
        return self.names[number], row - self.row_column(self.starts[number])[0] + 1, column

    def row_words(self, row: int) -> str:
        """The row of the cell that a row is in: `line 2 of cell 3`."""
        part, inside, _ = self.spot(self.line_starts[min(row, len(self.line_starts)) - 1])
        return f"line {inside} of {part}" if part else f"line {inside}"


def masked(cell: str) -> str:
    """A cell with what is not Python replaced by as many characters that do nothing."""
    magic = _CELL_MAGIC.match(cell)
    if magic is not None and magic["name"] not in _OF_PYTHON:
        return _blank(cell)
    pieces: list[str] = []
    start = magic.end() if magic else 0
    if magic is not None:
        start = _line_end(cell, start)
        pieces.append(_blank(cell[:start]))
    while start < len(cell):
        end = _escaped_end(cell, start)
        if end is None:
            end = _logical_end(cell, start)
            pieces.append(_python(cell[start:end]))
        else:
            pieces.append(_filled(cell[start:end]))
        start = end
    return "".join(pieces)


def _escaped_end(cell: str, start: int) -> int | None:
    """Where a line of IPython's own that begins here ends; None when it is Python."""
    if _MAGIC.match(cell, start) is None:
        return None
    end = _line_end(cell, start)
    while cell[start:end].rstrip("\r\n").endswith("\\") and end < len(cell):
        end = _line_end(cell, end)
    return end


def _logical_end(cell: str, start: int) -> int:
    """Where the line of Python that begins here ends: outside of brackets and strings, not behind a backslash."""
    depth = 0
    at = start
    spans = lexemes(cell, start)
    while True:
        lexeme = next(spans, None)
        stop = len(cell) if lexeme is None else lexeme.span.start
        while at < stop:
            end = min(_line_end(cell, at), stop)
            part = cell[at:end]
            depth = max(depth + sum(map(part.count, _OPENING)) - sum(map(part.count, _CLOSING)), 0)
            if depth == 0 and part.endswith(("\r", "\n")) and not part.rstrip("\r\n").endswith("\\"):
                return end
            # what IPython is asked may hold quotes that are none
            if depth == 0 and (magic := _ASSIGNED.match(cell, start)) is not None and magic.end() >= at:
                return _line_end(cell, at)
            at = end
        if lexeme is None:
            return len(cell)
        at = lexeme.span.end


def _python(line: str) -> str:
    """A logical line with the magic in it masked: `x = !ls`, `x = %time f()`, `tensor?`."""
    if (magic := _ASSIGNED.match(line)) is not None:
        at = magic.start("magic")
        if (timed := _TIMED.match(line, at)) is not None:
            return f"{line[:at]}{_blank(timed[0])}{line[timed.end() :]}"
        body = line.rstrip("\r\n")
        return f"{line[:at]}_{_blank(body[at + 1 :])}{line[len(body) :]}"
    body = line.rstrip("\r\n")
    return _filled(line) if _HELP.match(body) else line


def _filled(line: str) -> str:
    """A line of IPython's own as a statement that does nothing; what `%time` runs stays."""
    margin = line[: len(line) - len(line.lstrip(" \t"))]
    rest = line[len(margin) :]
    if (timed := _TIMED.match(rest)) is not None:
        return f"{margin}0;{_blank(timed[0][2:])}{rest[timed.end() :]}"
    return f"{margin}0{_blank(rest[1:])}"


def _blank(text: str) -> str:
    return "".join(character if character in "\r\n" else " " for character in text)


def _line_end(text: str, start: int) -> int:
    match = _LINE.match(text, start)
    return match.end() if match else len(text)
