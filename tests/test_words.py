"""What the server says in Simplified Chinese: all of it, with the same code and numbers in it, and no more."""

import re
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from gradvet.analysis import analyze
from gradvet.errors.explanation import Explanation, Suspect
from gradvet.errors.known import KNOWN
from gradvet.errors.page import page
from gradvet.lsp.settings import from_settings
from gradvet.project import Project
from gradvet.rules import all_rules
from gradvet.text import Source, Span
from gradvet.views import summary
from gradvet.words import ENGLISH, words_for
from gradvet.words.catalogue import TOPICS, topic_entries
from gradvet.words.said import Said, lines_of
from gradvet.words.skeleton import HOLE, skeleton
from pages import load
from spoken import spoken

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "server" / "gradvet" / "rules").glob("*.md"))
PROGRAMS = [*sorted((ROOT / "tests" / "programs").glob("*.py")), *sorted((ROOT / "examples").glob("*.py"))]
ENTRIES = {topic: topic_entries("zh_cn", topic) for topic in TOPICS}
CHINESE = words_for("zh-cn")
_FILLED = re.compile(r"\{(\d+)\}")
_CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")


class Noting(dict[str, str]):
    """A catalogue that notes which of its entries were asked for."""

    def __init__(self, entries: dict[str, str]) -> None:
        super().__init__(entries)
        self.used: set[str] = set()

    def __getitem__(self, key: str) -> str:
        self.used.add(key)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        """As a dictionary does."""
        self.used.add(key)
        return super().get(key, default)


# Texts for which no page and no program has a case, by who says them. They are looked up all the same.
SELDOM = {
    "commands, actions and progress": (
        "apply all safe fixes",
        "checking the workspace",
        "1 finding in 1 file of the workspace",
        "2 findings in 1 file of the workspace",
        "7 findings in 3 files of the workspace",
        "this fix moves statements, which takes LibCST, and that is not there for CPython 3.15.0 on this system",
        "this fix moves statements, which takes LibCST, and that is not there for PyPy 3.11.9 on this system",
    ),
    "settings on the disk": (
        "/w/a b/pyproject.toml: not valid TOML: Expected '=' after a key (at line 1, column 5)",
        "/w/gradvet.toml: cannot be read: Permission denied",
    ),
    "lines of notebooks and of other modules": ("`x` line 3 of models/net.py", "`x` (line 2 of cell 3)"),
    "more than one names": ("no gradient reaches `a`, `b`, `c`, `d`, ...",),
    "rules, where an expression has no name of its own": (
        "its root was computed under the `no_grad()` that covers this backward: there is no graph, and torch raises",
        "the tensor has more than one element, and `backward()` without a gradient raises",
        "a tensor was computed: backward passes its gradient on and does not keep it, so `.grad` is None",
        "the detached tensor shares storage with its source: this edit changes its source too",
        "the value is a computed tensor that requires grad: autograd does not cross processes, and torch refuses to send it",
        "a thread starts with grad mode on: the work records its graph, in spite of `torch.no_grad()`",
        "`torch.set_grad_enabled(False)` is still in force when the function returns: `loss.backward()` raises for it",
        (
            "this hook changes the gradient in place, which other branches of the graph may be given as well: "
            "their gradients change too; return a new tensor"
        ),
        "the array shares memory with the array made of it: this edit changes the array made of it too",
        "`w` is no leaf where the conversion has something to change: the optimizer refuses it there",
        "a view says that it requires grad, but it was made with grad mode off: no gradient goes on from here",
        "`average` is a running average that leads back to every step: what is new goes in with its graph",
        "`retain_graph` here: what the graph of what it starts from has saved is freed on the way.",
        "this is a module: `requires_grad` on it is an attribute like any other, and its parameters stay as they are",
        (
            "`ctx.x` holds the output of this call, whose graph holds `ctx`: memory that goes only when the garbage "
            "collector runs; use `ctx.save_for_backward`"
        ),
        (
            "`ctx.x` holds the input of this call unseen by autograd: a change in place before the backward makes the "
            "gradient wrong, and no error; use `ctx.save_for_backward`"
        ),
    ),
    "rules, in the rarer of their cases": (
        "grad mode is on where it is called",
        "it is, or belongs to, a model",
        "a subclass of `Net` has parameters that train",
        "an optimizer is given parameters that train",
        "this term is a constant in the loss and adds no gradient through them",
        "this term is a constant in the loss and adds no gradient through what is drawn",
        "the gradient stops here",
        "left torch here",
        "`checkpoint()` gives no graph, since nothing that it is given requires grad",
        "`all_gather()` copies values between processes, and no graph",
        "`grad()` without `create_graph` gives plain numbers",
        "`model.train` is only named, not called: dropout and normalisation stay as they are",
        "`x.detach_` is only named, not called: the graph stays",
        "`x.requires_grad_` is only named, not called: the flag stays as it is",
        "`x.cpu` is only named, not called: nothing happens",
        "`x.detach` is the method itself, not its result: the tensor is lost",
        "`y` shares storage with `x`: this edit changes `x` too, and torch cannot see it",
        (
            "this write to `w` goes through `.data`, which torch does not watch; `torch.nn.init` works under `no_grad` itself: "
            "`.data` is not needed"
        ),
        "`backward` of `F` returns nothing for 1 input of `forward`: torch raises when it is used",
        "`backward` of `F` returns 1 gradient for 1 input of `forward`: torch raises when it is used",
        "`backward` of `F` returns 2 gradients for 1 input of `forward`: torch raises when it is used",
        "`torch.set_grad_enabled(False)` is still in force on one way out of `f`: `loss.backward()` raises for it",
        "`.detach()` makes `term` a constant in the loss: it adds no gradient",
        "`.data` cuts the only way for a gradient to `w`",
        "`torch.no_grad()` around `f(x)` cuts the only way for a gradient to `w`",
        "`F.relu(x, inplace=True)` changes in place what `exp` saved for backward; a backward will raise",
        "`torch.no_grad()` on the `forward` of `Net`: its parameters get no gradient, and the backward raises",
        "the comparison `a > b` is recorded but has no backward: `loss.backward()` raises when it comes here",
        "the comparison `a > b` has a gradient that is zero everywhere: no gradient reaches `w`",
        "`self.parts` is a plain tuple: `Net` does not see the modules in it, and its optimizer never moves them",
        "`self.parts` is a plain tuple: `Net` does not see the parameters in it, and `parameters()` does not list them",
        "`self.w` requires grad and is no Parameter: `Net` does not see it, and `parameters()` does not list it",
        "the step before",
        "unscaled here first",
        (
            "`h`, `c` go into the next iteration with their graph, and `retain_graph=True` keeps it: "
            "each `loss.backward()` runs through all earlier iterations"
        ),
        "`best` holds the model's own tensors, not copies: it changes with every step",
        "there is no finding in this file to hide",
        "there is no finding on this line to hide",
    ),
    "reasons": (
        "weight_v",
        "what `f(x)` gives",
        "parameters of a subclass",
        "a parameter",
        "a part of `pair`",
        "state of the optimizer",
        "parameters that train",
    ),
    "hovers and paths": (
        "Hides every finding of Gradvet in this file.",
        "`.grad_fn` here: unknown: the node of the graph that made `x`.",
        "`.is_leaf` here: false: an op made it, and its gradient is passed on.",
        "But: `retain_graph=True` keeps all that this graph has saved, and no other backward goes through it.",
        "`enable_grad` here: from line 3, ops are recorded again.",
        "… 12 more ops …",
        "`x.data` leaves the graph behind",
    ),
}
WRONG = {
    "gradvet.toml": ("sel = 1\n", 'select = 3\nignore = ["leek"]\n'),
    "pyproject.toml": (
        "[tool]\ngradvet = 3\n",
        '[tool.gradvet]\nslect = []\nselect = 3\nignore = ["leek"]\n',
    ),
}


