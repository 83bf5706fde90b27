"""Blank the smallest blocks that will not parse, so that the rest does. Knows layout, not meaning."""

import ast
import re
import threading
import warnings
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from gradvet.syntax.lexical import skeleton
from gradvet.text import Source

MAX_BROKEN = 100  # a text with more broken blocks than this is not Python, or not of our time
_MAX_DEPTH = 90  # Python itself allows 100 levels of indentation
_MAX_TRIALS = 3  # levels on which both ends of a statement are tried; each heals its block twice
_MAX_HEADER = 80  # rows that the header of a compound statement may take

_CLAUSE = re.compile(r"(?:else|elif|except|finally)\b")
_COMPOUND = re.compile(r"@|(?:async|class|def|for|if|match|case|try|while|with)\b")
_INDENT = re.compile(r"[ \t\f]*")
_CODE = re.compile(r"[^\r\n]")
_OPENING, _CLOSING = "([{", ")]}"

# `catch_warnings` changes what the whole process does with warnings, so one thread at a time.
_QUIET = threading.Lock()

Unreadable = (SyntaxError, ValueError, RecursionError, MemoryError)


@dataclass(frozen=True, slots=True)
class Broken:
    """Rows that were blanked, `end` not among them, and what Python says of them."""

    first: int
    end: int
    error: Exception
    hangs_below: int | None = None
    """The row of a statement that does parse, when it is only that these rows may not hang below it."""


@dataclass(frozen=True, slots=True)
class Healed:
    """What is left of a text, offset for offset: spaces where blocks were dropped."""

    tree: ast.Module
    text: str
    broken: Sequence[Broken]


def read(text: str) -> ast.Module:
    """The tree of a text; raises one of `Unreadable`. Warnings about the user's text are not our business."""
    with _QUIET, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def heal(source: Source) -> Healed:
    """What can be read of a source that will not parse as a whole."""
    text, broken = blanked(source)
    try:
        return Healed(read(text), text, broken)
    except Unreadable as error:
        blank = _CODE.sub(" ", text)
        return Healed(read(""), blank, [Broken(1, len(source.line_starts) + 1, error)])


def blanked(source: Source, fine: Collection[str] = ()) -> tuple[str, Sequence[Broken]]:
    """A text with spaces for what will not parse, and what that is: nothing in a text that parses.

    `fine` are texts of whole statements that are known to parse, each with what stands behind it up to the next one.
    """
    text, starts = source.readable, [*source.line_starts, len(source.readable)]
    lines = [text[start:end] for start, end in pairwise(starts)]
    draft = _Draft(tuple(lines), lines, [_indent(line) for line in lines], fine)
    for first, end in source.parts:
        _heal_block(draft, _Block(first, end))
    return "".join(draft.lines), draft.broken


@dataclass(slots=True)
class _Draft:
    """The lines of a text, and what is left of them while blocks are blanked, with the indentation of each with code."""

    whole: Sequence[str]
    lines: list[str]
    indents: list[int | None]
    fine: Collection[str] = ()
    broken: list[Broken] = field(default_factory=list)

    def code(self, row: int) -> str:
        """What stands on a row, without the space around it."""
        return self.lines[row - 1].strip()

    def text(self, first: int, end: int) -> str:
        """The text of some rows."""
        return "".join(self.lines[first - 1 : end - 1])

    def rows(self, first: int, end: int) -> Iterator[int]:
        """Those of the rows that have code."""
        return (row for row in range(first, end) if self.indents[row - 1] is not None)

    def drop(self, first: int, end: int, error: Exception, hangs_below: int | None = None) -> None:
        """Blank some rows."""
        for row in range(first, end):
            self.lines[row - 1] = _blank(self.lines[row - 1])
            self.indents[row - 1] = None
        self.broken.append(Broken(first, end, error, hangs_below))

    def fill(self, block: "_Block") -> None:
        """Put a statement that does nothing on the first row of a block that was blanked: it may not be empty."""
        rows = range(block.first - 1, block.end - 1)
        first = next((at for at in rows if self.lines[at] is not self.whole[at]), None)
        if first is None:
            return
        width = len(self.whole[first].rstrip())
        fillers = (f"{block.margin}pass", f"{block.margin}0")
        filler = next((filler for filler in fillers if len(filler) <= width), "")
        self.lines[first] = _blank(self.whole[first], filler)
        self.indents[first] = _indent(self.lines[first])


