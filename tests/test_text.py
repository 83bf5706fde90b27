"""Offsets, rows and edits: nothing here knows Python."""

import ast

import pytest

from gradvet.text import Edit, Source, Span, apply


@pytest.mark.parametrize(
    ("text", "starts"),
    [
        ("", [0]),
        ("a", [0]),
        ("a\n", [0, 2]),
        ("a\r\nb\rc\n", [0, 3, 5, 7]),
        ("a\fb\x0bc\x1cd\u2028e\x85f\n", [0, 12]),
    ],
)
def test_lines_end_where_python_ends_them(text: str, starts: list[int]) -> None:
    """Only a newline, a carriage return or both end a line; a form feed or U+2028 does not."""
    assert starts == Source("x.py", text).line_starts


def test_a_line_comes_without_its_end() -> None:
    """Rows count from 1, and a row that is not there is empty."""
    source = Source("x.py", "one\r\ntwo\rthree")
    assert ["", "one", "two", "three", ""] == [source.line(row) for row in range(5)]


NAMES = [
    "loss = net(x)",
    "🔥 = '🔥'; loss = net(x)".replace("🔥 =", "名 ="),
    "s = '汉字🔥'; loss = net(x)",
    "\ufeffloss = net(x)",
    "\ufeffs = '汉🔥'; loss = net(x)",
    "a = 1\rs = 'é'; loss = net(x)",
    "a = 1\r\n\floss = net(x)",
    "s = '\ud800\udfff'; loss = net(x)",
    "s = '''\n汉\n'''; loss = net(x)",
]


@pytest.mark.parametrize("text", NAMES)
def test_columns_of_ast_become_offsets(text: str) -> None:
    """Whatever stands before a name on its line, its span holds the name."""
    source = Source("x.py", text)
    names = [node for node in ast.walk(ast.parse(source.readable)) if isinstance(node, ast.Name)]
    assert {"loss", "net", "x"} <= {source[source.span(node)] for node in names}
    assert [node.id for node in names] == [source[source.span(node)] for node in names]


def test_rows_and_columns_are_those_people_count() -> None:
    """Both count from 1, and an emoji is one column."""
    source = Source("x.py", "a = '🔥'\nbc = 1\n")
    assert (1, 1) == source.row_column(0)
    assert (1, 7) == source.row_column(6)
    assert (2, 3) == source.row_column(source.text.index("c = 1") + 1)
    assert (3, 1) == source.row_column(len(source.text))


def test_a_row_past_the_end_is_the_end() -> None:
    """Python reports an unfinished statement on the row after the last."""
    assert len("f(") == Source("x.py", "f(").offset(2, 0)


def test_the_readable_text_is_as_long_as_the_text() -> None:
    """What UTF-8 or Python cannot take is replaced, character by character."""
    source = Source("x.py", "\ufeffa = '\ud800'\0# \ufeff\n")
    assert "\fa = '?' # \ufeff\n" == source.readable


def test_edits_are_applied_in_the_order_of_their_places() -> None:
    """Insertions at one place keep their order."""
    edits = [Edit(Span(4, 5), "X"), Edit(Span(0, 0), "1"), Edit(Span(0, 0), "2"), Edit(Span(2, 4), "")]
    assert "12abXf" == apply("abcdef", edits)


@pytest.mark.parametrize("edits", [[(0, 3), (2, 4)], [(1, 4), (2, 2)], [(0, 3), (0, 3)]])
def test_edits_that_overlap_are_refused(edits: list[tuple[int, int]]) -> None:
    """Which of the two would win is not for us to say."""
    with pytest.raises(ValueError, match="overlap"):
        apply("abcdef", [Edit(Span(*span), "") for span in edits])


@pytest.mark.parametrize(
    ("one", "other", "meets"),
    [
        ((0, 2), (2, 4), False),
        ((0, 3), (2, 4), True),
        ((2, 2), (2, 4), True),
        ((2, 2), (2, 2), True),
        ((2, 2), (0, 2), False),
        ((3, 3), (2, 4), True),
    ],
)
def test_spans_overlap(one: tuple[int, int], other: tuple[int, int], meets: bool) -> None:
    """Two that only touch do not overlap, unless one is empty and stands where the other starts."""
    assert meets == Span(*one).overlaps(Span(*other))
    assert meets == Span(*other).overlaps(Span(*one))


def test_a_cursor_at_the_end_of_a_span_is_in_it() -> None:
    """Editors put the cursor between characters."""
    assert [False, True, True, True, False] == [offset in Span(1, 3) for offset in range(5)]
