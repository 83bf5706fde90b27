"""Where comments and strings stand in a text. Never fails, whatever the text is."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from gradvet.text import Span

_START = re.compile(r"#[^\r\n]*|\"\"\"|'''|\"|'")
_PREFIX = re.compile(r"(?<!\w)[A-Za-z]{1,2}\Z")
_WITH_FIELDS = {"f", "fr", "rf", "t", "tr", "rt"}
_LINE_END = "\r\n"
# What can matter inside a string: an escape, a bracket of a field, a quote, the end of the line.
_BODY = re.compile(r"\\N\{|\\\r\n|\\.|\{\{|\}\}|[{}\"'\r\n]", re.DOTALL)
_PLAIN_BODY = re.compile(r"\\\r\n|\\.|[\"'\r\n]", re.DOTALL)
_FIELD = re.compile(r"#[^\r\n]*|\"\"\"|'''|[\"'(\[{)\]}:]")
_BRACE = re.compile(r"[{}]")


@dataclass(frozen=True, slots=True)
class Lexeme:
    """A comment or a string literal with its prefix and quotes; `closed` is false when its end is missing."""

    span: Span
    comment: bool
    closed: bool = True


def lexemes(text: str, start: int = 0) -> Iterator[Lexeme]:
    """Comments and strings from `start` on, in order. `start` must not lie inside one.

    An f-string is one string, with all that stands in its fields. A triple-quoted string without an end
    takes the rest of the text, any other without an end the rest of its line.
    """
    while (match := _START.search(text, start)) is not None:
        if match[0][0] == "#":
            start = match.end()
            yield Lexeme(Span(match.start(), start), comment=True)
            continue
        begin, end = _string(text, match.start(), match[0])
        closed = end is not None
        start = end if end is not None else _open_end(text, match.end(), match[0])
        yield Lexeme(Span(begin, start), comment=False, closed=closed)


def skeleton(text: str) -> str:
    """The text with spaces for comments and `_` for the characters of strings: only code can be seen."""
    pieces: list[str] = []
    done = 0
    for lexeme in lexemes(text):
        span = lexeme.span
        pieces += (text[done : span.start], (" " if lexeme.comment else "_") * (span.end - span.start))
        done = span.end
    return "".join((*pieces, text[done:]))


def _open_end(text: str, start: int, quote: str) -> int:
    if len(quote) == len('"""'):
        return len(text)
    ends = [at for mark in _LINE_END if (at := text.find(mark, start)) >= 0]
    return min(ends, default=len(text))


def _string(text: str, at: int, quote: str) -> tuple[int, int | None]:
    """Where the string with this opening quote begins, prefix and all, and where it ends."""
    prefix = _PREFIX.search(text, max(0, at - 3), at)
    letters = prefix[0].lower() if prefix else ""
    begin = at - len(letters)
    body = at + len(quote)
    if letters in _WITH_FIELDS:
        end = _string_with_fields(text, body, quote, raw="r" in letters)
        if end is not None:
            return begin, end
    return begin, _plain_string(text, body, quote)


def _plain_string(text: str, start: int, quote: str) -> int | None:
    for match in _PLAIN_BODY.finditer(text, start):
        if match[0] in _LINE_END and len(quote) == 1:
            return None
        if text.startswith(quote, match.start()):
            return match.start() + len(quote)
    return None


def _string_with_fields(text: str, start: int, quote: str, *, raw: bool) -> int | None:
    while (match := _BODY.search(text, start)) is not None:
        mark, start = match[0], match.end()
        if mark in _LINE_END and len(quote) == 1:
            return None
        if text.startswith(quote, match.start()):
            return match.start() + len(quote)
        if mark == r"\N{" and not raw:
            start = text.find("}", start) + 1
        elif mark == "{" or mark.endswith(r"\{") or mark == r"\N{":
            start = _field(text, start)
        if start <= 0:
            return None
    return None


def _field(text: str, start: int) -> int:
    """Where the replacement field whose `{` lies just before `start` ends; 0 when it does not."""
    depth = 0
    while (match := _FIELD.search(text, start)) is not None:
        mark, start = match[0], match.end()
        if mark[0] in "\"'":
            end = _string(text, match.start(), mark)[1]
            if end is None:
                return 0
            start = end
        elif mark in "([{":
            depth += 1
        elif mark == "}" and depth == 0:
            return start
        elif mark in ")]}":
            depth -= 1
        elif mark == ":" and depth == 0:
            return _format_spec(text, start)
    return 0


def _format_spec(text: str, start: int) -> int:
    while (match := _BRACE.search(text, start)) is not None:
        start = match.end()
        if match[0] == "}":
            return start
        start = _field(text, start)
        if start == 0:
            return 0
    return 0
