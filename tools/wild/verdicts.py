"""The findings on pinned packages, each with a verdict that somebody gave who read the code around it."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tools.checker import OURS, Found, check
from tools.packages import Package

HERE = Path(__file__).parent
PACKAGES = HERE / "packages.txt"
VERDICTS = HERE / "verdicts.json"
FILES_AT_ONCE = 60
LOUD = ("error", "warning")
MOST_FALSE = 0.1
LINES_PER_FALSE = 20_000


@dataclass(frozen=True, slots=True)
class Verdict:
    """One finding of severity error or warning; `verdict` is None until somebody has judged it."""

    package: str
    file: str
    rule: str
    severity: str
    line: str
    key: str
    verdict: bool | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Counted:
    """What is only counted: the lines of files that import torch, and the findings of severity info."""

    version: str
    lines: int
    infos: int


@dataclass(frozen=True, slots=True)
class Golden:
    """What was found when it was last judged."""

    packages: dict[str, Counted]
    findings: list[Verdict]

    @property
    def false(self) -> list[Verdict]:
        """The false alarms."""
        return [entry for entry in self.findings if entry.verdict is False]

    @property
    def lines(self) -> int:
        """All lines that import torch."""
        return sum(counted.lines for counted in self.packages.values())

    def too_many(self) -> bool:
        """Whether there are more false alarms than may be: one in ten findings, one in 20,000 lines."""
        false = len(self.false)
        return false > MOST_FALSE * len(self.findings) or false * LINES_PER_FALSE > self.lines


def key_of(package: str, file: str, rule: str, line: str, number: int) -> str:
    """A name for a finding that stays when lines above it come and go: `number` tells equal lines apart."""
    words = "\n".join((package, file, rule, line.strip(), str(number)))
    return hashlib.sha256(words.encode()).hexdigest()[:12]


def load(path: Path = VERDICTS) -> Golden:
    """Read the golden file."""
    data = json.loads(path.read_text(encoding="utf-8"))
    return Golden(
        {name: Counted(**counted) for name, counted in data["packages"].items()},
        [Verdict(**entry) for entry in data["findings"]],
    )


def save(golden: Golden, path: Path = VERDICTS) -> None:
    """Write the golden file."""
    data = {
        "packages": {name: asdict(counted) for name, counted in sorted(golden.packages.items())},
        "findings": [asdict(entry) for entry in sorted(golden.findings, key=_order)],
    }
    path.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _order(entry: Verdict) -> tuple[str, str, str, str]:
    return entry.package, entry.file, entry.rule, entry.key


def look_at(package: Package, command: str = OURS) -> tuple[Counted, list[Verdict]]:
    """What is found in a package now, not judged yet. A crash or a time-out is an error."""
    files = list(package.files())
    found: list[Found] = []
    for start in range(0, len(files), FILES_AT_ONCE):
        found += check(command, files[start : start + FILES_AT_ONCE])
    infos = sum(one.severity not in LOUD for one in found)
    counted = Counted(package.version, package.lines_with_torch(), infos)
    return counted, list(_named(package, (one for one in found if one.severity in LOUD)))


def _named(package: Package, found: Iterable[Found]) -> Iterator[Verdict]:
    seen: Counter[tuple[str, str, str]] = Counter()
    texts: dict[Path, Sequence[str]] = {}
    root = package.folder.absolute()
    for one in sorted(found, key=lambda one: (one.path, one.row)):
        if one.path not in texts:
            texts[one.path] = one.path.read_text(encoding="utf-8", errors="replace").splitlines()
        line = texts[one.path][one.row - 1].strip()
        file = one.path.relative_to(root).as_posix()
        seen[file, one.rule, line] += 1
        key = key_of(package.name, file, one.rule, line, seen[file, one.rule, line])
        yield Verdict(package.name, file, one.rule, one.severity, line, key)


def compared(golden: Golden, package: Package, counted: Counted, found: list[Verdict]) -> list[str]:
    """In words, how what is found differs from what was judged."""
    judged = {entry.key: entry for entry in golden.findings if entry.package == package.name}
    now = {entry.key: entry for entry in found}
    words = [
        f"new: {entry.file}: {entry.rule}: {entry.line}" for key, entry in now.items() if key not in judged
    ]
    words += [f"gone: {e.file}: {e.rule}: {e.line}" for key, e in judged.items() if key not in now]
    before = golden.packages.get(package.name)
    if before != counted:
        words.append(f"counted: {counted}, before: {before}")
    return words


def renewed(golden: Golden, package: Package, counted: Counted, found: list[Verdict]) -> Golden:
    """The golden file with what is found now; verdicts that still hold are kept."""
    judged = {entry.key: entry for entry in golden.findings if entry.package == package.name}
    kept = [entry for entry in golden.findings if entry.package != package.name]
    return Golden(
        {**golden.packages, package.name: counted},
        [*kept, *(judged.get(entry.key, entry) for entry in found)],
    )
