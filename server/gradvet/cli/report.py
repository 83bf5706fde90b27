"""What a check found out about one file, as plain values that can travel between processes."""

from dataclasses import dataclass, replace

from gradvet.analysis import Analysis, Diagnostic
from gradvet.finding import Applicability, Fix
from gradvet.syntax.parse import Problem
from gradvet.text import Source, Span
from gradvet.views import rule_url
from gradvet.views.fixall import fix_edits

SYNTAX = "syntax-error"


@dataclass(frozen=True, slots=True)
class Place:
    """From one row and column to another, counted from 1; the end lies just past the last character.

    In a notebook `part` is the cell in which they are counted.
    """

    row: int
    column: int
    end_row: int
    end_column: int
    part: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    """A line under a message."""

    label: str
    text: str
    place: Place | None


@dataclass(frozen=True, slots=True)
class Change:
    """Another text for a place."""

    place: Place
    text: str


@dataclass(frozen=True, slots=True)
class FixOffer:
    """A fix; `changes` is None where they were not worked out."""

    title: str
    effect: str
    applicability: str
    changes: tuple[Change, ...] | None


@dataclass(frozen=True, slots=True)
class Entry:
    """A finding, or a place that Python cannot read, with the lines that lead up to it."""

    code: str
    severity: str
    message: str
    place: Place
    notes: tuple[Note, ...]
    fixes: tuple[FixOffer, ...]
    url: str | None
    lines: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome for one file.

    `failures` are what kept Gradvet from looking at all of it, and `checked` is whether it looked at any;
    `before` and `after` are its texts without and with fixes, each behind the name of its part;
    `limits` are bounds that the dry run reached.
    """

    path: str
    entries: tuple[Entry, ...] = ()
    failures: tuple[str, ...] = ()
    fixes: int = 0
    before: tuple[tuple[str, str], ...] = ()
    after: tuple[tuple[str, str], ...] = ()
    limits: tuple[str, ...] = ()
    seconds: float = 0.0
    checked: bool = True

    def failing(self, *failures: str) -> "Report":
        """The same, with more failures."""
        return replace(self, failures=(*self.failures, *failures))


CONTEXT = 2  # lines shown above the one that a finding is on


def entries(analysis: Analysis, *, unsafe_edits: bool) -> tuple[Entry, ...]:
    """All that is to be said of a source, in the order of its places."""
    found = [(problem.span, _of_problem(analysis.source, problem)) for problem in analysis.problems]
    found += (
        (diagnostic.span, _of_diagnostic(analysis, diagnostic, unsafe_edits=unsafe_edits))
        for diagnostic in analysis.diagnostics
    )
    return tuple(entry for _, entry in sorted(found, key=lambda pair: pair[0]))


def _of_problem(source: Source, problem: Problem) -> Entry:
    place = _place(source, problem.span)
    return Entry(
        SYNTAX, "error", problem.message, place, (), (), None, _lines(source, place, problem.span.start)
    )


def _of_diagnostic(analysis: Analysis, diagnostic: Diagnostic, *, unsafe_edits: bool) -> Entry:
    source = analysis.source
    place = _place(source, diagnostic.span)
    notes = tuple(
        Note(note.label, note.text, None if note.span is None else _place(source, note.span))
        for note in diagnostic.notes
    )
    offers = [
        _offer(analysis, fix, resolve=unsafe_edits or fix.applicability is Applicability.SAFE)
        for fix in diagnostic.fixes
    ]
    return Entry(
        diagnostic.rule.name,
        diagnostic.severity.value,
        diagnostic.message,
        place,
        notes,
        tuple(offer for offer in offers if offer.changes != ()),
        rule_url(diagnostic.rule),
        _lines(source, place, diagnostic.span.start),
    )


def _offer(analysis: Analysis, fix: Fix, *, resolve: bool) -> FixOffer:
    changes = None
    if resolve:
        changes = tuple(
            Change(_place(analysis.source, edit.span), edit.text) for edit in fix_edits(analysis, fix)
        )
    return FixOffer(fix.title, fix.effect, fix.applicability.value, changes)


def _place(source: Source, span: Span) -> Place:
    part, row, column = source.spot(span.start)
    end_part, end_row, end_column = source.spot(span.end)
    if end_part != part:  # it ends with its cell
        return Place(row, column, row, column + 1, part)
    return Place(row, column, end_row, end_column, part)


def parts(source: Source) -> tuple[tuple[str, str], ...]:
    """The texts that a source is made of, each with the name of its part."""
    return tuple((source.spot(span.start)[0], source[span]) for span in source.texts)


def _lines(source: Source, place: Place, start: int) -> tuple[tuple[int, str], ...]:
    above = source.row_column(start)[0] - place.row  # rows of the parts before
    rows = range(max(1, place.row - CONTEXT), place.row + 1)
    return tuple((row, source.line(above + row)) for row in rows)
