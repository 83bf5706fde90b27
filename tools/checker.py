"""Running a checker over files, and what it found: Gradvet, or another with JSON of the same meaning."""

import json
import shlex
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

OURS = f"{shlex.quote(sys.executable)} -m gradvet check --exit-zero --output-format json"
SECONDS = 3600


class CheckerError(Exception):
    """The checker gave no JSON, or said that something failed."""


@dataclass(frozen=True, slots=True)
class Found:
    """One finding: which rule speaks, how loud, in which rows."""

    path: Path
    rule: str
    severity: str
    row: int
    message: str


def check(command: str, paths: Sequence[Path], *, strict: bool = True) -> list[Found]:
    """The findings of a command that is given paths. With `strict`, words on its standard error are a failure."""
    argv = [*shlex.split(command), *map(str, paths)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=SECONDS, check=False)  # noqa: S603
    try:
        data = json.loads(done.stdout)
    except json.JSONDecodeError:
        raise CheckerError(
            f"no JSON from {command} (exit {done.returncode})\n{done.stderr[-2000:]}"
        ) from None
    if strict and done.stderr.strip():
        raise CheckerError(f"{command} complains:\n{done.stderr[-2000:]}")
    return list(_found(data))


def _found(data: object) -> Iterable[Found]:
    """From a list in the shape of ruff's, or an object that holds `diagnostics`."""
    entries = data if isinstance(data, list) else data["diagnostics"]  # type: ignore[index]
    for entry in entries:
        path = Path(entry.get("filename") or entry["path"]).absolute()
        row = entry["location"]["row"] if "location" in entry else entry["line"]
        yield Found(path, entry["code"], entry.get("severity", "warning"), row, entry["message"])