@cache
def everything() -> tuple[frozenset[str], frozenset[str]]:
    """What is said of all pages, programs, messages of torch and wrong settings: lines, and Markdown."""
    programs = [case.program for path in PAGES for case in load(path).cases]
    programs += [path.read_text(encoding="utf-8") for path in PROGRAMS]
    lines = {text for texts in SELDOM.values() for text in texts} | set(_complaints())
    pages = {summary(rule.page) for rule in all_rules().values()} | set(_explained())
    told: set[tuple[object, ...]] = set()
    for program in programs:
        some, more = spoken(program, told)
        lines.update(some)
        pages.update(more)
    return frozenset(lines), frozenset(pages)


def _explained() -> list[str]:
    """The page of every message that is known: with a cause, with guesses, and with nothing."""
    analysis = analyze(
        Source("/w/a.py", "import torch\ntotal = 0\nx = torch.ones(3, requires_grad=True)\n" + LOOP)
    )
    [found, *_] = analysis.diagnostics
    guess = Suspect(Span(0, 6), "torch raised it on this line, which is where the fault is")
    causes = [(Suspect(found.span, found.message, found),), (guess,), ()]
    return [
        page(Explanation(known, analysis.module, (1,), suspects)) for known in KNOWN for suspects in causes
    ]


LOOP = "for step in range(3):\n    loss = (x * 2).sum()\n    loss.backward()\n    total = total + loss\n"


