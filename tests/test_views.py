"""Hovers, pages and actions as plain values."""

import ast

import pytest

from fake_analysis import PAGE, FakeRule, analysis, analyze_lost, diagnostic, replacing, spans
from gradvet.analysis import Analysis, RelatedPlace
from gradvet.autograd.facts import ExpressionState
from gradvet.finding import Applicability, Fix
from gradvet.syntax.parse import Module
from gradvet.text import Edit, Source, Span, apply
from gradvet.views import actions, changes, fix_all, hover, readable, rule_url, summary
from gradvet.views.words import code, state_words


def every_expression(parsed: Module) -> dict[ast.AST, ExpressionState]:
    """Each expression's state tells which expression it is."""
    nodes = [node for node in ast.walk(parsed.tree) if isinstance(node, ast.expr)]
    return {node: ExpressionState(f"this is {ast.unparse(node)}.", ()) for node in nodes}


def shown(text: str) -> str:
    """The hover at the bar in a text in which every expression has a state."""
    offset = text.index("│")
    found = hover(analysis(text.replace("│", ""), states=every_expression), offset)
    assert found is not None
    return found.markdown


@pytest.mark.parametrize(
    ("text", "smallest"),
    [
        ("│total = model(x) + y", "total"),
        ("total = mo│del(x) + y", "model"),
        ("total = model(│x) + y", "x"),
        ("total = model(x│) + y", "model(x)"),  # the bracket belongs to the call, though `x` ends there
        ("total = model(x) │+ y", "model(x) + y"),
        ("total = model(x) + y│", "y"),  # nothing begins here, so what ends here is meant
        ("漢 = '😋'; 字 = f(│漢)", "漢"),
        ("\f\ntotal = f(\n  a,\n  │b)", "b"),
    ],
)
def test_the_smallest_expression_around_a_place_is_told(text: str, smallest: str) -> None:
    assert f"this is {smallest}." in shown(text)


@pytest.mark.parametrize("text", ["", "\n\n", "x = 1  # nothing here", "def f(:\n"])
def test_there_is_no_hover_where_nothing_is_known(text: str) -> None:
    assert hover(analysis(text), len(text)) is None


def test_a_state_is_told_with_its_reasons_and_their_lines() -> None:
    def states(parsed: Module) -> dict[ast.AST, ExpressionState]:
        first, second = parsed.tree.body
        assert isinstance(second, ast.Assign)
        reasons = (("`a` requires grad", first), ("so says line 2", second), ("the caller made it", None))
        return {second.value: ExpressionState("requires_grad=YES is_leaf=NO grad_fn=AddBackward0", reasons)}

    text = "a = w + 1\nb = a +\\\n  2\n"
    found = hover(analysis(text, states=states), text.index("a +"))
    assert found is not None
    assert text[found.span.start : found.span.end] == "a +\\\n  2"
    assert found.markdown.splitlines() == [
        r"`a +\ 2` requires grad · not a leaf · grad_fn AddBackward0",
        "",
        "- `a` requires grad (line 1)",
        "- so says line 2",
        "- the caller made it",
    ]


def test_a_diagnostic_is_told_with_its_reasons_and_its_page() -> None:
    text = "a = 1\nb = lost(a)\n"
    [span] = spans(text, "lost(a)")
    notes = [
        RelatedPlace("why", "`a` was made here", Span(0, 1)),
        RelatedPlace("", "from `1`, line 1", Span(4, 5)),
        RelatedPlace("assuming", "it trains", None),
    ]
    found = hover(analysis(text, [diagnostic(span, notes=notes)]), span.start + 2)
    assert found is not None
    assert found.span == span
    assert "**warning** [lost-graph](https://" in found.markdown
    assert "`lost` loses the graph" in found.markdown
    assert (
        "- *why* `a` was made here (line 1)\n- ← from `1`, line 1\n- *assuming* it trains" in found.markdown
    )
    assert "What `lost` holds is lost." in found.markdown


def test_diagnostic_and_state_are_both_told_and_the_span_is_the_smaller_one() -> None:
    text = "lost(a)"
    found = hover(analysis(text, [diagnostic(Span(0, 7))], every_expression), text.index("a"))
    assert found is not None
    assert found.span == Span(5, 6)
    before, after = found.markdown.split("\n\n---\n\n")
    assert "loses the graph" in before
    assert "this is a." in after


def test_the_end_of_a_diagnostic_is_no_part_of_it_when_something_begins_there() -> None:
    text = "lost(a)"
    found = hover(analysis(text, [diagnostic(Span(0, 5))], every_expression), 5)
    assert found is not None
    assert found.markdown == "`a` this is a."
    behind = hover(analysis(text, [diagnostic(Span(0, 7))]), 7)
    assert behind is not None
    assert behind.span == Span(0, 7)


# -- pages


def test_a_summary_is_the_start_of_the_page_without_title_marks_and_probes() -> None:
    assert summary(PAGE) == "What `lost` holds is lost.\n\n```python\nx = lost(y)\n```\n"


