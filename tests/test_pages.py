"""Every page is documentation, test and proof: what it says is asked of the analyzer and of torch.

`-k test_torch` runs torch's half, `-k test_analyzer` the analyzer's.
"""

from functools import cache
from pathlib import Path

import pytest

from page_checks import analyzer_complaints, form_complaints, torch_complaints, torch_jobs, undocumented_fixes
from pages import Case, Page, load
from torch_side import Outcome, run

RULES = Path(__file__).parent.parent / "server" / "gradvet" / "rules"
STATES = Path(__file__).parent / "states"

RULE_PAGES = [load(path) for path in sorted(RULES.glob("*.md"))]
PAGES = [*RULE_PAGES, *(load(path) for path in sorted(STATES.glob("*.md")))]
CASES = [case for page in PAGES for case in page.cases]

every_page = pytest.mark.parametrize("page", RULE_PAGES, ids=lambda page: page.name)
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)


@cache
def outcomes(name: str) -> dict[str, Outcome]:
    """What torch made of a page, in one process for the whole page."""
    return run([job for case in CASES if case.page == name for job in torch_jobs(case)])


@every_page
def test_form(page: Page) -> None:
    """A rule's page proves its fault and says where the rule is silent on purpose."""
    assert list(form_complaints(page)) == []


@every_case
def test_torch(case: Case) -> None:
    """Torch raises, holds and computes what the page says."""
    assert list(torch_complaints(case, outcomes(case.page))) == []


@every_case
def test_analyzer(case: Case) -> None:
    """The analyzer says what the page says, and its fixes make the page's changes."""
    from gradvet.analysis import analyze

    assert list(analyzer_complaints(case, analyze)) == []


@every_page
def test_analyzer_shows_each_fix(page: Page) -> None:
    """Each fix that a rule offers on its page is shown there by a diff."""
    from gradvet.analysis import analyze

    assert list(undocumented_fixes(page, analyze)) == []


def test_analyzer_rules_and_pages_pair_off() -> None:
    """Each rule has a page and each page a rule."""
    from gradvet.rules import all_rules

    assert sorted(all_rules()) == sorted(page.name for page in RULE_PAGES)
