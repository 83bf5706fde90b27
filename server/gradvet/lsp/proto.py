"""Gradvet's values to the protocol's and back: the only converters. `to_x` leaves, `from_x` enters."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from lsprotocol import types as lsp

from gradvet.analysis import Diagnostic, RelatedPlace
from gradvet.finding import Severity
from gradvet.text import Edit, Source, Span
from gradvet.views import Hover, Inlay, rule_url
from gradvet.views.words import labelled, placed

_SEVERITY = {
    Severity.ERROR: lsp.DiagnosticSeverity.Error,
    Severity.WARNING: lsp.DiagnosticSeverity.Warning,
    Severity.INFO: lsp.DiagnosticSeverity.Information,
}

_UNITS: Mapping[str, Callable[[str], int]] = {
    lsp.PositionEncodingKind.Utf8.value: lambda text: len(text.encode("utf-8", "surrogatepass")),
    lsp.PositionEncodingKind.Utf16.value: lambda text: len(text.encode("utf-16-le", "surrogatepass")) // 2,
    lsp.PositionEncodingKind.Utf32.value: len,
}


@dataclass(frozen=True, slots=True)
class Encoding:
    """How this client counts columns: in code units of UTF-8, UTF-16 or UTF-32."""

    kind: str = lsp.PositionEncodingKind.Utf16.value

    def units(self, text: str) -> int:
        """The code units that a text takes."""
        return len(text) if text.isascii() else _UNITS[self.kind](text)

    def code_points(self, line: str, units: int) -> int:
        """The code points in the first `units` of a line; a unit inside a character counts as before it."""
        if line.isascii():
            return min(units, len(line))
        taken = 0
        for index, character in enumerate(line):
            taken += self.units(character)
            if taken > units:
                return index
        return len(line)


@dataclass(frozen=True, slots=True)
class Place:
    """One text as the client knows it: its address and how its columns are counted."""

    uri: str
    source: Source
    encoding: Encoding


def from_position(place: Place, position: lsp.Position) -> int:
    """The offset of a position; what lies outside the text is moved to the nearest place within."""
    source = place.source
    row = max(position.line, 0)
    if row >= len(source.line_starts):
        return len(source.text)
    line = source.line(row + 1)
    return source.line_starts[row] + place.encoding.code_points(line, max(position.character, 0))


def to_position(place: Place, offset: int) -> lsp.Position:
    """The position of an offset."""
    source = place.source
    inside = min(max(offset, 0), len(source.text))
    row, column = source.row_column(inside)
    start = source.line_starts[row - 1]
    before = source.text[start : start + column - 1]
    return lsp.Position(line=row - 1, character=place.encoding.units(before))


def from_range(place: Place, range_: lsp.Range) -> Span:
    """The span of a range; its ends in order, whatever the client sent."""
    start, end = from_position(place, range_.start), from_position(place, range_.end)
    return Span(min(start, end), max(start, end))


def to_range(place: Place, span: Span) -> lsp.Range:
    """The range of a span."""
    return lsp.Range(start=to_position(place, span.start), end=to_position(place, span.end))


def from_changes(place: Place, changes: Iterable[lsp.TextDocumentContentChangeEvent]) -> str:
    """The text after the client's changes, each made in the text that the one before it left."""
    for change in changes:
        text = change.text
        if isinstance(change, lsp.TextDocumentContentChangePartial):
            old, span = place.source.text, from_range(place, change.range)
            text = old[: span.start] + change.text + old[span.end :]
        place = Place(place.uri, Source(place.source.path, text), place.encoding)
    return place.source.text


def to_edits(place: Place, edits: Iterable[Edit]) -> list[lsp.TextEdit]:
    """The protocol's edits."""
    return [lsp.TextEdit(range=to_range(place, edit.span), new_text=edit.text) for edit in edits]


def to_hover(place: Place, hover: Hover, *, markdown: bool) -> lsp.Hover:
    """The hover; a client that does not render Markdown is told to show it as it is."""
    kind = lsp.MarkupKind.Markdown if markdown else lsp.MarkupKind.PlainText
    content = lsp.MarkupContent(kind=kind, value=hover.markdown)
    return lsp.Hover(contents=content, range=to_range(place, hover.span))


def to_inlay(place: Place, inlay: Inlay) -> lsp.InlayHint:
    """The hint behind a name."""
    return lsp.InlayHint(
        position=to_position(place, inlay.offset), label=inlay.label, tooltip=inlay.tooltip, padding_left=True
    )


def to_highlight(place: Place, span: Span, *, written: bool) -> lsp.DocumentHighlight:
    """A place to highlight, and whether the name is given its value there."""
    kind = lsp.DocumentHighlightKind.Write if written else lsp.DocumentHighlightKind.Read
    return lsp.DocumentHighlight(range=to_range(place, span), kind=kind)


def to_diagnostic(place: Place, diagnostic: Diagnostic, *, related: bool, links: bool) -> lsp.Diagnostic:
    """The diagnostic. `related`: the client shows related places; `links`: it opens a page behind the code.

    Reasons that the client cannot show as places stand under the message, one a line, so that none is lost.
    """
    apart = [note for note in diagnostic.notes if related and note.span is not None]
    below = [note for note in diagnostic.notes if note not in apart]
    return lsp.Diagnostic(
        range=to_range(place, diagnostic.span),
        message="\n".join((diagnostic.message, *(_line(place.source, note) for note in below))),
        severity=_SEVERITY[diagnostic.severity],
        source="gradvet",
        code=diagnostic.rule.name,
        code_description=lsp.CodeDescription(href=rule_url(diagnostic.rule)) if links else None,
        related_information=[_related(place, note, note.span) for note in apart if note.span] or None,
    )


def _related(place: Place, note: RelatedPlace, span: Span) -> lsp.DiagnosticRelatedInformation:
    location = lsp.Location(uri=place.uri, range=to_range(place, span))
    return lsp.DiagnosticRelatedInformation(location=location, message=labelled(note.label, note.text))


def _line(source: Source, note: RelatedPlace) -> str:
    row = None if note.span is None else source.row_column(note.span.start)[0]
    return placed(labelled(note.label, note.text), row)