FULL = """\
# a-rule

First sentence
goes on.

## Why

```text
# error: [a-rule] is only text to read here
```

```python
import torch
# a comment of the author's
x = 1  # kept  # error: [a-rule] "no" # raises: RuntimeError "no"
y = "# nothing expected"
    # revealed: requires_grad=YES
reveal_grad(x)  # revealed: requires_grad=NO is_leaf=YES grad_fn=None
```
```python proof
assert x.grad is None
```
```diff Put it right (safe)
-x = 1
+x = 2
 reveal_grad(x)
```
```python proof
assert x
```

## Silent on purpose

````python
s = '''
```
# heading
'''
````
"""


def test_a_summary_goes_on_to_what_to_use_instead_and_no_further() -> None:
    page = PAGE.replace("## Silent", "## Use instead\n\n```diff Find it (safe)\n-a\n+b\n```\n\n## Silent")
    assert summary(page).endswith("**Use instead**\n\n**Find it (safe)**\n\n```diff\n-a\n+b\n```\n")


def test_a_page_is_read_without_what_is_only_for_tests() -> None:
    assert (
        readable(FULL)
        == """\
# a-rule

First sentence
goes on.

## Why

```text
# error: [a-rule] is only text to read here
```

```python
import torch
# a comment of the author's
x = 1  # kept
y = "# nothing expected"
```

**Put it right (safe)**

```diff
-x = 1
+x = 2
```

## Silent on purpose

````python
s = '''
```
# heading
'''
````
"""
    )


def test_the_address_of_a_page() -> None:
    assert rule_url(FakeRule()).endswith("/gradvet/blob/main/server/gradvet/rules/lost_graph.md")  # type: ignore[arg-type]


# -- words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("requires_grad=NO is_leaf=YES grad_fn=None", "does not require grad · leaf · grad_fn None"),
        ("requires_grad=MAYBE is_leaf=MAYBE", "may require grad · may be a leaf"),
        ("unknown: it comes from the caller", "unknown: it comes from the caller"),
        ("", ""),
    ],
)
def test_states_are_said_in_words(text: str, words: str) -> None:
    assert state_words(text) == words


@pytest.mark.parametrize(
    ("text", "span"),
    [("f(a,\n   b)", "`f(a, b)`"), ("'`'", "``'`'``"), ("`", "`` ` ``"), ("x" * 99, f"`{'x' * 59}…`")],
)
def test_code_stays_one_line_of_code(text: str, span: str) -> None:
    assert code(text) == span


# -- actions

SAFE = replacing(Span(0, 4), "found", "Find it")
UNSAFE = replacing(Span(0, 4), "gone", "Drop it", safe=False, effect="The value is gone.")


def test_fixes_come_best_first_then_ignoring() -> None:
    other = replacing(Span(0, 4), "kept", "Keep it")
    known = analysis("lost(a)\n", [diagnostic(Span(0, 7), [UNSAFE, SAFE, other])])
    offered = actions(known, Span(3, 3))
    assert [(action.title, action.preferred) for action in offered] == [
        ("Find it", True),
        ("Keep it", False),
        ("Drop it (The value is gone)", False),
        ("Ignore here: # gradvet: ignore[lost-graph]", False),
    ]
    assert [apply("lost(a)", action.edits(known)) for action in offered[:3]] == [
        "found(a)",
        "kept(a)",
        "gone(a)",
    ]
    assert len({action.key for action in offered}) == 4


@pytest.mark.parametrize(
    ("span", "count"), [(Span(7, 7), 1), (Span(5, 6), 1), (Span(0, 0), 0), (Span(0, 4), 1), (Span(8, 9), 0)]
)
def test_a_span_or_cursor_that_touches_a_diagnostic_gets_its_actions(span: Span, count: int) -> None:
    known = analysis("x = lost(a)\n", [diagnostic(Span(4, 7))])
    assert len(actions(known, span)) == count


def broken_fix() -> Fix:
    def edits(_module: Module) -> list[Edit]:
        raise RuntimeError

    return Fix("Break it", "", Applicability.SAFE, edits)


def test_a_fix_that_fails_makes_no_edits() -> None:
    known = analysis("lost(a)\n", [diagnostic(Span(0, 7), [broken_fix()])])
    broken, _ignore = actions(known, Span(0, 0))
    assert list(broken.edits(known)) == []


