"""Known faults are put in where they are faults, one at a time, and what was judged of them can be relied on.

`python -m tools.mutate` puts them into real training code and counts those that Gradvet finds.
"""

import json
from pathlib import Path

import pytest

from gradvet.syntax.parse import parse
from gradvet.text import Source
from tools.checker import OURS
from tools.mutate.campaign import (
    FAULT,
    HIDDEN,
    JUDGED,
    NONE,
    PACKAGES,
    _of_file,
    all_cases,
    cases,
    judged,
    run,
)
from tools.mutate.mutant import made
from tools.mutate.operators import OPERATORS
from tools.packages import Package, imports_torch, pinned

TRAIN = """\
import torch
from torch import nn


class Trainer:
    def __init__(self, model, optimizer):
        self.model = model
        self.optimizer = optimizer
        self.log = {}

    def fit(self, loader):
        total = 0.0
        seen = []
        for x, y in loader:
            self.optimizer.zero_grad()
            loss = self.loss(x, y)
            loss.backward()
            self.optimizer.step()
            total += loss.item() * 2
            seen.append(loss.detach())
            print(loss.item())
        return total, seen

    def loss(self, x, y):
        with torch.no_grad():
            goal = self.model(y).detach()
        return (self.model(x) - goal).pow(2).mean()

    @torch.no_grad()
    def predict(self, x):
        noise = x.clone()
        noise[0] = 0
        kept = x.clone()
        return self.model(noise), kept
"""
EXPECTED = {
    "item-dropped": ["total += loss * 2"],
    "detach-dropped": ["seen.append(loss)"],
    "data-for-detach": ["seen.append(loss.data)"],
    "clone-dropped": ["noise = x"],
    "no-grad-dropped": ["def predict(self, x):", "if True:"],
    "zero-grad-dropped": ["pass"],
    "call-forgotten": ["loss.backward", "self.optimizer.step", "self.optimizer.zero_grad"],
    "step-before-backward": ["loss.backward()"],
    "zero-grad-after-backward": ["loss.backward(); self.optimizer.zero_grad()"],
}


def mutants(text: str, name: str) -> list[tuple[str, str, set[str]]]:
    """The changed line, the whole text, and the lines that speak of the fault."""
    module = parse(Source("train.py", text))
    found = []
    for site in OPERATORS[name](module):
        mutant = made(name, module, site)
        assert mutant is not None
        lines = mutant.text.splitlines()
        found.append(
            (lines[mutant.row - 1].strip(), mutant.text, {lines[at - 1].strip() for at in mutant.right})
        )
    return sorted(found)


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_changes_what_it_names_and_nothing_else(name: str) -> None:
    found = mutants(TRAIN, name)
    assert EXPECTED[name] == [line for line, _, _ in found]
    for _, text, _ in found:
        pairs = [
            pair for pair in zip(TRAIN.splitlines(), text.splitlines(), strict=True) if pair[0] != pair[1]
        ]
        assert len(pairs) == (2 if name in {"step-before-backward", "zero-grad-after-backward"} else 1)


def test_a_fault_may_be_told_where_what_it_spoils_is_used() -> None:
    (_, _, right), *_ = mutants(TRAIN, "item-dropped")
    assert "return total, seen" in right
    assert "noise[0] = 0" not in right
    (_, _, right), *_ = mutants(TRAIN, "zero-grad-after-backward")
    assert {"self.optimizer.step()", "for x, y in loader:"} <= right
    assert "return total, seen" not in right


def test_a_fault_of_a_training_step_may_be_told_in_a_function_that_makes_a_part_of_it() -> None:
    text = "def back(loss):\n    loss.backward()\n\ndef fit(x, optimizer):\n    optimizer.zero_grad()\n    back(x)\n    optimizer.step()\n"
    module = parse(Source("train.py", text))
    (site,) = OPERATORS["zero-grad-dropped"](module)
    assert site.right == {2, 5, 7}
    text = "def fit(x, optimizer):\n    x.backward()\n    step(optimizer)\n\ndef step(optimizer):\n    optimizer.step()\n    optimizer.zero_grad()\n"
    module = parse(Source("train.py", text))
    (site,) = OPERATORS["zero-grad-dropped"](module)
    assert site.right == {2, 3, 6, 7}


def test_what_would_move_the_rows_is_no_mutant() -> None:
    text = TRAIN.replace("loss.detach()", "loss\n            .detach()")
    module = parse(Source("train.py", text))
    (site,) = OPERATORS["detach-dropped"](module)
    assert made("detach-dropped", module, site) is None


def test_only_what_is_new_and_on_the_right_rows_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gradvet itself, over a package of one file, with every fault in turn."""
    monkeypatch.setattr("tools.packages.FOLDER", tmp_path)
    package = Package("mine", "1.0")
    (package.folder / "mine").mkdir(parents=True)
    (package.folder / "mine" / "train.py").write_text(TRAIN, encoding="utf-8")
    monkeypatch.setattr("tools.mutate.campaign.pinned", lambda _: [package])
    faults = {case.mutant.operator: case for case in all_cases()}
    assert set(EXPECTED) == set(faults)
    found = run([faults["item-dropped"], faults["clone-dropped"]], OURS)
    assert ["graph-retained"] == [one.rule for one in found[faults["item-dropped"].key]]
    assert [] == found[faults["clone-dropped"].key]
    assert ["train.py"] == [path.name for path in package.folder.rglob("*.py")]


def test_names_of_mutants_stay_when_lines_above_come_and_go() -> None:
    def keys(text: str) -> list[str]:
        return [case.key for case in _of_file(Package("mine", "1.0"), "train.py", text)]

    assert keys(TRAIN) == keys("# a line more\n" + TRAIN)
    assert len(set(keys(TRAIN))) == len(keys(TRAIN)) == sum(map(len, EXPECTED.values()))


def test_every_judged_mutant_is_well_formed() -> None:
    entries = json.loads(JUDGED.read_text(encoding="utf-8"))
    names = {package.name for package in pinned(PACKAGES)}
    assert sorted(entries, key=lambda entry: (entry["operator"], entry["key"])) == entries
    assert len(judged()) == len(entries)
    for entry in entries:
        assert {"key", "operator", "package", "file", "line", "verdict", "reason"} == set(entry)
        assert entry["operator"] in OPERATORS
        assert entry["package"] in names
        assert entry["verdict"] in {FAULT, NONE, HIDDEN}
        assert len(entry["reason"].split()) > 3, entry
        assert entry["reason"].endswith("."), entry


def test_judged_mutants_are_those_that_the_operators_make() -> None:
    """For one package, if it is there: the text of packages is not part of the project."""
    for package in pinned(PACKAGES):
        if package.name == "stable-baselines3" and package.present:
            keys = {case.key for case in cases(package)}
            own = [key for key, entry in judged().items() if entry["package"] == package.name]
            assert [] == [key for key in own if key not in keys]


def test_pins_name_one_version_each() -> None:
    pins = pinned(PACKAGES)
    lines = [line for line in PACKAGES.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert [f"{package.name}=={package.version}" for package in pins] == lines
    assert imports_torch("x = 1\n    from torch import nn\n")
    assert not imports_torch("import torchvision\n")
