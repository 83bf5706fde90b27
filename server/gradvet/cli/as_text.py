"""Reports as a person reads them in a terminal."""

import os
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gradvet.cli.report import Entry, Note, Place, Report

_TAB = 4
_WIDEST = 160  # columns of a source line that are shown
_LEAD = 40  # columns kept before the place when a line is cut
_COLOURS = {"error": "31", "warning": "33", "info": "36"}
_SEVERITIES = tuple(_COLOURS)
_BOLD, _DIM, _GREEN = "1", "2", "32"
_PICTURES = {code: chr(0x2400 + code) for code in range(0x20)} | {0x7F: "\N{SYMBOL FOR DELETE}"}
_PICTURES |= dict.fromkeys((*range(0x80, 0xA0), *range(0xD800, 0xE000)), "\N{REPLACEMENT CHARACTER}")


@dataclass(frozen=True, slots=True)
class Paint:
    """Colours, where they are wanted."""

    on: bool = False

    def __call__(self, text: str, *codes: str) -> str:
        """The text in a colour."""
        return f"\x1b[{';'.join(codes)}m{text}\x1b[0m" if self.on and text else text


def concise(path: str, entry: Entry, paint: Paint) -> str:
    """An entry in one line."""
    row, column = entry.place.row, entry.place.column
    colour = _COLOURS[entry.severity]
    if entry.place.part:
        path = f"{path}:{entry.place.part}"
    head = f"{paint(path, _BOLD)}:{row}:{column}: {paint(entry.severity, colour)}[{paint(entry.code, _BOLD)}]"
    return f"{head} {_visible(entry.message)}"


def full(path: str, entry: Entry, paint: Paint) -> str:
    """An entry with its source line, its reasons and its fixes."""
    return "\n".join([concise(path, entry, paint), "", *_excerpt(entry, paint), *_notes(entry, paint), ""])


def _excerpt(entry: Entry, paint: Paint) -> Iterator[str]:
    place = entry.place
    here = entry.lines[-1][1] if entry.lines else ""
    end = place.end_column - 1 if place.end_row == place.row else len(here.rstrip())
    start = place.column - 1
    skip = _skipped(here, start)
    for row, line in entry.lines:
        yield f"{paint(f'{row:>5} |', _DIM)} {_cut(_shown(line), skip)}".rstrip()
    lead, mark = _width(here[:start]) - skip, _width(here[:end]) - _width(here[:start])
    marker = "^" * max(1, min(mark, _WIDEST - lead))
    yield f"{paint('      |', _DIM)} {' ' * lead}{paint(marker, _COLOURS[entry.severity], _BOLD)}"


def _skipped(line: str, start: int) -> int:
    """How many columns to leave out of a line that is too long, so that the place is seen."""
    return max(0, _width(line[:start]) - _LEAD) if _width(line) > _WIDEST else 0


def _cut(line: str, skip: int) -> str:
    """The part of a line after `skip` columns, no wider than there is room for."""
    width, kept = 0, []
    for character in line:
        if skip <= width < skip + _WIDEST:
            kept.append(character)
        elif width < skip < width + _columns(character):
            kept.append(" ")  # half of a wide character
        width += _columns(character)
    return "".join(kept)


def _notes(entry: Entry, paint: Paint) -> Iterator[str]:
    rows = [(note.label, ("" if note.label else "← ") + _placed(note, entry.place)) for note in entry.notes]
    titles = max((_width(fix.title) for fix in entry.fixes), default=0)
    for number, fix in enumerate(entry.fixes):
        effect = f"{fix.applicability}: {fix.effect}" if fix.effect else fix.applicability
        rows.append(("fix" if number == 0 else "", f"{_padded(fix.title, titles)}   {effect}"))
    width = max((len(label) for label, _ in rows), default=0)
    said = ""
    for label, text in rows:
        column = ("" if label == said else label).ljust(max(width, 4))
        said = label or said
        yield f"   {paint(column, _BOLD)}  {_visible(text)}".rstrip()


def _placed(note: Note, here: Place) -> str:
    """The text of a note with its line, unless it says it itself or it is the line above the note."""
    if note.place is None or (note.place.row, note.place.part) == (here.row, here.part):
        return note.text
    where = f"line {note.place.row}"
    if where in note.text:
        return note.text
    if note.place.part != here.part:
        where += f" of {note.place.part}"
    return f"{note.text} {where}" if note.text.endswith("`") else f"{note.text} ({where})"


def _padded(text: str, width: int) -> str:
    return text + " " * (width - _width(text))


def _visible(text: str) -> str:
    """The text with its control characters made visible: a file must not be able to steer the terminal."""
    if text.isprintable():
        return text
    return "".join(_PICTURES.get(ord(character), character) for character in text)


def _shown(line: str) -> str:
    """A source line with its tabs as spaces, so that marks below it stand where they should."""
    shown: list[str] = []
    width = 0
    for character in line:
        step = _TAB - width % _TAB if character == "\t" else _columns(character)
        shown.append(" " * step if character == "\t" else _visible(character))
        width += step
    return "".join(shown)


def _width(text: str) -> int:
    """The columns that a source text takes in a terminal."""
    return sum(map(_columns, _shown(text)))


def _columns(character: str) -> int:
    if character < "\x7f":
        return 1
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def summary(reports: Sequence[Report], paint: Paint, *, fixing: bool = False) -> str:
    """What it all comes to, in a line or two."""
    lines = []
    applied = sum(report.fixes for report in reports)
    if applied:
        changed = sum(report.before != report.after for report in reports)
        lines.append(f"Fixed {_number(applied, 'finding')} in {_number(changed, 'file')}.")
    missing = sum(not report.checked for report in reports)
    checked = f"{_number(len(reports) - missing, 'file')} checked"
    if missing:
        checked += f", {missing} could not be"
    entries = [entry for report in reports for entry in report.entries]
    if not entries:
        failed = any(report.failures for report in reports)
        return "\n".join([*lines, paint(f"No findings ({checked}).", _BOLD if failed else _GREEN)])
    counts = Counter(entry.severity for entry in entries)
    kinds = [_number(counts[severity], severity) for severity in _SEVERITIES if counts[severity]]
    files = sum(bool(report.entries) for report in reports)
    found = f"Found {_joined(kinds)} in {_number(files, 'file')} ({checked})."
    safe = sum(any(fix.applicability == "safe" for fix in entry.fixes) for entry in entries)
    if safe and not fixing:
        found += f" {_number(safe, 'fix', 'fixes')} {'is' if safe == 1 else 'are'} safe: --fix"
    return "\n".join([*lines, paint(found, _BOLD)])


def _number(count: int, one: str, many: str | None = None) -> str:
    return f"{count} {one if count == 1 else many or f'{one}s'}"


def _joined(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def shown_path(path: str, here: Path) -> str:
    """A path as a person at `here` would write it; links keep their own names."""
    try:
        if ".." in Path(path).parts:  # from a link it leads to where that points, so nothing can be cut out
            return str(Path(path).resolve().relative_to(here.resolve()))
        return str(Path(os.path.abspath(path)).relative_to(here))
    except ValueError:
        return path


def texts(reports: Iterable[Report], paint: Paint, here: Path, *, short: bool) -> Iterator[str]:
    """The entries, one after another."""
    for report in reports:
        for entry in report.entries:
            yield (concise if short else full)(shown_path(report.path, here), entry, paint)
