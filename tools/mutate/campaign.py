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
from collections.abc import Collection, Iterable, Iterator, Sequence
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
FAULT, NONE, HIDDEN = "fault", "none", "hidden"
"""What a mutant is: a fault, none, or one that only files show which its own does not import."""
Judged = dict[str, dict[str, str]]


@dataclass(frozen=True, slots=True)
class Case:
    """A mutant of a file of a package, under a name that stays."""

    key: str
    package: Package
    path: str
    line: str
    mutant: Mutant


def cases(
    package: Package, operators: Collection[str] = tuple(OPERATORS), files: Collection[str] | None = None
) -> Iterator[Case]:
    """The mutants that some operators make of a package, or of some of its files."""
    for path in package.files():
        way = path.relative_to(package.folder).as_posix()
        if "test" in way or (files is not None and way not in files):
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        if imports_torch(text) and trains(text):
            yield from _of_file(package, way, text, operators)


def _of_file(
    package: Package, way: str, text: str, operators: Collection[str] = tuple(OPERATORS)
) -> Iterator[Case]:
    module = parse(Source(way, text))
    seen: Counter[tuple[str, str]] = Counter()
    for name in operators:
        sites = OPERATORS[name](module)
        for site in sorted(sites, key=lambda site: (site.statement.lineno, site.edits[0].span.start)):
            mutant = made(name, module, site)
            if mutant is None:
                continue
            line = module.source.line(mutant.row).strip()
            seen[name, line] += 1
            key = key_of(f"{package.name} {way}", name, line, seen[name, line])
            yield Case(key, package, way, line, mutant)


def judged() -> Judged:
    """What has been read by hand: by a mutant's name, whether it is a fault, and why."""
    entries: list[dict[str, str]] = json.loads(JUDGED.read_text(encoding="utf-8"))
    return {entry["key"]: entry for entry in entries}


def run(cases_: Sequence[Case], command: str) -> dict[str, list[Found]]:
    """The findings by which each mutant is found, by its name; an empty list for one that is missed."""
    found: dict[str, list[Found]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        folders = {package: Path(scratch) / package.name for package in {case.package for case in cases_}}
        for package, folder in folders.items():
            shutil.copytree(package.folder, folder, ignore=_all_but_python)
        for start in range(0, len(cases_), MOST_AT_ONCE):
            found |= _batch(folders, cases_[start : start + MOST_AT_ONCE], command)
    return found


def _all_but_python(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if not name.endswith(".py") and not (Path(folder) / name).is_dir()]


def _batch(folders: dict[Package, Path], own: Sequence[Case], command: str) -> dict[str, list[Found]]:
    """The same for some; files themselves are looked at only where their mutants have a finding that might count."""
    files = {case.key: folders[case.package] / case.path for case in own}
    beside = {key: file.with_name(f"{file.stem}__{key}.py") for key, file in files.items()}
    for case in own:
        beside[case.key].write_text(case.mutant.text, encoding="utf-8")
    after = _told(command, beside.values())
    for path in beside.values():
        path.unlink()
    counting = {
        case.key: any(one.row in case.mutant.right for one in after.get(beside[case.key].resolve(), ()))
        for case in own
    }
    before = _told(command, dict.fromkeys(files[key] for key, counts in counting.items() if counts))
    return {
        case.key: _new(
            after.get(beside[case.key].resolve(), []),
            before.get(files[case.key].resolve(), []),
            case.mutant,
        )
        if counting[case.key]
        else []
        for case in own
    }


def _told(command: str, paths: Iterable[Path]) -> dict[Path, list[Found]]:
    told: dict[Path, list[Found]] = {}
    if files := list(paths):
        for one in check(command, files, strict=False):
            told.setdefault(one.path.resolve(), []).append(one)
    return told


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


def all_cases(operators: Collection[str] = tuple(OPERATORS), known: Judged | None = None) -> list[Case]:
    """Every mutant of every package that is pinned and present; only those that are `known`, where that is given."""
    found = []
    for package in pinned(PACKAGES):
        files = None
        if known is not None:
            own = [entry for entry in known.values() if entry["package"] == package.name]
            files = {entry["file"] for entry in own if entry["operator"] in operators}
        if package.present:
            made_here = cases(package, operators, files)
            found += [case for case in made_here if known is None or case.key in known]
    return found


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
