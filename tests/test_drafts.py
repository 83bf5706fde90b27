"""While a text is edited, what an edit left as it was is not run again, and the answer is what it would be anyway."""

import ast
import random
from pathlib import Path
from typing import Any

import pytest

from gradvet.analysis import Analysis, Draft, analyze
from gradvet.autograd import run as plan
from gradvet.syntax import parts as division
from gradvet.syntax.moved import moved
from gradvet.syntax.parse import parse
from gradvet.syntax.parts import parts
from gradvet.text import Source

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.py"))

HEAD = "import torch\nfrom torch import nn\n\nRATE = 0.1\n"
LOOP = '''

def train{n}(model, loader):
    """Train."""
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    losses = []
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
    return sum(losses) / len(losses)
'''


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let short texts have parts."""
    monkeypatch.setattr(division, "LEAST_LINES", 5)


def told(analysis: Analysis) -> Any:
    """All that an analysis tells, by place."""
    source = analysis.source
    found = [(d.rule.name, d.severity, d.span, d.message, d.notes) for d in analysis.diagnostics]
    states = sorted(
        (source.span(node), type(node).__name__, state.text, state.reaches, len(state.storage))
        for node, state in analysis.facts.states.items()
    )
    return found, states, analysis.problems


def edited(text: str, dice: random.Random) -> str:
    """A text with one line put in, doubled, taken out, indented or with a character changed."""
    rows = text.splitlines(keepends=True) or [""]
    at = dice.randrange(len(rows))
    row = rows[at]
    column = dice.randrange(len(row) + 1)
    new = dice.choice([
        "# 日本 😀\n" + row,
        "\n" + row,
        '    """Words."""\n' + row,
        "        # there\n" + row,
        row + row,
        "",
        "    " + row,
        row[:column] + dice.choice("ax1 .#()") + row[column:],
    ])  # fmt: skip
    return "".join([*rows[:at], new, *rows[at + 1 :]])


@pytest.mark.parametrize("path", PROGRAMS[::3], ids=lambda path: path.stem)
def test_an_edited_text_is_answered_as_a_new_one(path: Path, small: None) -> None:
    dice = random.Random(path.stem)  # noqa: S311
    text = path.read_text(encoding="utf-8")
    draft = Draft()
    analyze(Source("file.py", text), draft=draft)
    for _ in range(6):
        text = edited(text, dice)
        source = Source("file.py", text)
        assert told(analyze(source, draft=draft)) == told(analyze(source)), text


def runs_of(monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """The names that each part defines which is run from now on."""
    seen: list[set[str]] = []
    once = plan._run

    def counted(module: Any, **options: Any) -> Any:
        seen.append({node.name for node in module.tree.body if isinstance(node, ast.FunctionDef)})
        return once(module, **options)

    monkeypatch.setattr(plan, "_run", counted)
    return seen


def test_only_the_part_that_was_edited_is_run_again(small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    text = HEAD + "".join(LOOP.format(n=n) for n in range(3))
    draft = Draft()
    first = analyze(Source("file.py", text), draft=draft)
    assert len(first.diagnostics) == 3
    seen = runs_of(monkeypatch)
    start, end = text.index("def train1"), text.index("def train2")
    second = text[start:end].replace("    losses = []\n", "    losses = []\n    seen = 0\n")
    changed = text[:start] + second + text[end:]
    after = analyze(Source("file.py", changed), draft=draft)
    assert seen == [{"train1"}]
    assert told(after) == told(analyze(Source("file.py", changed)))
    assert len(after.diagnostics) == len(first.diagnostics)


@pytest.mark.parametrize(
    "change",
    [
        ("import torch\n", "# first\nimport torch\n"),
        ('"""Train."""', '"""Train it\n    well."""'),
        ("\n\n\ndef", "\n\n\n\ndef"),
    ],
    ids=["comment", "docstring", "blank line"],
)
def test_words_and_space_run_nothing(change: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    text = HEAD + LOOP.format(n=0)
    draft = Draft()
    analyze(Source("file.py", text), draft=draft)
    seen = runs_of(monkeypatch)
    changed = Source("file.py", text.replace(*change))
    after = analyze(changed, draft=draft)
    assert not seen
    assert told(after) == told(analyze(changed))
    assert after.diagnostics


def test_a_comment_that_hides_a_finding_hides_it_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    text = HEAD + LOOP.format(n=0)
    draft = Draft()
    assert analyze(Source("file.py", text), draft=draft).diagnostics
    seen = runs_of(monkeypatch)
    hidden = text.replace("losses.append(loss)", "losses.append(loss)  # gradvet: ignore meant")
    assert not analyze(Source("file.py", hidden), draft=draft).diagnostics
    assert not seen


def test_a_text_that_was_broken_for_a_while_follows_the_last_whole_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = HEAD + LOOP.format(n=0)
    draft = Draft()
    analyze(Source("file.py", text), draft=draft)
    assert analyze(Source("file.py", text + "def broken(:\n"), draft=draft).problems
    seen = runs_of(monkeypatch)
    again = Source("file.py", text + "# done\n")
    assert told(analyze(again, draft=draft)) == told(analyze(again))
    assert seen == [{"train0"}]  # of the one without a draft


def names(text: str) -> list[list[str]]:
    """What each part of a text defines, but for what all have."""
    module = parse(Source("file.py", text))
    found = parts(module)
    shared = set(found[0]).intersection(*found[1:]) if len(found) > 1 else set[ast.stmt]()
    return [[str(getattr(one, "name", "")) for one in part if one not in shared] for part in found]


LONG = "".join(f"    x = x + {n}\n" for n in range(6)) + "    return x\n"


def two_functions(first: str, body: str) -> str:
    """A text with two functions, and something else before them."""
    return f"import torch\n{first}def a(x):\n    {body}\n{LONG}def b(x):\n    {body}\n{LONG}"


@pytest.mark.parametrize(
    ("first", "body"),
    [
        ("", "pass"),
        ("LIMIT = (1, -2)\n", "print(LIMIT)"),
        ("log = get_logger(__name__)\n", "log.info(x)"),
        ("try:\n    import apex\nexcept ImportError:\n    apex = None\n", "apex.init()"),
    ],
    ids=["nothing", "constants", "logger", "import"],
)
def test_what_nobody_changes_keeps_nothing_together(first: str, body: str, small: None) -> None:
    assert names(two_functions(first, body)) == [["a"], ["b"]]


@pytest.mark.parametrize(
    ("first", "body"),
    [
        ("CACHE = {}\n", "print(CACHE)"),
        ("model = load('x')\n", "model(x)"),
        ("for n in range(3):\n    print(n)\n", "pass"),
    ],
    ids=["dict", "object", "loop"],
)
def test_what_may_be_changed_keeps_its_users_together(first: str, body: str, small: None) -> None:
    assert len(names(two_functions(first, body))) == 1


@pytest.mark.parametrize("mention", ["a(x)", "globals()['a'](x)", "build('a')", "sys.modules[__name__].a"])
def test_who_says_or_may_say_a_name_hangs_together_with_it(mention: str, small: None) -> None:
    text = f"import sys\ndef a(x):\n{LONG}def b(x):\n    {mention}\n{LONG}"
    assert len(names(text)) == 1


def test_a_text_is_followed_only_where_both_can_be_read() -> None:
    whole = parse(Source("file.py", HEAD))
    assert moved(whole, Source("file.py", HEAD + "def (:\n")) is None
    assert moved(parse(Source("file.py", "def (:\n")), Source("file.py", HEAD)) is None
    assert moved(parse(Source("file.py", "")), Source("file.py", HEAD)) is None
