"""The page harness itself: a page that lies must fail, whatever it lies about."""

import ast
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from gradvet.finding import Applicability, Fix, Severity
from gradvet.syntax.parse import Module, parse
from gradvet.text import Edit, Source, Span
from page_checks import analyzer_complaints, torch_complaints, torch_jobs, undocumented_fixes
from pages import Case
from pages import parse as page
from torch_side import Job, Outcome, run

HONEST = """\
# lost-leaf

A leaf is lost.

```python
import torch
weight = torch.ones(3, requires_grad=True)
(weight * weight).sum().backward()
weight = weight - 0.1 * weight.grad  # warning: [lost-leaf] "lost" # note: [why] "leaf"
reveal_grad(weight)  # revealed: requires_grad=YES is_leaf=NO grad_fn=SubBackward0
```
```python proof
(weight * weight).sum().backward()
assert weight.grad is None
```

## Use instead

```diff Update in place (unsafe)
-weight = weight - 0.1 * weight.grad
+with torch.no_grad():
+    weight -= 0.1 * weight.grad
```
```python proof
(weight * weight).sum().backward()
assert weight.is_leaf and weight.grad is not None
```

## It raises

```python
import torch
def square(x):
    return x.numpy() ** 2  # error: [to-numpy] # raises: RuntimeError "requires grad"
square(torch.ones(3, requires_grad=True))
```
"""

ASSIGNMENT = "weight = weight - 0.1 * weight.grad"


def changed(old: str, new: str) -> tuple[Case, ...]:
    """The honest page's cases after one change of its text."""
    assert HONEST.count(old) == 1, f"{old!r} is there {HONEST.count(old)} times"
    return page("lost-leaf", HONEST.replace(old, new)).cases


def fake_analyze(source: Source) -> Any:
    """An analyzer that is right about the honest page and about nothing else."""
    module = parse(source)
    found = [*_lost_leaf(module), *_to_numpy(module)]
    states = {
        node.args[0]: SimpleNamespace(text="requires_grad=YES is_leaf=NO grad_fn=SubBackward0")
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "reveal_grad"
    }
    return SimpleNamespace(
        source=source,
        module=module,
        diagnostics=found,
        problems=(),
        facts=SimpleNamespace(states=states),
        edits=lambda fix: fix.edits(module),
    )


def _lost_leaf(module: Module) -> Iterator[Any]:
    text = module.source.text
    at = text.find(ASSIGNMENT)
    if at < 0:
        return
    span = Span(at, at + len(ASSIGNMENT))
    held = "with torch.no_grad():\n    weight -= 0.1 * weight.grad"
    fix = Fix("Update in place", "keeps the leaf", Applicability.UNSAFE, lambda _: [Edit(span, held)])
    note = SimpleNamespace(label="why", text="it was a leaf", span=span)
    yield _diagnostic("lost-leaf", Severity.WARNING, span, "the leaf is lost", (note,), (fix,))


def _to_numpy(module: Module) -> Iterator[Any]:
    at = module.source.text.find("x.numpy()")
    if at >= 0:
        yield _diagnostic("to-numpy", Severity.ERROR, Span(at, at + 9), "cannot leave torch", (), ())


def _diagnostic(name: str, severity: Severity, span: Span, message: str, notes: Any, fixes: Any) -> Any:
    rule = SimpleNamespace(name=name)
    return SimpleNamespace(rule=rule, severity=severity, span=span, message=message, notes=notes, fixes=fixes)


def torch_says(cases: tuple[Case, ...]) -> str:
    """All complaints of torch's half."""
    outcomes = run([job for case in cases for job in torch_jobs(case)])
    return "\n".join(complaint for case in cases for complaint in torch_complaints(case, outcomes))


def analyzer_says(cases: tuple[Case, ...]) -> str:
    """All complaints of the analyzer's half."""
    return "\n".join(complaint for case in cases for complaint in analyzer_complaints(case, fake_analyze))


def test_an_honest_page_passes() -> None:
    """Neither half complains when the page is right."""
    cases = page("lost-leaf", HONEST).cases
    assert [case.id for case in cases] == ["lost-leaf", "lost-leaf/It raises"]
    assert torch_says(cases) == ""
    assert analyzer_says(cases) == ""


LIES_ABOUT_TORCH = {
    "a wrong grad_fn": ("grad_fn=SubBackward0", "grad_fn=MulBackward0", "the page says"),
    "a wrong is_leaf": ("is_leaf=NO", "is_leaf=YES", "the page says"),
    "a useless fix that the page agrees with": (
        "+with torch.no_grad():\n+    weight -= 0.1 * weight.grad",
        "+weight = weight - 0.1 * weight.grad.detach()",
        "the proof of `Update in place` fails",
    ),
    "a proof of what is not so": (
        "assert weight.grad is None",
        "assert weight.grad is not None",
        "the fault fails",
    ),
    "a proof that passes with and without the fault": (
        "assert weight.grad is None",
        "assert weight.shape == (3,)",
        "one of them is useless",
    ),
    "a change of values said to be safe": (
        f"(unsafe)\n-{ASSIGNMENT}\n+with torch.no_grad():\n+    weight -= 0.1",
        f"(safe)\n-{ASSIGNMENT}\n+with torch.no_grad():\n+    weight -= 0.2",
        "is not safe: weight differs",
    ),
    "another exception": ("raises: RuntimeError", "raises: TypeError", "torch raises RuntimeError on line 3"),
    "another message": ('"requires grad"', '"is frozen"', "torch raises RuntimeError on line 3"),
    "an exception that does not come": (
        "torch.ones(3, requires_grad=True))",
        "torch.ones(3))",
        "raises nothing",
    ),
    "an exception that the page hides": (' # raises: RuntimeError "requires grad"', "", "torch raises"),
    "a fix that raises": (
        "+    weight -= 0.1 * weight.grad",
        "+    weight -= torch.ones(4)",
        "torch raises RuntimeError",
    ),
}


