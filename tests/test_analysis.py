"""From events to diagnostics: which rules are asked, what is kept, and what a failure costs."""

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pytest

import gradvet.analysis
from gradvet.analysis import Analysis, analyze
from gradvet.autograd.events import Event
from gradvet.autograd.facts import Facts
from gradvet.config import Config
from gradvet.finding import Applicability, Finding, Fix, Note, Severity
from gradvet.rules import Rule
from gradvet.syntax import edits
from gradvet.syntax.parse import Module
from gradvet.text import Source, apply

Check = Callable[[Event], Iterator[Finding]]


@dataclass(frozen=True, slots=True)
class Called(Event):
    """A call of one of the names below."""


@dataclass(frozen=True, slots=True)
class Named(Event):
    """Any other name."""


def run(module: Module, read: object = None, runs: object = None) -> Facts:
    """An engine that sees calls, and names that are only loaded, in the order of the tree."""
    events: list[Event] = []
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call):
            events.append(Called(node, ()))
        elif isinstance(node, ast.Name) and node.id != "torch":
            events.append(Named(node, ()))
    return Facts(events, {})


def lost(event: Event) -> Iterator[Finding]:
    """Report calls of `lost`."""
    match event.node:
        case ast.Call(func=ast.Name(id="lost") as name, args=[first, *_]):
            fix = Fix("Find it", "", Applicability.SAFE, lambda module: edits.replace(module, name, "found"))
            yield Finding(
                event.node, "`lost` loses it", (Note("why", "this", first), Note("held", "there")), (fix,)
            )


def shouted(event: Event) -> Iterator[Finding]:
    """Report names in capitals; more so in a second context."""
    match event.node:
        case ast.Name(id=name) if name.isupper():
            yield Finding(event.node, f"`{name}` shouts")
            yield Finding(event.node, f"`{name}` shouts twice", severity=Severity.ERROR)
            yield Finding(event.node, f"`{name}` shouts thrice", severity=Severity.WARNING)


def broken(event: Event) -> Iterator[Finding]:
    """Fail on the second event."""
    if getattr(event.node, "id", "") == "bad":
        message = "out of order"
        raise KeyError(message)
    yield Finding(event.node, "fine so far")


RULES = [
    Rule("lost-thing", "leak", Severity.WARNING, (Called,), lost),
    Rule("shouted-name", "mode", Severity.INFO, (Named, Called), shouted),
]


def looked_at(
    monkeypatch: pytest.MonkeyPatch, text: str, rules: Sequence[Rule] = RULES, config: Config = Config()
) -> Analysis:
    """An analysis by the engine and the rules above."""
    monkeypatch.setattr(gradvet.analysis, "run", run)
    monkeypatch.setattr(gradvet.analysis, "all_rules", lambda: {rule.name: rule for rule in rules})
    return analyze(Source("x.py", text), config)


def told(analysis: Analysis) -> list[tuple[int, str, str, str]]:
    """Row, severity, rule and message of each diagnostic."""
    return [
        (
            analysis.source.row_column(found.span.start)[0],
            found.severity.value,
            found.rule.name,
            found.message,
        )
        for found in analysis.diagnostics
    ]


LOST = "warning", "lost-thing", "`lost` loses it"
SHOUT = "error", "shouted-name", "`A` shouts twice"


def test_each_rule_sees_its_events(monkeypatch: pytest.MonkeyPatch) -> None:
    """What they say comes sorted by place, and the worst of what one says of one place is kept."""
    analysis = looked_at(monkeypatch, "import torch\nx = A\nlost(y)\nlost(A)\n")
    assert [(2, *SHOUT), (3, *LOST), (4, *LOST), (4, *SHOUT)] == told(analysis)


def test_notes_have_places_and_fixes_have_edits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A note of no place has none."""
    analysis = looked_at(monkeypatch, "import torch\nlost('🔥', 汉)\n")
    (found,) = analysis.diagnostics
    assert [("why", "this", "'🔥'"), ("held", "there", None)] == [
        (note.label, note.text, note.span and analysis.source[note.span]) for note in found.notes
    ]
    assert "import torch\nfound('🔥', 汉)\n" == apply(analysis.source.text, analysis.edits(found.fixes[0]))


@pytest.mark.parametrize(
    ("config", "names"),
    [
        ({}, ["lost-thing", "shouted-name"]),
        ({"select": {"lost-thing"}}, ["lost-thing"]),
        ({"select": {"mode"}}, ["shouted-name"]),
        ({"ignore": {"mode"}}, ["lost-thing"]),
        ({"select": {"leak", "mode"}, "ignore": {"lost-thing"}}, ["shouted-name"]),
    ],
)
def test_only_chosen_rules_are_asked(
    monkeypatch: pytest.MonkeyPatch, config: dict[str, set[str]], names: list[str]
) -> None:
    """By their own names or by that of their family."""
    chosen = Config(**{key: frozenset(names) for key, names in config.items()})
    analysis = looked_at(monkeypatch, "import torch\nlost(A)\n", config=chosen)
    assert names == [found.rule.name for found in analysis.diagnostics]


SUPPRESSED = [
    "lost(A)  # gradvet: ignore[lost-thing]",
    "lost(A)  # gradvet: ignore[leak]",
    "lost(\n    A,\n)  # gradvet: ignore[lost-thing]",
    "lost(  # gradvet: ignore[lost-thing]\n    A,\n)",
    "x = [  # gradvet: ignore[lost-thing]\n    1,\n    lost(\n        A\n    ),\n]",
    "x = [\n    1,\n    lost(A),  # gradvet: ignore[lost-thing]\n]",
    "if lost(\n    A\n):  # gradvet: ignore[lost-thing]\n    pass",
]


@pytest.mark.parametrize("text", SUPPRESSED)
def test_a_comment_hides_a_finding(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """On the first or last line of it or of its statement, and of no other rule."""
    analysis = looked_at(monkeypatch, f"import torch\n{text}\n")
    assert ["shouted-name"] == [found.rule.name for found in analysis.diagnostics]


def test_a_comment_inside_a_block_hides_nothing_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last line of a block's body says nothing of its head."""
    analysis = looked_at(monkeypatch, "import torch\nwhile lost(y):\n    x = 1  # gradvet: ignore\n")
    assert [(2, *LOST)] == told(analysis)


