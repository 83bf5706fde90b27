"""How a page is read: what is unclear is refused, and a rule's page has its form."""

import pytest

from page_checks import form_complaints
from pages import Page, PageError
from pages import parse as page


def block(info: str, *lines: str) -> str:
    """A fenced block."""
    return "\n".join((f"```{info}", *lines, "```", ""))


def test_expectations_leave_the_program_as_a_user_would_write_it() -> None:
    """Comments that expect go, other comments and strings stay, and no line moves."""
    text = """        # a

        ```python
        a = "# error: [x]"  # kept
        b = 1  # why not  # error: [some-rule] "a # b"
        c = 2
        ```
        """
    (case,) = page("a", "\n".join(line[8:] for line in text.splitlines())).cases
    assert case.program.splitlines() == ['a = "# error: [x]"  # kept', "b = 1  # why not", "c = 2"]
    assert [(e.row, e.kind, e.name, e.text) for e in case.findings] == [(2, "error", "some-rule", "a # b")]


UNCLEAR = {
    "not closed": "# a\n```python\nx = 1\n",
    "what is a block `python prof`": block("python", "x = 1") + block("python prof", "assert x"),
    "goes on after its proof": block("python", "x = 1")
    + block("python proof", "assert x")
    + block("python", "y = 1"),
    "before any program": block("python proof", "assert True"),
    "asserts nothing": block("python", "x = 1") + block("python proof", "print(x)"),
    "fits 0 places": block("python", "x = 1") + block("diff Change it (safe)", "-y = 1", "+y = 2"),
    "fits 2 places": block("python", "x = 1", "x = 1") + block("diff Change it (safe)", "-x = 1", "+x = 2"),
    "a diff line begins with": block("python", "x = 1") + block("diff Change it (safe)", "x = 1", "+x = 2"),
    "cannot read `# error: rule`": block("python", "x = 1  # error: rule"),
    "cannot read `# revealed: int`": block("python", "reveal_grad(1)  # revealed: int"),
    "on others": block("python", "reveal_grad(1)"),
    "two cases have one heading": "## a\n"
    + block("python", "x = 1")
    + "## b\n"
    + block("python")
    + "## a\n"
    + block("python"),
}


@pytest.mark.parametrize("text", UNCLEAR.values(), ids=UNCLEAR)
def test_an_unclear_page_is_refused(text: str, request: pytest.FixtureRequest) -> None:
    """A typing mistake on a page must not turn a check off."""
    with pytest.raises(PageError) as refusal:
        page("a", text)
    assert request.node.callspec.id in str(refusal.value)


def test_hunks_are_found_by_their_lines() -> None:
    """One diff may change several places; blank lines are context."""
    program = block("python", "a = 1", "", "b = 2", "c = 3")
    diff = block("diff Change it (safe)", " a = 1", "", "-b = 2", "+b = 5", "@@", "-c = 3")
    (case,) = page("a", program + diff).cases
    assert case.repairs[0].text == "a = 1\n\nb = 5\n"


def rule_page(**changes: str) -> Page:
    """A rule's page of one fault and three silent cases, with some part of it changed."""
    parts = {
        "title": "# bad\n",
        "fault": block("python", "x = 1  # warning: [bad]") + block("python proof", "assert x"),
        "silent": "## Silent on purpose\n" + "".join(f"### {n}\n" + block("python", "x = 1") for n in "abc"),
    }
    return page("bad", "".join((parts | changes).values()))


def test_a_rule_page_of_the_right_form_passes() -> None:
    """A title, a proved fault and three silent cases are enough."""
    assert list(form_complaints(rule_page())) == []


FORMS = {
    "the title is `good`": {"title": "# good\n"},
    "no case shows the fault": {"fault": block("python", "x = 1")},
    "nothing proves the fault": {"fault": block("python", "x = 1  # warning: [bad]")},
    "1 cases are silent": {"silent": "## Silent on purpose\n### a\n" + block("python", "x = 1")},
    "is to be silent and expects": {
        "silent": "## Silent on purpose\n### a\n" + block("python", "x = 1  # info: [bad]")
    },
}


@pytest.mark.parametrize("changes", FORMS.values(), ids=FORMS)
def test_a_rule_page_of_another_form_does_not(
    changes: dict[str, str], request: pytest.FixtureRequest
) -> None:
    """A rule whose page proves nothing, or does not say where it is silent, is not merged."""
    assert request.node.callspec.id in "\n".join(form_complaints(rule_page(**changes)))
