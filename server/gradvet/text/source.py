"""One text, frozen, with its lines. The only place where columns become offsets and back."""

import bisect
import re
from collections.abc import Iterable, Sequence
from functools import cached_property

from gradvet.text.edit import Edit, apply
from gradvet.text.span import Span

_LINE_END = re.compile(r"\r\n|\r|\n")
_BYTE_ORDER_MARK = "\ufeff"
_UNREADABLE = re.compile("[\x00\ud800-\udfff]")


class Source:
    """The text of one file.

    Inside Gradvet a position is an offset in code points into `text`. `ast` counts columns in UTF-8
    bytes, people count code points from 1; both meet offsets only here. Lines end at a newline, a
    carriage return or both and nowhere else, as they do for Python and for the Language Server Protocol.
    """

    def __init__(self, path: str, text: str) -> None:
        """Keep the text as it is; `path` is only a name."""
        self.path = path
        self.text = text

    @cached_property
    def line_starts(self) -> list[int]:
        """The offset at which each line begins."""
        return [0, *(match.end() for match in _LINE_END.finditer(self.text))]

    @cached_property
    def line_end(self) -> str:
        """How the text ends its first line, and so a line that is added to it."""
        match = _LINE_END.search(self.text)
        return match[0] if match else "\n"

    @cached_property
    def readable(self) -> str:
        """The text as a parser of UTF-8 can take it, character for character as long as `text`.

        A byte order mark becomes a form feed, which is the one character that a line may begin with
        without being indented. Nulls become spaces, and surrogates question marks.
        """
        text = self.text
        if text.startswith(_BYTE_ORDER_MARK):
            text = "\f" + text[1:]
        return _UNREADABLE.sub(lambda match: " " if match[0] == "\0" else "?", text)

    @cached_property
    def _ascii(self) -> bool:
        return self.readable.isascii()

    @property
    def parts(self) -> Sequence[tuple[int, int]]:
        """Rows, the last of each not among them, that parse or fail to parse whatever the others do."""
        return ((1, len(self.line_starts) + 1),)

    @property
    def texts(self) -> Sequence[Span]:
        """The texts that it is made of, each of which can be edited by itself."""
        return (Span(0, len(self.text)),)

    def settled(self, edits: Sequence[Edit]) -> Sequence[Edit]:
        """The edits so that each lies in one of the texts; raises ValueError for one that cannot."""
        return edits

    def edited(self, edits: Iterable[Edit]) -> "Source":
        """The source after disjoint edits; raises ValueError where they meet."""
        return Source(self.path, apply(self.text, edits))

    def line(self, row: int) -> str:
        """The text of a line (rows from 1) without its end; empty when there is no such line."""
        return self.text[self._line(row)].rstrip("\r\n")

    def _line(self, row: int) -> slice:
        if not 1 <= row <= len(self.line_starts):
            return slice(0, 0)
        end = self.line_starts[row] if row < len(self.line_starts) else len(self.text)
        return slice(self.line_starts[row - 1], end)

    def offset(self, row: int, utf8_column: int) -> int:
        """The offset of an `ast` position in the readable text: rows from 1, columns in UTF-8 bytes from 0.

        A row past the end gives the end, as the positions of syntax errors may lie there.
        """
        if row > len(self.line_starts):
            return len(self.text)
        start = self.line_starts[row - 1]
        if self._ascii:
            return start + utf8_column
        line = self.readable[self._line(row)]
        if line.isascii():
            return start + utf8_column
        return start + len(line.encode()[:utf8_column].decode(errors="ignore"))

    def span(self, node: object) -> Span:
        """The span of an `ast` node that has a position."""
        return Span(
            self.offset(node.lineno, node.col_offset),  # type: ignore[attr-defined]
            self.offset(node.end_lineno, node.end_col_offset),  # type: ignore[attr-defined]
        )

    def __getitem__(self, span: Span) -> str:
        """The text under a span."""
        return self.text[span.start : span.end]

    def row_column(self, offset: int) -> tuple[int, int]:
        """Row and column as people count them, both from 1, columns in code points."""
        row = bisect.bisect_right(self.line_starts, offset)
        return row, offset - self.line_starts[row - 1] + 1

    def spot(self, offset: int) -> tuple[str, int, int]:
        """The part of the text (empty where it has none), and row and column in it as people count them."""
        return "", *self.row_column(offset)

    def row_words(self, row: int) -> str:
        """A row of the text as a message names it: `line 12`."""
        return f"line {row}"
