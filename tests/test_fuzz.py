"""Random programs hold what the dry run says; and what makes, repairs and shrinks them can be relied on.

`make fuzz N=20000` looks at many more and shows the smallest programs in which the two disagree.
"""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import NO, Tensor
from tools.fuzz.campaign import SECONDS, examine, smallest, trial
from tools.fuzz.generate import generate
from tools.fuzz.grammar import BLOCKS, EXPRESSIONS, PRELUDE
from tools.fuzz.repair import repair, without_row
from tools.fuzz.shrink import shrink
from tools.fuzz.total import Total
from tools.probe.client import Prober, probing
from tools.probe.observed import Failure, Observation, Program

SEEDS = range(1000, 1300)
TOGETHER = 10
"""How many of them make one test."""


@pytest.fixture(scope="module")
def prober() -> Iterator[Prober]:
    """One worker for all tests."""
    with probing(SECONDS, share=True) as prober:
        yield prober


@pytest.mark.parametrize("first", SEEDS[::TOGETHER])
def test_random_programs_hold_what_the_dry_run_says(prober: Prober, first: int) -> None:
    """`python -m tools.fuzz 1 --seed N` makes a failing one small."""
    found = [trial(seed, prober) for seed in range(first, first + TOGETHER)]
    wrong = [
        text for one in found for text in (*map(str, (*one.judgement.contradictions, *one.alarms)), one.crash)
    ]
    assert [] == [text for text in wrong if text]
    total = Total.of(found)
    assert (TOGETHER, 0, 0) == (total.programs, total.raised, total.disagreeing)
    assert total.tensors > 20 * TOGETHER


def test_the_sums_of_a_campaign_are_told(prober: Prober) -> None:
    found = [trial(seed, prober) for seed in SEEDS[:2]]
    both = Total.of(found[:1]) + Total.of(found[1:])
    assert Total.of(found) == both
    assert str(both).startswith("2 programs (0 raised), 0 disagree; ")
    assert str(Total(4, 1, 2, 200, 5, 1)) == (
        "4 programs (1 raised), 2 disagree; 200 tensor expressions, 5 (2.5 %) unknown, 1 (0.5 %) missing"
    )


def test_a_campaign_runs_from_the_command_line() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.fuzz", "2", "--seed", str(SEEDS[0]), "--workers", "1"],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert 0 == done.returncode, done.stderr
    assert done.stdout.startswith("2 programs (0 raised), 0 disagree; ")


def test_a_seed_is_one_program() -> None:
    assert generate(7, 10) == generate(7, 10)
    assert generate(7, 10) != generate(8, 10)


def test_programs_are_python_and_hold_what_there_is() -> None:
    """Each kind of statement and definition occurs in a few hundred of them, and each torch function named."""
    seen: set[type] = set()
    texts = []
    for seed in range(300):
        texts.append(generate(seed, 10))
        seen |= {type(node) for node in ast.walk(ast.parse(texts[-1].removeprefix(PRELUDE)))}
    wanted = {
        ast.FunctionDef, ast.ClassDef, ast.For, ast.If, ast.With, ast.Try, ast.AugAssign, ast.Lambda, ast.ListComp,
        ast.DictComp, ast.GeneratorExp, ast.Yield, ast.Nonlocal, ast.Break, ast.Continue, ast.Starred, ast.NamedExpr,
        ast.IfExp, ast.Match, ast.While, ast.Delete,
    }  # fmt: skip
    assert wanted <= seen
    everything = "\n".join(texts)
    words = {
        word
        for templates in EXPRESSIONS.values()
        for text in templates
        for word in re.findall(r"\w{4,}\(", text)
    }
    assert [] == sorted(word for word in words if word not in everything)
    assert [] == [head for head in BLOCKS if head.split("{")[0] not in everything]


def test_what_raises_is_taken_out_and_the_rest_stays_in_place() -> None:
    text = "a = 1\nif a:\n    b = [\n        1 / 0,\n    ]\nc = 2\n"
    assert "a = 1\nif a:\n    pass\n\n\nc = 2\n" == without_row(text, 4)
    assert "pass\n\n\ny = 1" == without_row("@wrong\ndef f(a=wrong):\n    pass\ny = 1", 2)