@pytest.mark.parametrize(("old", "new", "complaint"), LIES_ABOUT_TORCH.values(), ids=LIES_ABOUT_TORCH)
def test_torch_refutes(old: str, new: str, complaint: str) -> None:
    """One lie in the page, and torch's half complains about that."""
    assert complaint in torch_says(changed(old, new))


LIES_ABOUT_THE_ANALYZER = {
    "a wrong grad_fn": ("grad_fn=SubBackward0", "grad_fn=MulBackward0", "the analyzer holds"),
    "a wrong is_leaf": ("is_leaf=NO", "is_leaf=YES", "the analyzer holds"),
    "a finding that does not come": (
        "import torch\nweight",
        "import torch  # info: [lost-leaf]\nweight",
        "nothing like info: [lost-leaf]",
    ),
    "a finding on another line": (
        ASSIGNMENT + '  # warning: [lost-leaf] "lost" # note: [why] "leaf"\n',
        ASSIGNMENT + "\nprint()  # warning: [lost-leaf]\n",
        "not expected: warning: [lost-leaf]",
    ),
    "another severity": ("# warning: [lost-leaf]", "# error: [lost-leaf]", "nothing like error"),
    "another rule": (
        "# warning: [lost-leaf]",
        "# warning: [found-leaf]",
        "nothing like warning: [found-leaf]",
    ),
    "another message": (
        '[lost-leaf] "lost"',
        '[lost-leaf] "found"',
        "nothing like warning: [lost-leaf] found",
    ),
    "another note": ('[why] "leaf"', '[why] "branch"', "no note [why] branch"),
    "a note of another kind": ("note: [why]", "note: [held]", "no note [held] leaf"),
    "a finding that the page hides": (
        "  # error: [to-numpy] # raises:",
        "  # raises:",
        "not expected: error",
    ),
    "another change": (
        "+    weight -= 0.1 * weight.grad",
        "+    weight -= 0.2 * weight.grad",
        "another text",
    ),
    "another title": ("diff Update in place", "diff Update out of place", "no fix `Update out of place`"),
    "another applicability": ("in place (unsafe)", "in place (safe)", "no fix `Update in place` (safe)"),
}


@pytest.mark.parametrize(
    ("old", "new", "complaint"), LIES_ABOUT_THE_ANALYZER.values(), ids=LIES_ABOUT_THE_ANALYZER
)
def test_the_analyzer_refutes(old: str, new: str, complaint: str) -> None:
    """One lie in the page, and the analyzer's half complains about that."""
    assert complaint in analyzer_says(changed(old, new))


def also(name: str, when: str) -> Any:
    """The fake analyzer with one more finding where a text is in the source."""

    def analyze(source: Source) -> Any:
        analysis = fake_analyze(source)
        if when in source.text:
            analysis.diagnostics.append(_diagnostic(name, Severity.INFO, Span(0, 1), "once more", (), ()))
        return analysis

    return analyze


@pytest.mark.parametrize(
    ("name", "complaint"),
    [("lost-leaf", "[lost-leaf] is still there"), ("late-leaf", "brings a new [late-leaf]")],
)
def test_a_fix_must_mend_and_not_harm(name: str, complaint: str) -> None:
    """After the fix its finding is gone, and no other has come."""
    case = page("lost-leaf", HONEST).cases[0]
    assert complaint in "\n".join(analyzer_complaints(case, also(name, when="with torch.no_grad():")))


def test_a_fix_that_no_diff_shows_is_named() -> None:
    """A page must show each fix that its rule offers."""
    start, end = HONEST.index("## Use instead"), HONEST.index("## It raises")
    shown = page("lost-leaf", HONEST)
    hidden = page("lost-leaf", HONEST[:start] + HONEST[end:])
    assert list(undocumented_fixes(shown, fake_analyze)) == []
    assert list(undocumented_fixes(hidden, fake_analyze)) == ["no diff shows the fix `Update in place`"]


def test_a_reveal_that_torch_never_reaches_is_a_lie() -> None:
    """An untested state is not a proved one."""
    probe = "    reveal_grad(x)  # revealed: requires_grad=MAYBE is_leaf=MAYBE grad_fn=*"
    text = f"```python\ndef f(x):\n{probe}\n```\n"
    assert "torch never comes to this" in torch_says(page("a", text).cases)


def test_one_job_cannot_harm_the_next() -> None:
    """A job that hangs is killed, one that exits loses only itself, and grad mode is reset."""
    jobs = [
        Job("off", "import torch\ntorch.set_grad_enabled(False)", "assert torch.is_grad_enabled()"),
        Job("hang", "while True: pass"),
        Job("on", "import torch\nassert torch.is_grad_enabled()"),
        Job("exit", "import os\nos._exit(3)"),
        Job("noise", "import sys\nprint('{}')\nsys.stderr.write('noise')\n1 / 0"),
    ]
    outcomes = run(jobs, job_seconds=3)
    assert {name: str(outcome.error) for name, outcome in outcomes.items()} == {
        "off": "None",
        "hang": "Killed on line None: no end after 3 seconds, or the process died",
        "on": "None",
        "exit": "Killed on line None: no end after 3 seconds, or the process died",
        "noise": "ZeroDivisionError on line 4: division by zero",
    }
    assert outcomes["off"] == Outcome()
