"""Positions, edits and diagnostics on their way to the client and back."""

import pytest
from lsprotocol import types as lsp

from fake_analysis import FakeRule, diagnostic
from gradvet.analysis import RelatedPlace
from gradvet.finding import Severity, Tag
from gradvet.lsp import proto
from gradvet.text import Edit, Source, Span

# one code point each: 1, 2, 3 and 4 bytes of UTF-8, the last two units of UTF-16
TEXT = "aé漢😋z\r\nplain\n\n\f 😋😋\rend😋"


def place(text: str = TEXT, encoding: str = "utf-16") -> proto.Place:
    whole = proto.Piece("file:///w/train.py", 1, Span(0, len(text)))
    return proto.Place(Source("train.py", text), proto.Encoding(encoding), [whole], whole.uri)


@pytest.mark.parametrize(
    ("encoding", "columns"),
    [("utf-8", [0, 1, 3, 6, 10, 11]), ("utf-16", [0, 1, 2, 3, 5, 6]), ("utf-32", [0, 1, 2, 3, 4, 5])],
)
def test_columns_are_counted_in_the_units_agreed_on(encoding: str, columns: list[int]) -> None:
    here = place(encoding=encoding)
    assert [proto.to_position(here, offset).character for offset in range(6)] == columns
    assert [proto.from_position(here, lsp.Position(0, column)) for column in columns] == list(range(6))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_every_offset_comes_back_but_for_the_middle_of_a_line_end(encoding: str) -> None:
    here = place(encoding=encoding)
    offsets = [offset for offset in range(len(TEXT) + 1) if TEXT[offset - 1 : offset + 1] != "\r\n"]
    assert [proto.from_position(here, proto.to_position(here, offset)) for offset in offsets] == offsets


def test_a_form_feed_does_not_end_a_line() -> None:
    assert proto.to_position(place(), TEXT.index("\f") + 1) == lsp.Position(3, 1)
    assert proto.to_position(place(), TEXT.index("end")) == lsp.Position(4, 0)


@pytest.mark.parametrize(
    ("line", "character", "offset"),
    [
        (0, 99, 5),  # beyond the line: its end, before the line end
        (1, 99, TEXT.index("plain") + 5),
        (99, 0, len(TEXT)),
        (99, 99, len(TEXT)),
        (0, 4, 3),  # in the middle of the emoji: before it
    ],
)
def test_positions_outside_the_text_move_to_the_nearest_place_and_stay_as_they_were(
    line: int, character: int, offset: int
) -> None:
    position = lsp.Position(line, character)
    assert proto.from_position(place(), position) == offset
    assert position == lsp.Position(line, character)


def test_offsets_outside_the_text_are_clamped() -> None:
    assert proto.to_position(place(), -3) == lsp.Position(0, 0)
    assert proto.to_position(place(), 10**6) == lsp.Position(4, 5)


def test_a_range_with_its_ends_the_wrong_way_round_is_put_in_order() -> None:
    assert proto.from_range(place(), lsp.Range(lsp.Position(1, 3), lsp.Position(0, 1))) == Span(1, 10)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_half_a_surrogate_pair_is_survived(encoding: str) -> None:
    here = place("x = '\ud83d'; y", encoding)
    assert proto.from_position(here, proto.to_position(here, 10)) == 10


def partial(start: tuple[int, int], end: tuple[int, int], text: str) -> lsp.TextDocumentContentChangePartial:
    return lsp.TextDocumentContentChangePartial(lsp.Range(lsp.Position(*start), lsp.Position(*end)), text)


def test_ranged_changes_are_made_one_after_the_other_behind_a_form_feed_and_an_emoji() -> None:
    changes = [partial((3, 2), (3, 4), "a\nb"), partial((4, 1), (4, 3), "!")]
    assert proto.from_changes(place(), changes) == "aé漢😋z\r\nplain\n\n\f a\nb!\rend😋"


def test_a_whole_text_takes_the_place_of_what_was_there() -> None:
    changes: list[lsp.TextDocumentContentChangeEvent] = [partial((0, 0), (0, 1), "b")]
    changes.append(lsp.TextDocumentContentChangeWholeDocument("new"))
    assert proto.from_changes(place(), changes) == "new"


def test_edits() -> None:
    sent = proto.to_workspace_edit(place(), [Edit(Span(4, 5), "y")], versioned=False)
    where = lsp.Range(lsp.Position(0, 5), lsp.Position(0, 6))
    assert sent == lsp.WorkspaceEdit(changes={"file:///w/train.py": [lsp.TextEdit(where, "y")]})
    assert proto.to_workspace_edit(place(), [], versioned=True) is None


def test_a_reason_is_left_to_fill_in_where_the_client_can() -> None:
    edits = [Edit(Span(5, 5), "  # gradvet: ignore[a]")]
    sent = proto.to_workspace_edit(place(), edits, versioned=True, snippet=" ${1:why}")
    assert sent is not None
    assert sent.document_changes is not None
    [change] = sent.document_changes
    assert isinstance(change, lsp.TextDocumentEdit)
    [edit] = change.edits
    assert isinstance(edit, lsp.SnippetTextEdit)
    assert edit.snippet.value == "  # gradvet: ignore[a] ${1:why}"


NOTES = [
    RelatedPlace("why", "it is lost", Span(7, 12)),
    RelatedPlace("", "it was `漢`, line 1", Span(2, 3)),
    RelatedPlace("assuming", "it was there", None),
]


def test_a_diagnostic_has_its_code_link_severity_and_places() -> None:
    sent = proto.to_diagnostic(
        place(), diagnostic(Span(2, 4), notes=NOTES), can=proto.Shows(related=True, links=True)
    )
    assert sent.range == lsp.Range(lsp.Position(0, 2), lsp.Position(0, 5))
    assert (sent.source, sent.code, sent.severity) == (
        "gradvet",
        "lost-graph",
        lsp.DiagnosticSeverity.Warning,
    )
    assert sent.code_description is not None
    assert sent.code_description.href.endswith("/server/gradvet/rules/lost_graph.md")
    assert sent.related_information is not None
    related, further = sent.related_information
    assert (related.message, related.location.range.start) == ("why: it is lost", lsp.Position(1, 0))
    assert further.message == "← it was `漢`, line 1"
    assert related.location.uri == "file:///w/train.py"
    assert sent.message == "`lost` loses the graph\nassuming: it was there"
    assert sent.tags is None


def test_reasons_stand_in_the_message_where_the_client_cannot_show_places() -> None:
    sent = proto.to_diagnostic(place(), diagnostic(Span(2, 4), notes=NOTES), can=proto.Shows())
    assert sent.related_information is None
    assert sent.code_description is None
    assert sent.message.splitlines()[1:] == [
        "why: it is lost (line 2)",
        "← it was `漢`, line 1",
        "assuming: it was there",
    ]


def test_tags_and_data_are_for_clients_that_keep_them() -> None:
    found = diagnostic(Span(2, 4), rule=FakeRule(tag=Tag.UNNECESSARY))
    tags = frozenset({lsp.DiagnosticTag.Unnecessary})
    sent = proto.to_diagnostic(place(), found, can=proto.Shows(data=True, tags=tags))
    assert sent.tags == [lsp.DiagnosticTag.Unnecessary]
    assert sent.data == {"key": "lost-graph@2-4"}
    plain = proto.to_diagnostic(place(), found, can=proto.Shows())
    assert (plain.tags, plain.data) == (None, None)


def test_every_severity_has_its_own_level() -> None:
    assert set(proto._SEVERITY) == set(Severity)
    assert len(set(proto._SEVERITY.values())) == len(Severity)
