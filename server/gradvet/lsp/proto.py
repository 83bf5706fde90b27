"""Gradvet's values to the protocol's and back: the only converters. `to_x` leaves, `from_x` enters."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from lsprotocol import types as lsp

from gradvet.analysis import Diagnostic, RelatedPlace
from gradvet.finding import Severity, Tag
from gradvet.lsp.uris import uri_of
from gradvet.syntax.cells import CellSource
from gradvet.text import Edit, Source, Span
from gradvet.views import KINDS_OF_NAMES, MARKS, Hover, Inlay, Lens, Link, Mark, rule_url
from gradvet.views.words import labelled, placed, row_words
from gradvet.words import ENGLISH, Words

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
class Piece:
    """One of the client's texts, and where it stands in the source that is analysed."""

    uri: str
    version: int
    span: Span


@dataclass(frozen=True, slots=True)
class Place:
    """A source as the client knows it: the texts that it is made of, and how their columns are counted.

    Positions are those of the text at `uri`, one of the pieces.
    """

    source: Source
    encoding: Encoding
    pieces: Sequence[Piece]
    uri: str

    @property
    def piece(self) -> Piece:
        """The piece that positions are in."""
        return next((piece for piece in self.pieces if piece.uri == self.uri), _NO_PIECE)

    def at(self, offset: int) -> "Place":
        """The same source, with positions in the text that an offset lies in."""
        before = [piece for piece in self.pieces if piece.span.start <= offset]
        return self if not before else replace(self, uri=before[-1].uri)

    def holds(self, span: Span) -> bool:
        """Whether a span begins in the text that positions are in."""
        return span.start in self.piece.span


_NO_PIECE = Piece("", 0, Span(0, 0))


def from_position(place: Place, position: lsp.Position) -> int:
    """The offset of a position; what lies outside the text is moved to the nearest place within."""
    source, within = place.source, place.piece.span
    row = max(position.line, 0) + source.row_column(within.start)[0] - 1
    if row >= len(source.line_starts) or source.line_starts[row] > within.end:
        return within.end
    line = source.line(row + 1)
    return source.line_starts[row] + place.encoding.code_points(line, max(position.character, 0))


def to_position(place: Place, offset: int) -> lsp.Position:
    """The position of an offset."""
    source, within = place.source, place.piece.span
    inside = min(max(offset, within.start), within.end)
    row, column = source.row_column(inside)
    start = source.line_starts[row - 1]
    before = source.text[start : start + column - 1]
    first = source.row_column(within.start)[0] if within.start else 1
    return lsp.Position(line=row - first, character=place.encoding.units(before))


def from_range(place: Place, range_: lsp.Range) -> Span:
    """The span of a range; its ends in order, whatever the client sent."""
    start, end = from_position(place, range_.start), from_position(place, range_.end)
    return Span(min(start, end), max(start, end))


def to_range(place: Place, span: Span) -> lsp.Range:
    """The range of a span."""
    return lsp.Range(start=to_position(place, span.start), end=to_position(place, span.end))


def to_location(place: Place, span: Span) -> lsp.Location:
    """The text that a span begins in, and the range there."""
    there = place.at(span.start)
    return lsp.Location(uri=there.uri, range=to_range(there, span))


def from_changes(place: Place, changes: Iterable[lsp.TextDocumentContentChangeEvent]) -> str:
    """The text after the client's changes, each made in the text that the one before it left."""
    for change in changes:
        text = change.text
        if isinstance(change, lsp.TextDocumentContentChangePartial):
            old, span = place.source.text, from_range(place, change.range)
            text = old[: span.start] + change.text + old[span.end :]
        whole = Piece(place.uri, place.piece.version, Span(0, len(text)))
        place = Place(Source(place.source.path, text), place.encoding, [whole], place.uri)
    return place.source.text


_SPECIAL = re.compile(r"[\\$}]")
_AnyEdit = lsp.TextEdit | lsp.AnnotatedTextEdit | lsp.SnippetTextEdit


def to_workspace_edit(
    place: Place, edits: Iterable[Edit], *, versioned: bool, snippet: str = ""
) -> lsp.WorkspaceEdit | None:
    """The edits by text, tied to its version where the client understands that; None without any.

    `snippet` goes behind what is put in, for a client that lets the user fill in its fields.
    """
    texts: dict[str, list[_AnyEdit]] = {}
    for edit in edits:
        there = place.at(edit.span.start)
        where = to_range(there, edit.span)
        sent: _AnyEdit = lsp.TextEdit(where, edit.text)
        if snippet and edit.text.startswith(" "):
            filled = _SPECIAL.sub(lambda match: f"\\{match[0]}", edit.text)
            sent = lsp.SnippetTextEdit(where, lsp.StringValue(f"{filled}{snippet}"))
        texts.setdefault(there.uri, []).append(sent)
    if not texts:
        return None
    if not versioned:
        changes = {
            uri: [edit for edit in sent if isinstance(edit, lsp.TextEdit)] for uri, sent in texts.items()
        }
        return lsp.WorkspaceEdit(changes=changes)
    versions = {piece.uri: piece.version for piece in place.pieces}
    return lsp.WorkspaceEdit(
        document_changes=[
            lsp.TextDocumentEdit(
                text_document=lsp.OptionalVersionedTextDocumentIdentifier(uri=uri, version=versions[uri]),
                edits=list(sent),
            )
            for uri, sent in texts.items()
        ]
    )