@dataclass(frozen=True, slots=True)
class _Block:
    """Some rows that are to be statements of one indentation, and the header that makes them parse alone."""

    first: int
    end: int
    margin: str = ""
    header: str = ""
    depth: int = 0

    @property
    def indent(self) -> int:
        """How far its statements are indented."""
        return _width(self.margin)

    def error(self, draft: _Draft, first: int, end: int) -> Exception | None:
        """Why these rows will not stand as statements of the block; None when they will."""
        row = next(draft.rows(first, end), None)
        if row is not None and self.header and draft.indents[row - 1] != self.indent:
            return IndentationError(
                "unindent does not match any outer indentation level", ("", row, 1, "", row, 1)
            )
        if not self.header and draft.text(first, end) in draft.fine:
            return None
        # Rows before the header keep the line numbers in Python's message true.
        above = "\n" * (first - 1 - self.header.count("\n"))
        return error_of(self.header + draft.text(first, end)) and error_of(
            above + self.header + draft.text(first, end)
        )


def error_of(text: str) -> Exception | None:
    """What is wrong with a text; None when it parses."""
    try:
        read(text)
    except Unreadable as error:
        return error
    return None


def _heal_block(draft: _Draft, block: _Block) -> None:
    starts = [*_starts(draft, block), block.end]
    at = 0
    while at < len(starts) - 1:
        first, end = starts[at], starts[at + 1]
        error = block.error(draft, first, end)
        if error is not None and len(draft.broken) >= MAX_BROKEN:
            draft.drop(first, block.end, error)
            break
        if error is not None:
            joined = _closed(draft, starts[at:]) or end
            if joined == end or block.error(draft, first, joined) is not None:
                joined = _likelier(draft, block, first, (end, joined))
                _heal_statement(draft, block, first, joined, error)
            end = joined
        at = starts.index(end, at)
    if block.header and next(draft.rows(block.first, block.end), None) is None:
        draft.fill(block)


def _starts(draft: _Draft, block: _Block) -> Iterator[int]:
    """The rows on which a statement of the block starts, going by layout alone."""
    begun = decorated = continued = False
    for row in draft.rows(block.first, block.end):
        code = draft.code(row)
        outer = (draft.indents[row - 1] or 0) <= block.indent
        part = decorated or continued or code[0] in _CLOSING or _CLAUSE.match(code) is not None
        if not begun or (outer and not part):
            begun = True
            yield row
        if outer:
            decorated = code[0] == "@" or (decorated and code[0] in _CLOSING)
        continued = code.endswith("\\")


def _closed(draft: _Draft, starts: Sequence[int]) -> int | None:
    """The first of the later starts that lies in no string or bracket opened since the first one.

    Failing that, the first that lies in no string.
    """
    bare = skeleton(draft.text(starts[0], starts[-1]))
    outside = None
    depth = offset = 0
    for begin, end in pairwise(starts):
        size = len(draft.text(begin, end))
        part = bare[offset : offset + size]
        depth += sum(map(part.count, _OPENING)) - sum(map(part.count, _CLOSING))
        offset += size
        if part.endswith(("\r", "\n")):
            outside = outside or end
            if depth <= 0:
                return end
    return outside


def _likelier(draft: _Draft, block: _Block, first: int, ends: tuple[int, int]) -> int:
    """Where a broken statement ends: by layout, or where its strings do; whichever loses fewer lines."""
    near, far = ends
    if near == far or block.depth >= _MAX_TRIALS:
        return near
    losses = []
    for end in ends:
        trial = replace(draft, lines=list(draft.lines), indents=list(draft.indents), broken=[])
        _heal_statement(trial, block, first, end, SyntaxError())
        _heal_block(trial, replace(block, first=end, end=far))
        losses.append(sum(old is not new for old, new in zip(draft.lines, trial.lines, strict=True)))
    return far if losses[1] < losses[0] else near