def _complaints() -> list[str]:
    sent: list[Any] = [
        3,
        {"select": 3, "codeLens": 3, "inlayHints": 3, "selct": []},
        {"inlayHints": {"leav": True}, "ignore": ["graph-retaind"]},
    ]
    told = [complaint for one in sent for complaint in from_settings(one).complaints]
    with tempfile.TemporaryDirectory() as folder:
        for name, texts in WRONG.items():
            for text in texts:
                (Path(folder) / name).write_text(text, encoding="utf-8")
                Project(told.append).settings(Path(folder))
            (Path(folder) / name).unlink()
    return told


def test_all_that_is_said_has_an_entry_and_every_entry_is_said() -> None:
    """Whatever any view says is Chinese but for code and torch's own words. Each part is looked up alone."""
    noting = Noting({key: text for entries in ENTRIES.values() for key, text in entries.items()})
    words = Said(noting)
    lines, pages = everything()
    unsaid = {skeleton(line).key for text in lines for line in text.split("\n") if words.find(line) is None}
    for text in pages:
        unsaid |= {skeleton(line).key for _, line in lines_of(text) if words.find(line) is None}
    assert sorted(unsaid) == []
    assert sorted(set(noting) - noting.used) == []


@pytest.mark.parametrize("topic", TOPICS)
def test_an_entry_has_the_holes_the_code_and_the_numbers_of_its_key(topic: str) -> None:
    """What is the case at hand must not get lost, nor come from nowhere."""
    for key, text in ENTRIES[topic].items():
        assert {str(number) for number in range(key.count(HOLE))} == set(_FILLED.findall(text)), key
        if (whole := _CODE.fullmatch(key)) is not None:  # words between quotes, not code
            assert " " in whole[2]
            continue
        assert {match[2] for match in _CODE.finditer(key)} == {match[2] for match in _CODE.finditer(text)}, (
            key
        )


def test_no_entry_stands_twice() -> None:
    """Where two topics say the same, they must not come to differ."""
    keys = [key for entries in ENTRIES.values() for key in entries]
    assert sorted({key for key in keys if keys.count(key) > 1}) == []


@pytest.mark.parametrize(
    ("english", "chinese"),
    [
        (
            "`a` shares storage with `b`: this edit changes `b` too",
            "`a` 与 `b` 共享存储：这次修改也会改变 `b`",
        ),
        ("no gradient reaches `a.w`, `a.b`, ...", "梯度到不了 `a.w`、`a.b` 等"),
        ("this term is a constant in the loss and adds no gradient", "这一项在 loss 中只是常数，不贡献梯度"),
        (
            "requires grad · not a leaf · grad_fn AddBackward0 or MulBackward0",
            "requires_grad=True · 非 leaf · grad_fn AddBackward0 或 MulBackward0",
        ),
        (
            "*shares storage with* `a` ([line 3](file:///w/a.py#L3)), `b` (line 2 of cell 1)",
            "*共享存储的还有* `a`（[第 3 行](file:///w/a.py#L3)）、`b`（单元格 1 第 2 行）",
        ),
        ("parameters of `Net`", "`Net` 的参数"),
        ("`x` line 3 of models/net.py", "`x` models/net.py 第 3 行"),
        ("Ignore here: # gradvet: ignore[graph-retained]", "忽略这一处：# gradvet: ignore[graph-retained]"),
        (
            "/w/a.toml: not valid TOML: Expected '=' (at line 1)",
            "/w/a.toml：不是有效的 TOML：Expected '=' (at line 1)",
        ),
        ("", ""),
        ("what nobody has said, of `x`, yet", "what nobody has said, of `x`, yet"),
        ("`a` has no gradient: what nobody has said", "`a` has no gradient: what nobody has said"),
    ],
)
def test_a_text_is_said_whole_or_not_at_all(english: str, chinese: str) -> None:
    """Parts that are known are no use beside parts that are not."""
    assert chinese == CHINESE.say(english)


def test_code_in_markdown_stays_as_it_is() -> None:
    """A fence may hold what reads like words."""
    text = "- *why* leaf\n\n```python\n# leaf\nno grad\n```\nleaf"
    assert CHINESE.page(text) == "- *原因* leaf\n\n```python\n# leaf\nno grad\n```\nleaf"


@pytest.mark.parametrize("locale", ["zh", "zh-cn", "zh-CN", "zh_CN.UTF-8", "ZH-tw"])
def test_a_locale_is_read_by_its_language(locale: str) -> None:
    assert words_for(locale) is CHINESE


@pytest.mark.parametrize("locale", [None, "", "en", "en-US", "de", "zhx"])
def test_others_read_english(locale: str | None) -> None:
    assert words_for(locale) is ENGLISH
    assert ENGLISH.say("line 3") == "line 3"


def test_a_text_that_nobody_knows_takes_no_time() -> None:
    """Looking for parts must not be tried in every combination."""
    assert isinstance(CHINESE, Said)
    assert CHINESE.find(", ".join(f"word{number} of some: such; a" for number in range(60))) is None