# -- ignoring


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = lost(a)", "x = lost(a)  # gradvet: ignore[lost-graph]"),
        ("x = lost(a)   \ny", "x = lost(a)  # gradvet: ignore[lost-graph]\ny"),
        ("x = lost(a)\r\ny", "x = lost(a)  # gradvet: ignore[lost-graph]\r\ny"),
        ("x = lost(a)  # why", "x = lost(a)  # why  # gradvet: ignore[lost-graph]"),
        ("x = lost(a)  # gradvet: ignore[b] why", "x = lost(a)  # gradvet: ignore[b, lost-graph] why"),
        ("x = lost(a)  # gradvet: ignore[]", "x = lost(a)  # gradvet: ignore[lost-graph]"),
        ("x = lost(a)  #gradvet : ignore [ b, ]", "x = lost(a)  #gradvet : ignore [b, lost-graph]"),
        ("x = lost(a)  # ends so \\", "x = lost(a)  # ends so \\  # gradvet: ignore[lost-graph]"),
        (
            "x = lost('# gradvet: ignore[b]')",
            "x = lost('# gradvet: ignore[b]')  # gradvet: ignore[lost-graph]",
        ),
        ("s = '漢😋'; lost(a)", "s = '漢😋'; lost(a)  # gradvet: ignore[lost-graph]"),
        ("lost(a,\n     b)", "lost(a,  # gradvet: ignore[lost-graph]\n     b)"),
    ],
)
def test_ignoring_writes_or_joins_the_comment(before: str, after: str) -> None:
    [span] = spans(before, "lost(a)") or spans(before, "lost(")
    known = analysis(before, [diagnostic(span)])
    [action] = actions(known, span)
    assert apply(before, action.edits(known)) == after


@pytest.mark.parametrize(
    ("text", "part"), [("x = lost('''\n''')", "lost('''\n''')"), ("lost(a) \\\n  + 1", "lost(a) \\\n  + 1")]
)
def test_ignoring_goes_behind_the_last_line_where_the_first_cannot_end_so(text: str, part: str) -> None:
    [span] = spans(text, part)
    known = analysis(text, [diagnostic(span)])
    [action] = actions(known, span)
    assert apply(text, action.edits(known)) == f"{text}  # gradvet: ignore[lost-graph]"


@pytest.mark.parametrize("text", ["lost('''a\n''')", "lost(a) + \\\n  1", "x = f'''{lost(a)}\n'''"])
def test_ignoring_is_not_offered_where_the_line_cannot_end_in_a_comment(text: str) -> None:
    [span] = spans(text, "lost(")
    assert actions(analysis(text, [diagnostic(span)]), span) == []


# -- all at once


def test_all_safe_fixes_are_applied_until_none_is_left() -> None:
    text = "a = lost(lost(x))\nb = 1\nc = lost(y)  # 😋\n"
    assert fix_all(analyze_lost(Source("train.py", text)), analyze_lost) == text.replace("lost", "found")


def test_overlapping_fixes_take_turns() -> None:
    def analyze(source: Source) -> Analysis:
        found = [diagnostic(span, [replacing(span, "b")]) for span in spans(source.text, "aa")]
        inner = [diagnostic(span, [replacing(span, "c")]) for span in spans(source.text, "a")]
        return analysis(source.text, [*found, *inner])

    assert fix_all(analyze(Source("train.py", "aa+a")), analyze) == "b+c"


def test_the_same_edit_of_two_fixes_is_made_once() -> None:
    def needs_import(span: Span) -> Fix:
        edits = [Edit(Span(0, 0), "import a\n"), Edit(span, "found")]
        return Fix("Find it", "", Applicability.SAFE, lambda _module: edits)

    text = "lost\nlost\n"
    found = [diagnostic(span, [needs_import(span)]) for span in spans(text, "lost")]
    after = fix_all(analysis(text, found), lambda source: analysis(source.text))
    assert after == "import a\nfound\nfound\n"


def test_unsafe_and_broken_fixes_are_left_alone() -> None:
    known = analysis("lost(a)\n", [diagnostic(Span(0, 7), [UNSAFE]), diagnostic(Span(0, 7), [broken_fix()])])
    assert fix_all(known, analyze_lost) == "lost(a)\n"


def test_a_round_that_breaks_the_syntax_is_taken_back() -> None:
    known = analysis("lost(a)\n", [diagnostic(Span(0, 7), [replacing(Span(0, 7), "(")])])
    assert fix_all(known, analyze_lost) == "lost(a)\n"


def test_fixes_that_make_work_for_each_other_come_to_an_end() -> None:
    def analyze(source: Source) -> Analysis:
        return analysis(source.text, [diagnostic(Span(0, 1), [replacing(Span(0, 0), "a")])])

    assert len(fix_all(analyze(Source("train.py", "x")), analyze)) < 100


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a\nb\nc\n", "a\nB\nc\n"),
        ("", "x"),
        ("a\r\nb", "b"),
        ("a\n\fb\nc", "a\n\fb\nd\nc"),
        ("same\n", "same\n"),
    ],
)
def test_changes_lead_from_one_text_to_the_other(before: str, after: str) -> None:
    edits = changes(before, after)
    assert apply(before, edits) == after
    assert (before == after) == (edits == [])


def test_changes_leave_lines_alone_that_stay() -> None:
    [edit] = changes("a\nb\nc\n", "a\nB\nc\n")
    assert edit == Edit(Span(2, 4), "B\n")
