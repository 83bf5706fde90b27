"""What is said of correct code that many people use has been judged, and is seldom wrong.

`python -m tools.wild` checks the pinned packages and holds what is found against the verdicts.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from gradvet.rules import all_rules
from tools.packages import Package, pinned
from tools.wild.verdicts import (
    PACKAGES,
    Counted,
    Golden,
    Verdict,
    compared,
    key_of,
    load,
    look_at,
    renewed,
    save,
)

LEAK = """\
import torch


def train(model, loader, optimizer):
    total = 0.0
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss
    return total
"""


def test_every_finding_has_been_judged() -> None:
    golden = load()
    assert golden.findings, "the golden file is empty"
    for entry in golden.findings:
        assert entry.verdict is not None, entry
        assert len(entry.reason.split()) > 3, entry
        assert entry.reason.endswith("."), entry
        assert entry.severity in {"error", "warning"}, entry
        assert entry.rule in all_rules(), entry


def test_verdicts_are_of_the_pinned_packages_and_carry_their_own_names() -> None:
    golden = load()
    assert {package.name: package.version for package in pinned(PACKAGES)} == {
        name: counted.version for name, counted in golden.packages.items()
    }
    keys = [entry.key for entry in golden.findings]
    assert len(set(keys)) == len(keys)
    for entry in golden.findings:
        possible = {
            key_of(entry.package, entry.file, entry.rule, entry.line, number) for number in range(1, 40)
        }
        assert entry.key in possible, entry
        assert entry.package in golden.packages


def test_false_alarms_are_few() -> None:
    """At most one finding in ten, and one in 20,000 lines that import torch."""
    golden = load()
    assert golden.lines > 200_000
    assert not golden.too_many()


def test_one_package_is_as_it_was_judged() -> None:
    """The smallest, if it is there: packages are not part of the project."""
    for package in pinned(PACKAGES):
        if package.name == "stable-baselines3" and package.present:
            assert [] == compared(load(), package, *look_at(package))


def test_what_is_new_and_what_is_gone_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.packages.FOLDER", tmp_path)
    package = Package("mine", "1.0")
    (package.folder / "mine").mkdir(parents=True)
    file = package.folder / "mine" / "train.py"
    file.write_text(LEAK, encoding="utf-8")
    counted, found = look_at(package)
    assert Counted("1.0", LEAK.count("\n"), 0) == counted
    assert [("mine/train.py", "graph-retained", "total += loss")] == [(e.file, e.rule, e.line) for e in found]
    nothing = Golden({}, [])
    assert ["new: mine/train.py: graph-retained: total += loss"] == compared(
        nothing, package, counted, found
    )[:1]
    golden = renewed(nothing, package, counted, [replace(e, verdict=True, reason="It is.") for e in found])
    assert [] == compared(golden, package, counted, found)
    file.write_text("# a line more\n" + LEAK, encoding="utf-8")
    again = look_at(package)
    assert ["counted"] == [words.partition(":")[0] for words in compared(golden, package, *again)]
    assert [True] == [entry.verdict for entry in renewed(golden, package, *again).findings]
    file.write_text(LEAK.replace("+= loss", "+= loss.item()"), encoding="utf-8")
    assert ["gone: mine/train.py: graph-retained: total += loss"] == compared(
        golden, package, *look_at(package)
    )
    save(golden, tmp_path / "verdicts.json")
    assert golden == load(tmp_path / "verdicts.json")


def test_too_many_false_alarms_are_too_many() -> None:
    entry = Verdict("mine", "a.py", "graph-retained", "warning", "x", "key", verdict=True, reason="It is.")
    lines = {"mine": Counted("1.0", 40_000, 0)}
    wrong = replace(entry, verdict=False)
    assert not Golden(lines, [entry] * 18 + [wrong] * 2).too_many()
    assert Golden(lines, [entry] * 17 + [wrong] * 2).too_many()
    assert Golden(lines, [entry] * 97 + [wrong] * 3).too_many()
