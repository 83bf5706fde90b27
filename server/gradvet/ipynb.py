"""Notebooks as they stand in files: their Python cells, and the same file with other cells. Knows no disk.

Nothing but the text of the cells that change is written anew: all else stays character for character.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gradvet.text import Edit, Span, apply

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+')
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_CHARACTER = re.compile(r"\\u[dD][89aAbB]\w\w\\u[dD][c-fC-F]\w\w|\\u\w{4}|\\.|[^\\]", re.DOTALL)
_PYTHON = frozenset({"python", "ipython", "python3", "pypy", "sage", "xpython"})


class NotebookError(ValueError):
    """A text is no notebook; the message says why."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A code cell: its number among all cells from 1, its text, and where its `source` stands in the file."""

    number: int
    text: str
    place: Span


@dataclass(frozen=True, slots=True)
class Notebook:
    """The text of a notebook's file and the Python cells in it."""

    text: str
    cells: Sequence[Cell]

    def edited(self, texts: Sequence[str]) -> str:
        """The file with other texts in the cells, in the way in which each was written."""
        escaped = self.text.isascii() and "\\u" in self.text
        edits = [
            Edit(cell.place, _written(self.text, cell.place, text, escaped=escaped))
            for cell, text in zip(self.cells, texts, strict=True)
            if text != cell.text
        ]
        return apply(self.text, edits)

    def offset(self, cell: int, at: int) -> int:
        """Where in the file a character of a cell stands, by the cell's place among those in Python."""
        place = self.cells[cell].place
        end = place.start
        for line in _STRING.finditer(self.text, place.start, place.end):
            end = line.end() - 1
            for character in _CHARACTER.finditer(line[0], 1, len(line[0]) - 1):
                if at == 0:
                    return line.start() + character.start()
                at -= 1
        return end


def read_notebook(text: str) -> Notebook:
    """The Python cells of a notebook; none when it is in another language. Raises NotebookError for what is none."""
    if not text.strip():  # as some editors make it
        return Notebook(text, ())
    try:
        content = json.loads(text)
    except ValueError as error:
        raise NotebookError(f"not valid JSON: {error}") from error
    except RecursionError as error:
        raise NotebookError("not a notebook: it is nested too deeply") from error
    cells = content.get("cells") if isinstance(content, dict) else None
    if not isinstance(cells, list):
        old = isinstance(content, dict) and "worksheets" in content
        why = (
            "it is of a format before 4; `jupyter nbconvert --to notebook` brings it up to date"
            if old
            else ""
        )
        raise NotebookError(f"not a notebook: {why or 'it has no list of cells'}")
    if not _in_python(content.get("metadata")):
        return Notebook(text, ())
    places = _sources(text)
    found = [
        Cell(number + 1, source, places[number])
        for number, cell in enumerate(cells)
        if isinstance(cell, dict)
        and cell.get("cell_type") == "code"
        and number in places
        and _cell_in_python(cell.get("metadata"))
        and (source := _joined(cell.get("source"))) is not None
    ]
    return Notebook(text, found)


def _in_python(metadata: Any) -> bool:
    """Whether a notebook is in Python, or does not say in what."""
    about: Mapping[str, Any] = metadata if isinstance(metadata, dict) else {}
    for key, inner in (("language_info", "name"), ("kernelspec", "language")):
        told = about.get(key)
        if isinstance(told, dict) and isinstance(told.get(inner), str):
            return told[inner].lower() in _PYTHON
    return True


def _cell_in_python(metadata: Any) -> bool:
    """Whether a cell is in the notebook's language: VS Code notes where one is in another."""
    told = metadata.get("vscode") if isinstance(metadata, dict) else None
    language = told.get("languageId") if isinstance(told, dict) else None
    return language is None or language == "python"


def _joined(source: Any) -> str | None:
    """A cell's text, which may be written as a list of lines."""
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        return "".join(source)
    return source if isinstance(source, str) else None


def _sources(text: str) -> dict[int, Span]:
    """Where the `source` of each cell stands, by the cell's number from 0."""
    places: dict[int, Span] = {}
    path: list[str | int] = []  # keys and numbers that lead to the value at hand
    start = 0
    key = ""
    begun: list[tuple[tuple[str | int, ...], int]] = []
    expecting_key = False
    for match in _TOKEN.finditer(text):
        mark = match[0]
        if mark in "{[":
            begun.append((tuple(path), match.start()))
            path.append(0 if mark == "[" else "")
            expecting_key = mark == "{"
            continue
        if mark in "}]":
            path.pop()
            where, start = begun.pop()
            _note(places, where, Span(start, match.end()))
            expecting_key = False
        elif mark == ",":
            last = path[-1]
            if isinstance(last, int):
                path[-1] = last + 1
            else:
                expecting_key = True
        elif mark == ":":
            path[-1] = key
        elif expecting_key:
            key = json.loads(mark)
            expecting_key = False
        else:
            _note(places, tuple(path), match.span())
    return places


def _note(places: dict[int, Span], path: tuple[str | int, ...], where: Span | tuple[int, int]) -> None:
    match path:
        case ("cells", int(number), "source"):
            places[number] = where if isinstance(where, Span) else Span(*where)


def _written(text: str, place: Span, cell: str, *, escaped: bool) -> str:
    """A cell's text as JSON, as one string or as a list of lines, whichever was there."""
    before = text[place.start : place.end]
    if not before.startswith("["):
        return json.dumps(cell, ensure_ascii=escaped)
    lines = [json.dumps(line, ensure_ascii=escaped) for line in cell.split("\n")]
    lines = [f'{line[:-1]}\\n"' for line in lines[:-1]] + [line for line in lines[-1:] if line != '""']
    opening = re.match(r"\[(\s*)", before)
    closing = re.search(r"(\s*)\]\Z", before)
    margin, end = (match[1] if match else "" for match in (opening, closing))
    between = re.search(r"\"(\s*,\s*)\"", before) if not margin else None
    comma = between[1] if between else f",{margin}" if margin else ", "
    return f"[{margin if lines else ''}{comma.join(lines)}{end if lines else ''}]"
