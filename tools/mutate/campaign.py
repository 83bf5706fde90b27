"""Mutants of pinned packages, and how many of them a checker finds.

Each mutant lies beside the file it was made from, in a copy of the package, so that its imports are
followed as the file's own are. It is found when there is a finding that the file itself does not have,
on a row that speaks of the fault.
"""

import ast
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gradvet.syntax.parse import parse
from gradvet.text import Source
from tools.checker import Found, check
from tools.mutate.mutant import Mutant, key_of, made
from tools.mutate.operators import OPERATORS, trains
from tools.packages import Package, imports_torch, pinned

HERE = Path(__file__).parent
PACKAGES = HERE / "packages.txt"
JUDGED = HERE / "judged.json"
MOST_AT_ONCE = 400
FAULT, NONE = "fault", "none"


@dataclass(frozen=True, slots=True)
class Case:
    """A mutant of a file of a package, under a name that stays."""

    key: str
    package: Package
    path: str
    line: str
    mutant: Mutant


def cases(package: Package) -> Iterator[Case]:
    """Every mutant of a package."""
    for path in package.files():
        text = path.read_text(encoding="utf-8", errors="replace")
        way = path.relative_to(package.folder).as_posix()
        if imports_torch(text) and trains(text) and "test" not in way:
            yield from _of_file(package, way, text)


def _of_file(package: Package, way: str, text: str) -> Iterator[Case]:
    module = parse(Source(way, text))
    seen: Counter[tuple[str, str]] = Counter()
    for name, operator in OPERATORS.items():
        sites = sorted(operator(module), key=lambda site: (site.statement.lineno, site.edits[0].span.start))
        for site in sites:
            mutant = made(name, module, site)
            if mutant is None:
                continue
            line = module.source.line(mutant.row).strip()
            seen[name, line] += 1
            key = key_of(f"{package.name} {way}", name, line, seen[name, line])
            yield Case(key, package, way, line, mutant)


def judged() -> dict[str, dict[str, str]]:
    """What has been read by hand: by a mutant's name, whether it is a fault, and why."""
    entries: list[dict[str, str]] = json.loads(JUDGED.read_text(encoding="utf-8"))
    return {entry["key"]: entry for entry in entries}


def run(cases_: Sequence[Case], command: str) -> dict[str, list[Found]]:
    """The findings by which each mutant is found, by its name; an empty list for one that is missed."""
    found: dict[str, list[Found]] = {}
    packages = dict.fromkeys(case.package for case in cases_)
    for package in packages:
        own = [case for case in cases_ if case.package == package]
        with tempfile.TemporaryDirectory() as scratch:
            copy = Path(scratch) / package.folder.name
            shutil.copytree(package.folder, copy, ignore=_all_but_python)
            for start in range(0, len(own), MOST_AT_ONCE):
                found |= _batch(copy, own[start : start + MOST_AT_ONCE], command)
    return found


def _all_but_python(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if not name.endswith(".py") and not (Path(folder) / name).is_dir()]


def _batch(copy: Path, own: Sequence[Case], command: str) -> dict[str, list[Found]]:
    files = {case.path: copy / case.path for case in own}
    beside = {case.key: files[case.path].with_name(f"{files[case.path].stem}__{case.key}.py") for case in own}
    for case in own:
        beside[case.key].write_text(case.mutant.text, encoding="utf-8")
    told: dict[Path, list[Found]] = {}
    for one in check(command, [*dict.fromkeys(files.values()), *beside.values()], strict=False):
        told.setdefault(one.path.resolve(), []).append(one)
    for path in beside.values():
        path.unlink()
    return {
        case.key: _new(
            told.get(beside[case.key].resolve(), []), told.get(files[case.path].resolve(), []), case.mutant
        )
        for case in own
    }


def _new(after: list[Found], before: list[Found], mutant: Mutant) -> list[Found]:
    """What is told of the mutant alone, on the right rows."""
    old = Counter((one.rule, one.row) for one in before)
    new = []
    for one in after:
        if old[one.rule, one.row]:
            old[one.rule, one.row] -= 1
        elif one.row in mutant.right:
            new.append(one)
    return new


def all_cases() -> list[Case]:
    """Every mutant of every package that is pinned and present."""
    return [case for package in pinned(PACKAGES) if package.present for case in cases(package)]


def snippet(case: Case, before: int = 12, after: int = 12) -> str:
    """The mutant's rows around its fault, to read."""
    lines = case.mutant.text.splitlines()
    row = case.mutant.row
    function = _function_at(case.mutant.text, row)
    first = max(row - before, 1)
    head = f"   ... in {function}\n" if function else ""
    shown = range(first, min(row + after, len(lines)) + 1)
    return head + "\n".join(f"{'>' if at == row else ' '}{at:5} {lines[at - 1]}" for at in shown)


def _function_at(text: str, row: int) -> str:
    names = [
        node.name
        for node in ast.walk(ast.parse(text))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        and node.lineno <= row <= (node.end_lineno or row)
    ]
    return ".".join(names)