def test_a_file_can_be_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a comment at its top."""
    analysis = looked_at(monkeypatch, "# gradvet: ignore-file[lost-thing]\nimport torch\nlost(A)\n")
    assert [(3, *SHOUT)] == told(analysis)


def test_a_file_that_does_not_speak_of_torch_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """But its syntax is looked at."""
    analysis = looked_at(monkeypatch, "lost(y)\nx = (\n")
    assert [] == told(analysis)
    assert 1 == len(analysis.problems)


def test_a_broken_block_hides_only_its_own_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those around it have their right places."""
    analysis = looked_at(monkeypatch, "import torch\ndef f():\n    s = '🔥' +\n    lost(A)\nlost(y)\n")
    assert [(4, *LOST), (4, *SHOUT), (5, *LOST)] == told(analysis)
    assert [3] == [analysis.source.row_column(problem.span.start)[0] for problem in analysis.problems]


def test_a_rule_that_fails_loses_only_its_own_findings(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged once, by name."""
    rules = [*RULES, Rule("broken-rule", "mode", Severity.INFO, (Named,), broken)]
    analysis = looked_at(monkeypatch, "import torch\ngood\nbad\nbad\nlost(y)\n", rules)
    assert [(2, "info", "broken-rule", "fine so far"), (5, *LOST)] == told(analysis)
    assert ["the rule broken-rule failed on x.py; findings of it may be missing"] == caplog.messages


def test_an_engine_that_fails_leaves_the_syntax(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """There are no findings then, and the log says so."""
    monkeypatch.setattr(gradvet.analysis, "run", lambda _module, read: 1 // 0)
    analysis = analyze(Source("x.py", "import torch\nx = (\n"))
    assert () == analysis.diagnostics
    assert 1 == len(analysis.problems)
    assert ["the dry run of x.py failed; it has no findings"] == caplog.messages


def test_the_answer_depends_on_nothing_but_the_text() -> None:
    """Twice the same text gives twice the same diagnostics, in the same order."""
    source = Source(
        "x.py", "import torch\nx = torch.ones(3, requires_grad=True)\ny = x * 2\nprint(y.numpy(), y.data)\n"
    )
    once, again = analyze(source), analyze(source)
    assert told(once) == told(again)
    assert told(once)


IGNORES = [
    ("import torch\nx = 1  # gradvet: ignore\n", Config(), ["there is no finding"]),
    ("import torch\nx = 1  # gradvet: ignore\n", Config(ignore=frozenset({"leak"})), []),
    ("import torch\nx = 1  # gradvet: ignore[leak]\n", Config(ignore=frozenset({"data-attribute"})), []),
    ("import torch\nx = 1  # gradvet: ignore[graph-retained]\n", Config(ignore=frozenset({"leak"})), []),
    ("import torch\nx = 1  # gradvet: ignore[graph-retained]\n", Config(), ["`graph-retained`"]),
    ("import torch\nx = 1  # gradvet: ignore[graph-retained, unused-suppression]\n", Config(), []),
    ("x = 1  # gradvet: ignore[leek]\n", Config(), ["`leek` is neither"]),
    ("x = (  # gradvet: ignore[leek]\n", Config(), []),
]


@pytest.mark.parametrize(("text", "config", "words"), IGNORES)
def test_a_comment_in_vain_is_told_where_all_was_looked_at(
    text: str, config: Config, words: list[str]
) -> None:
    """What is turned off, or could not be read, is not judged."""
    found = [diagnostic.message for diagnostic in analyze(Source("x.py", text), config).diagnostics]
    assert len(words) == len(found)
    assert all(word in message for word, message in zip(words, found, strict=True))


def test_a_comment_is_not_in_vain_when_the_dry_run_failed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> Facts:
        raise RuntimeError

    monkeypatch.setattr(gradvet.analysis, "run", fail)
    assert not analyze(Source("x.py", "import torch  # gradvet: ignore[leak]\n")).diagnostics
    caplog.clear()
