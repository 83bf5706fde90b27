"""While a text is edited, what an edit left as it was is not run again, and the answer is what it would be anyway."""

import ast
import random
from pathlib import Path
from typing import Any

import pytest

from gradvet.analysis import Analysis, Draft, analyze
from gradvet.autograd import run as plan
from gradvet.syntax import parts as division
from gradvet.syntax.cells import CellSource
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
        followed, new = analyze(source, draft=draft), analyze(source)
        if followed.module.former:  # what will not parse now is as it was
            assert followed.problems == new.problems, text
        else:
            assert told(followed) == told(new), text
        for node in ast.walk(followed.module.tree):
            if hasattr(node, "lineno"):
                span = source.span(node)
                assert 0 <= span.start <= span.end <= len(text), ast.dump(node)


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


def test_a_broken_text_is_followed_without_what_will_not_parse(
    small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = HEAD + "".join(LOOP.format(n=n) for n in range(3))
    draft = Draft()
    analyze(Source("file.py", text), draft=draft)
    seen = runs_of(monkeypatch)
    start = text.index("    losses = []\n", text.index("def train1"))
    for typed in ("for", "for x", "for x in (", "for x in ()", "for x in ():"):  # a line before another one
        source = Source("file.py", f"{text[:start]}    {typed}\n{text[start:]}")
        after = analyze(source, draft=draft)
        assert len(after.problems) == 1
        assert not seen  # it says the same all the while
        assert told(after) == told(analyze(source))
        seen.clear()


def test_a_text_that_begins_broken_is_followed_too(small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    text = HEAD + "".join(LOOP.format(n=n) for n in range(3))
    draft = Draft()
    assert analyze(Source("file.py", f"{text}def broken(:\n"), draft=draft).problems
    seen = runs_of(monkeypatch)
    after = analyze(Source("file.py", f"{text}def broken(): pass\n"), draft=draft)
    assert not after.problems
    assert [part & {"train0", "train1"} for part in seen] == [set()]
    assert told(after) == told(analyze(Source("file.py", f"{text}def broken(): pass\n")))


TYPED = """import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(3, 3)
        self.scale = 2.0

    def forward(self, x):
        return self.body(x) * self.scale


def train(net, loader):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    seen = []
    for x, y in loader:
        try:
            loss = F.mse_loss(net(x), y)
        except RuntimeError:
            raise
        optimizer.zero_grad()
        if len(seen):
            print(seen[-1])
        else:
            print(loss.item())
        loss.backward()
        optimizer.step()
        seen.append(loss)
    return seen


def evaluate(net, loader):
    net.eval()
    with torch.no_grad():
        total = sum(F.mse_loss(net(x), y) for x, y in loader)
    return total


train(Net(), [(torch.ones(3), torch.ones(3))] * 100)
evaluate(Net(), [(torch.ones(3), torch.ones(3))])
"""


@pytest.mark.parametrize(
    ("line", "typed"),
    [
        ("optimizer.zero_grad()", "optimizer.zero_grad("),
        ("optimizer.step()", "optimizer."),
        ("for x, y in loader:", "for x, y in load"),
        ("for x, y in loader:", "fo"),
        ("with torch.no_grad():", "with torch.no_"),
        ("def forward(self, x):", "def forward(self, x"),
        ("class Net(nn.Module):", "class Net(nn.Mod"),
        ("class Net(nn.Module):", "cla"),
        ("import torch.nn.functional as F", "import torch.nn.functional a"),
        ("from torch import nn", "from torch import"),
        ("return self.body(x) * self.scale", "return self.body(x) *"),
        ("self.scale = 2.0", "self.scale ="),
        ("raise", "raise ("),
        ("loss = F.mse_loss(net(x), y)", "loss = F.mse_loss(net(x), "),
        ("print(loss.item())", "print(loss.item("),
        ("except RuntimeError:", "except RuntimeErr("),
        ("train(Net(), [(torch.ones(3), torch.ones(3))] * 100)", "train(Net(), [(torch.ones(3), "),
        ("net.eval()", "net.eval(\N{HIRAGANA LETTER A}"),
    ],
)
def test_what_will_not_parse_is_taken_as_it_was(
    line: str, typed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = Draft()
    before = [(d.rule.name, d.message) for d in analyze(Source("file.py", TYPED), draft=draft).diagnostics]
    assert [name for name, _ in before] == ["graph-retained"]
    seen = runs_of(monkeypatch)
    source = Source("file.py", TYPED.replace(line, typed, 1))
    after = analyze(source, draft=draft)
    assert not seen
    assert [(d.rule.name, d.message) for d in after.diagnostics] == before
    assert after.problems
    gone = after.module.gone
    assert gone
    assert not gone.intersection(after.facts.states)
    row = source.row_column(after.problems[0].span.start)[0]
    spans = [source.span(node) for node in gone if hasattr(node, "end_lineno")]
    assert all(source.row_column(s.start)[0] <= row <= source.row_column(s.end)[0] for s in spans)
    assert all(source[source.span(node)] for node in gone if isinstance(node, ast.expr))
    again = Source("file.py", TYPED)
    assert told(analyze(again, draft=draft)) == told(analyze(again))


def test_a_notebook_is_followed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def notebook(*changes: tuple[str, str]) -> CellSource:
        cells = ["%matplotlib inline\n!pip install torch\n" + TYPED[:40], *TYPED[40:].split("\n\n\n")]
        for old, new in changes:
            cells = [cell.replace(old, new) for cell in cells]
        return CellSource("file.ipynb", cells)

    draft = Draft()
    before = [(d.rule.name, d.message) for d in analyze(notebook(), draft=draft).diagnostics]
    assert [name for name, _ in before] == ["graph-retained"]
    seen = runs_of(monkeypatch)
    for change in (
        ("%matplotlib inline", "# 日本 😀\n%matplotlib inline"),
        ("optimizer.zero_grad()", "optimizer.zero_grad("),
        ("def evaluate", "def evalu:ate"),
        ("!pip install torch", '"""'),
    ):
        after = analyze(notebook(change), draft=draft)
        assert [(d.rule.name, d.message) for d in after.diagnostics] == before
    assert not seen
    assert told(analyze(notebook(), draft=draft)) == told(analyze(notebook()))


def test_a_finding_is_not_told_of_what_will_not_parse() -> None:
    draft = Draft()
    assert analyze(Source("file.py", TYPED), draft=draft).diagnostics
    broken = analyze(Source("file.py", TYPED.replace("seen.append(loss)", "seen.append(loss")), draft=draft)
    assert not broken.diagnostics
    other = analyze(Source("file.py", TYPED.replace("seen.append(loss)", "")), draft=draft)
    assert not other.module.former
    assert told(other) == told(analyze(other.source))


def test_a_fix_that_would_change_what_will_not_parse_is_not_offered() -> None:
    text = """import torch
w = torch.ones(3, requires_grad=True)
def show(x):
    kept = x * w
    return kept.numpy()
show(torch.ones(3))
"""
    draft = Draft()
    whole = analyze(Source("file.py", text), draft=draft)
    assert all(d.fixes for d in whole.diagnostics)
    assert len(whole.diagnostics) == 1
    broken = analyze(Source("file.py", text.replace("x * w", "x * w +")), draft=draft)
    assert [d.message for d in broken.diagnostics] == [d.message for d in whole.diagnostics]
    for diagnostic in broken.diagnostics:
        for fix in diagnostic.fixes:
            assert all(edit.span.start > text.index("return") for edit in broken.edits(fix))


def test_a_text_is_followed_only_where_it_can_be_told_apart() -> None:
    whole = parse(Source("file.py", HEAD))
    broken = moved(whole, Source("file.py", HEAD + "def (:\n"))
    assert broken is not None
    assert broken.tree.body == whole.tree.body
    assert len(broken.problems) == 1
    assert moved(whole, Source("file.py", HEAD + "\0")) is None
    assert moved(parse(Source("file.py", "")), Source("file.py", HEAD)) is None
