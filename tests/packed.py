"""The extension's packages for the tests, built when anything in them has changed, once for all processes."""

import hashlib
import os
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

from tools.editors.cache import ROOT, lock
from tools.vsix.build import build
from tools.vsix.targets import TARGETS, Target

FOLDER = ROOT / ".cache" / "vsix"
PARTS = ("server/gradvet", "client/src", "client/media", "l10n", "tools/vsix")
FILES = (
    "package.json",
    "package-lock.json",
    "package.nls.json",
    "package.nls.zh-cn.json",
    "README.md",
    ".vscodeignore",
)


def target(name: str) -> Target:
    """A target by its name."""
    return next(one for one in TARGETS if one.name == name)


def package(of: Target) -> Path:
    """The package, built from the sources as they are."""
    stamp, wanted = FOLDER / f"{of.name}.sources", _sources()
    with lock("vsix"):
        path = FOLDER / f"gradvet-{of.name}.vsix"
        if not path.exists() or not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
            path = build(of, FOLDER)
            stamp.write_text(wanted, encoding="utf-8")
    return path


def unpacked(of: Target, folder: Path) -> Path:
    """The extension's folder, as an editor would have it."""
    with zipfile.ZipFile(package(of)) as archive:
        archive.extractall(folder)
    return folder / "extension"


def pythons() -> dict[str, Path]:
    """The Pythons at hand by version: those on the PATH, and those of pyenv."""
    found: dict[str, Path] = {}
    for path in _candidates():
        ask = [str(path), "-I", "-S", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        done = subprocess.run(ask, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            found.setdefault(done.stdout.strip(), path)
    return found


def _candidates() -> Iterator[Path]:
    names = ["python3", *(f"python3.{minor}" for minor in range(6, 16))]
    yield from (Path(path) for name in names if (path := shutil.which(name)) is not None)
    yield Path("/usr/bin/python3")
    yield from sorted(
        Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser().glob("versions/3.*/bin/python")
    )


def _sources() -> str:
    paths = [ROOT / name for name in FILES]
    for part in PARTS:
        paths += sorted(p for p in (ROOT / part).rglob("*") if p.is_file() and "__pycache__" not in p.parts)
    found = hashlib.sha256()
    for path in paths:
        found.update(f"{path.relative_to(ROOT)}\0".encode())
        found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()
