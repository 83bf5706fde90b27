"""Which comments hide which findings, and where."""

import pytest

from gradvet.syntax.parse import parse
from gradvet.syntax.suppress import Comment, Suppressions
from gradvet.text import Source


def hidden(text: str, names: tuple[str, ...] = ("graph-retained", "data-attribute")) -> dict[int, list[str]]:
    """For each row, those of some rules of the family `leak` that are hidden there."""
    module = parse(Source("x.py", text))
    suppressions = Suppressions.of(module)
    rows = range(1, len(module.source.line_starts) + 1)
    found = {row: [name for name in names if suppressions.hiding(name, "leak", [row])] for row in rows}
    return {row: names for row, names in found.items() if names}


BOTH = ["graph-retained", "data-attribute"]

COMMENTS = [
    ("x = 1  # gradvet: ignore[graph-retained]", ["graph-retained"]),
    ("x = 1  # gradvet: ignore[graph-retained] since it is small", ["graph-retained"]),
    ("x = 1  # gradvet: ignore[other, graph-retained , no-such-rule]", ["graph-retained"]),
    ("x = 1  # gradvet: ignore[leak]", BOTH),
    ("x = 1  # gradvet: ignore", BOTH),
    ("x = 1  # gradvet: ignore: it is small", BOTH),
    ("x = 1  #gradvet:ignore [ data-attribute ]", ["data-attribute"]),
    ("x = 1  # type: ignore  # gradvet: ignore[data-attribute]", ["data-attribute"]),
    ("x = 1  # gradvet: ignore[data-attribute]  # gradvet: ignore[graph-retained]", BOTH),
    ("x = 1  # gradvet: ignore[]", []),
    ("x = 1  # gradvet: ignore[graph-retained", []),
    ("x = 1  # gradvet: ignored", []),
    ("x = 1  # gradvet: ignore-next", []),
    ("x = 1  # gradvet ignore", []),
    ("x = 1  # see gradvet: ignore", []),
    ("x = '# gradvet: ignore'", []),
    ("x = '汉🔥#'  # gradvet: ignore[graph-retained] 🔥", ["graph-retained"]),
]


@pytest.mark.parametrize(("line", "names"), COMMENTS)
def test_a_comment_hides_findings_on_its_line(line: str, names: list[str]) -> None:
    """By rule, by family, or all of them; a typing mistake hides nothing."""
    assert ({2: names} if names else {}) == hidden(f"a = 1\n{line}\nb = 2\n")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("# gradvet: ignore-file\nx = 1\n", BOTH),
        ("#!/usr/bin/python\n\n# gradvet: ignore-file[data-attribute] why\nx = 1\n", ["data-attribute"]),
        ('"""Doc."""\n# gradvet: ignore-file[leak]\nimport a\n', BOTH),
        ("# gradvet: ignore-file\n", BOTH),
        ("\ufeff# gradvet: ignore-file\nx = 1\n", BOTH),
        ("x = 1  # gradvet: ignore-file\n", []),
        ("x = 1\n# gradvet: ignore-file\n", []),
        ('"""# gradvet: ignore-file"""\nx = 1\n', []),
    ],
)
def test_a_comment_at_the_top_hides_findings_everywhere(text: str, names: list[str]) -> None:
    """Above the first statement; the module's docstring does not count as one."""
    rows = range(1, text.count("\n") + 2)
    assert (dict.fromkeys(rows, names) if names else {}) == hidden(text)


@pytest.mark.parametrize("broken", ["x = (", "x = '''abc", "  x", "x = $"])
def test_a_text_that_does_not_parse_keeps_its_comments(broken: str) -> None:
    """Only what is inside the broken block is lost."""
    text = f"def f():\n    {broken}\n\ndef g():\n    y = 1  # gradvet: ignore[graph-retained]\n"
    assert {5: ["graph-retained"]} == hidden(text)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_rows_are_counted_for_every_line_end(end: str) -> None:
    """And a form feed ends no line."""
    assert {3: BOTH} == hidden(end.join(["a = 1\f", "'''", "'''  # gradvet: ignore", "b"]))


INTENTS = [
    ("x = y  # grad: stop", [("stop", 2)]),
    ("x = y  # grad: keep since it is tuned", [("keep", 2)]),
    ("x = y  #grad:stop  # type: ignore", [("stop", 2)]),
    ("x = y  # grad: stopped", []),
    ("x = y  # grad: stop-gradient", []),
    ("x = y  # the grad: stop", []),
    ("x = '# grad: stop'", []),
]


@pytest.mark.parametrize(("line", "intents"), INTENTS)
def test_an_intent_is_stated_by_one_word(line: str, intents: list[tuple[str, int]]) -> None:
    """And a reason may follow."""
    found = Suppressions.of(parse(Source("x.py", f"a = 1\n{line}\n"))).intents
    assert intents == [(intent.wish, intent.row) for intent in found]


@pytest.mark.parametrize(
    ("comment", "part"),
    [
        ("# gradvet: ignore[a] why 🔥  # noqa", "# gradvet: ignore[a] why 🔥"),
        ("# noqa  # gradvet: ignore", "# gradvet: ignore"),
        ("# gradvet: ignore-file", "# gradvet: ignore-file"),
    ],
)
def test_a_comment_ends_with_its_reason(comment: str, part: str) -> None:
    """What belongs to other tools is no part of it."""
    module = parse(Source("x.py", f"{comment}\nx = '汉'\n"))
    (ignore,) = Suppressions.of(module).ignores
    assert part == module.source[ignore.span]
    node = Comment.at(module, ignore.span)
    assert ignore.span == module.source.span(node)