def test_a_program_is_repaired_until_it_runs(prober: Prober) -> None:
    text = "import torch\nx = torch.ones(2)\nx.backward()\nfor i in range(2):\n    x.view(7)\ny = x\n"
    program, observation = repair(Program(text, "<program>", ""), prober.probe)
    assert observation.failure is None
    assert "import torch\nx = torch.ones(2)\npass\nfor i in range(2):\n    pass\ny = x\n" == program.text


def test_a_program_that_cannot_be_repaired_is_given_up() -> None:
    """An end without a row tells nothing about what to take out."""
    program = Program("import os; os.abort()", "<program>", "")
    stuck = Observation({}, Failure("Died", "the process ended with status -6", None))
    assert (program, stuck) == repair(program, lambda _: stuck)


EPILOGUE = """
import json, sys
with open({path!r}, "w") as file:
    held = {{name: x for name, x in globals().items() if isinstance(x, torch.Tensor)}}
    json.dump({{n: [x.tolist(), x.requires_grad, x.is_leaf, type(x.grad_fn).__name__] for n, x in held.items()}}, file)
"""
PLAIN = """
import random, sys, warnings, torch
warnings.simplefilter("ignore")
for path in sys.argv[1:]:
    torch.set_grad_enabled(True)
    torch.manual_seed(0)
    random.seed(0)
    with open(path) as file:
        exec(compile(file.read(), path, "exec"), {"__name__": "__main__"})
"""


def test_looking_at_a_program_changes_nothing(prober: Prober, tmp_path: Path) -> None:
    """At its end it holds what it holds when `python` runs it: values, and what autograd knows of them."""
    for seed in SEEDS[:6]:
        program = trial(seed, prober).program
        looked_at = replace(program, text=program.text + EPILOGUE.format(path=str(tmp_path / f"{seed}.seen")))
        assert prober.probe(looked_at).failure is None
        plain = program.text + EPILOGUE.format(path=str(tmp_path / f"{seed}.plain"))
        (tmp_path / f"{seed}.py").write_text(plain, encoding="utf-8")
    programs = sorted(map(str, tmp_path.glob("*.py")))
    subprocess.run(
        [sys.executable, "-c", PLAIN, *programs], check=True, stdout=subprocess.DEVNULL, cwd=tmp_path
    )
    for seed in SEEDS[:6]:
        seen = (tmp_path / f"{seed}.seen").read_text(encoding="utf-8")
        assert (tmp_path / f"{seed}.plain").read_text(encoding="utf-8") == seen
        assert len(json.loads(seen)) > 3


def test_shrinking_keeps_what_is_asked_and_little_else() -> None:
    """Whatever blocks, calls and arguments it stands in."""
    text = """
import torch
def f(x, y=3):
    for i in range(10):
        with torch.no_grad():
            z = [g(h(x), key=needle + 1) for x in range(3) if x]
            w = 3
    return z
class Unused:
    def method(self):
        pass
print(f(1), f(2))
"""
    asked = []

    def holds(candidate: str) -> bool:
        asked.append(candidate)
        return "needle" in candidate

    assert shrink(text, holds, 1000) == "def f():\n    z = needle"
    assert len(asked) == len(set(asked))


def test_shrinking_stops_when_its_tries_are_used_up() -> None:
    asked = []

    def holds(candidate: str) -> bool:
        asked.append(candidate)
        return False

    shrink("\n".join(f"x{i} = {i}" for i in range(50)), holds, 5)
    assert 5 == len(asked)


def test_a_disagreement_is_made_small(prober: Prober, monkeypatch: pytest.MonkeyPatch) -> None:
    """With an engine that thinks that `exp` makes no graph."""
    note = Machine.note

    def lie(self: Machine, node: ast.AST, state: Tensor) -> None:
        exp = isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".exp")
        note(self, node, state._replace(requires_grad=NO) if exp else state)

    monkeypatch.setattr(Machine, "note", lie)
    text = """
import torch
def f(x):
    for _ in range(2):
        y = (x * 2).exp() + 1
    return y.sum()
w = torch.ones(2, requires_grad=True)
v = torch.ones(3) * 4
f(w).backward()
print(v)
"""
    program = Program(text, "<program>", "")
    found = examine(program, prober.probe(program))
    assert {("requires_grad", "True")} == set(found.faults)
    small = smallest(found, ("requires_grad", "True"), prober, 300).program.text
    assert ".exp()" in small
    assert len(small.split("\n")) < len(text.split("\n")) / 2 + 1
    assert {("requires_grad", "True")} == set(
        examine(*repair(replace(program, text=small), prober.probe)).faults
    )