def _heal_statement(draft: _Draft, block: _Block, first: int, end: int, error: Exception) -> None:
    """Heal inside a compound statement; keep the first line of another; or drop it."""
    known = len(draft.broken)
    rows = list(draft.rows(first, end))
    if block.depth < _MAX_DEPTH and _COMPOUND.match(draft.code(rows[0])):
        bodies = list(_bodies(draft, block, rows[0], end))
        if None not in bodies:
            for body in bodies:
                if body is not None:
                    _heal_block(draft, body)
            if block.error(draft, first, end) is None:
                return
    elif len(rows) > 1 and block.error(draft, first, rows[1]) is None:
        draft.drop(rows[1], end, error, rows[0])  # only what hangs below the first line is wrong
        return
    del draft.broken[known:]
    draft.drop(first, end, error)


def _bodies(draft: _Draft, block: _Block, first: int, end: int) -> Iterator[_Block | None]:
    """The body of each clause of a compound statement; None for a clause whose header will not parse."""
    begins = [first]
    begins += (
        row
        for row in draft.rows(first + 1, end)
        if draft.indents[row - 1] == block.indent and _CLAUSE.match(draft.code(row))
    )
    for begin, stop in zip(begins, [*begins[1:], end], strict=True):
        body = _body(draft, begin, stop)
        row = None if body is None else next(draft.rows(body, stop), None)
        margin = "" if row is None else _margin(draft.lines[row - 1])
        if body is None or _width(margin) <= block.indent:
            yield None
        else:
            header = "match 0:\n" if draft.code(begin).startswith("match ") else "if 1:\n"
            yield _Block(body, stop, margin, header, block.depth + 1)


def _body(draft: _Draft, first: int, end: int) -> int | None:
    """The row after the header that begins on `first`; None when there is no header that parses."""
    margin = _margin(draft.lines[first - 1])
    for row in range(first, min(end, first + _MAX_HEADER)):
        if skeleton(draft.lines[row - 1]).rstrip().endswith(":"):
            header = draft.text(first, row + 1)
            if any(error_of(text) is None for text in _completed(header, margin)):
                return row + 1
    return None


def _completed(header: str, margin: str) -> Iterator[str]:
    """A clause's header as part of some whole statement."""
    outer = "if 1:\n" if margin else ""
    body = f"{margin} pass\n"
    code = header.lstrip()
    if code.startswith("try"):
        yield f"{outer}{header}{body}{margin}finally:\n{body}"
    elif code.startswith(("except", "finally")):
        yield f"{outer}{margin}try:\n{body}{header}{body}"
    elif code.startswith(("else", "elif")):
        yield f"{outer}{margin}if 1:\n{body}{header}{body}"
        yield f"{outer}{margin}try:\n{body}{margin}except A:\n{body}{header}{body}"
    elif code.startswith("case"):
        yield f"match 0:\n{header}{body}"
    else:
        yield f"{outer}{header}{body}"
        yield f"{outer}{header}{margin} case _:\n{margin}  pass\n"


def _indent(line: str) -> int | None:
    """How far a line is indented; None when there is no code on it."""
    margin = _margin(line)
    return None if line[len(margin) : len(margin) + 1] in ("", "#", "\r", "\n") else _width(margin)


def _width(margin: str) -> int:
    """The columns of a margin, as Python counts them: tabs to eighths, and a form feed begins anew."""
    return len(margin.rpartition("\f")[2].expandtabs())


def _margin(line: str) -> str:
    match = _INDENT.match(line)
    return match[0] if match else ""


def _blank(line: str, filler: str = "") -> str:
    """The filler and spaces, as long as the line."""
    bare = line.rstrip("\r\n")
    return filler.ljust(len(bare)) + line[len(bare) :]