def to_hover(place: Place, hover: Hover, words: Words = ENGLISH, *, markdown: bool) -> lsp.Hover:
    """The hover; a client that does not render Markdown is told to show it as it is."""
    kind = lsp.MarkupKind.Markdown if markdown else lsp.MarkupKind.PlainText
    content = lsp.MarkupContent(kind=kind, value=words.page(hover.markdown))
    return lsp.Hover(contents=content, range=to_range(place, hover.span))


def to_inlay(place: Place, inlay: Inlay, words: Words = ENGLISH) -> lsp.InlayHint:
    """The hint behind a name."""
    return lsp.InlayHint(
        position=to_position(place, inlay.offset),
        label=bare(words.say(inlay.label)),
        tooltip=words.say(inlay.tooltip),
        padding_left=True,
    )


def bare(text: str) -> str:
    """A text without the quotes around code, for places that are small."""
    return text.replace("`", "")


def to_highlight(place: Place, span: Span, *, written: bool) -> lsp.DocumentHighlight:
    """A place to highlight, and whether the name is given its value there."""
    kind = lsp.DocumentHighlightKind.Write if written else lsp.DocumentHighlightKind.Read
    return lsp.DocumentHighlight(range=to_range(place, span), kind=kind)


def to_lens(place: Place, lens: Lens, words: Words = ENGLISH) -> lsp.CodeLens:
    """The line above a function. Its command is none: there is nothing to do but to read it."""
    return lsp.CodeLens(
        to_range(place, lens.span), lsp.Command(title=bare(words.say(lens.title)), command="")
    )


def to_tokens(place: Place, marks: Iterable[Mark]) -> list[int]:
    """The marks as the protocol has them: each by its distance from the one before."""
    data: list[int] = []
    line = character = 0
    for mark in marks:
        start, end = to_position(place, mark.span.start), to_position(place, mark.span.end)
        if start.line != end.line:
            continue
        away = start.line - line
        data += (
            away,
            start.character - (0 if away else character),
            end.character - start.character,
            KINDS_OF_NAMES.index(mark.kind),
            1 << MARKS.index(mark.mark),
        )
        line, character = start.line, start.character
    return data


def links(place: Place) -> Link:
    """Addresses of rows in files, and of cells in notebooks: those have no way to say which row is meant."""

    def link(source: Source, row: int) -> str | None:
        if source is not place.source:
            return f"{uri_of(source.path)}#L{row}"
        if isinstance(source, CellSource):
            return place.at(source.line_starts[row - 1]).uri
        return f"{place.uri}#L{row}" if place.uri.startswith("file:") else None

    return link


@dataclass(frozen=True, slots=True)
class Shows:
    """What of a diagnostic this client shows: related places, links behind codes, tags; and whether it keeps data."""

    related: bool = False
    links: bool = False
    data: bool = False
    tags: frozenset[lsp.DiagnosticTag] = frozenset()


_TAGS = {
    Tag.UNNECESSARY: lsp.DiagnosticTag.Unnecessary,
    Tag.DEPRECATED: lsp.DiagnosticTag.Deprecated,
}


def to_diagnostic(
    place: Place, diagnostic: Diagnostic, words: Words = ENGLISH, *, can: Shows
) -> lsp.Diagnostic:
    """The diagnostic; what the client does not show is left out.

    Reasons that the client cannot show as places stand under the message, one a line, so that none is lost.
    """
    apart = [note for note in diagnostic.notes if can.related and note.span is not None]
    below = [note for note in diagnostic.notes if note not in apart]
    tag = None if diagnostic.rule.tag is None else _TAGS[diagnostic.rule.tag]
    return lsp.Diagnostic(
        range=to_range(place, diagnostic.span),
        message="\n".join(
            (words.say(diagnostic.message), *(_line(place.source, note, words) for note in below))
        ),
        severity=_SEVERITY[diagnostic.severity],
        source="gradvet",
        code=diagnostic.rule.name,
        code_description=lsp.CodeDescription(href=rule_url(diagnostic.rule)) if can.links else None,
        related_information=[_related(place, note, note.span, words) for note in apart if note.span] or None,
        tags=[tag] if tag in can.tags and tag is not None else None,
        data={"key": diagnostic.key} if can.data else None,
    )


def _related(place: Place, note: RelatedPlace, span: Span, words: Words) -> lsp.DiagnosticRelatedInformation:
    return lsp.DiagnosticRelatedInformation(
        location=to_location(place, span), message=_note(note, words, note.text)
    )


def _line(source: Source, note: RelatedPlace, words: Words) -> str:
    return _note(note, words, placed(note.text, row_words(source, note.span)))


def _note(note: RelatedPlace, words: Words, text: str) -> str:
    return words.say(labelled(note.label, text)) if note.label else labelled("", words.say(text))
