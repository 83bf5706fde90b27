"""The server's libraries: pinned wheels, checked by their hashes, unpacked into one folder for all Pythons."""

import hashlib
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

from tools.vsix.targets import PYTHONS, Target

HERE = Path(__file__).parent
PURE = HERE / "pure.txt"
NATIVE = HERE / "native.txt"

# Parts that the server never imports: tests, the programs that come with LibCST, and what these need.
UNUSED = (
    "libcst/codegen/",
    "libcst/codemod/",
    "libcst/display/",
    "libcst/testing/",
    "libcst/tool.py",
    "pygls/cli.py",
)


class BuildError(Exception):
    """A package cannot be built; the message says why."""


def download(target: Target, cache: Path) -> list[Path]:
    """The wheels for a target, from the cache or from pip's index."""
    folder = cache / target.name
    if not _complete(folder, target):
        _pip(folder, PURE, "--platform", "any", "--python-version", PYTHONS[0])
        platforms = [word for platform in target.platforms for word in ("--platform", platform)]
        for python in PYTHONS if platforms else ():
            _pip(folder, NATIVE, "--python-version", python, *platforms)
        (folder / "complete").write_text(_named(target), encoding="utf-8")
    return sorted(folder.glob("*.whl"))


def unpack(wheels: list[Path], into: Path) -> None:
    """Unpack them into one folder. Two wheels of one library may differ in their native files alone."""
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if not name.endswith("/") and _wanted(name):
                    _write(into / name, archive.read(name), wheel)


def _complete(folder: Path, target: Target) -> bool:
    stamp = folder / "complete"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == _named(target):
        return True
    shutil.rmtree(folder, ignore_errors=True)
    return False


def _named(target: Target) -> str:
    """What a folder of wheels was made from."""
    lists = PURE.read_bytes() + NATIVE.read_bytes()
    return hashlib.sha256(lists + repr((PYTHONS, target.platforms)).encode()).hexdigest()


def _pip(folder: Path, names: Path, *arguments: str) -> None:
    fixed = ("--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:", "--require-hashes")
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        *fixed,
        "-d",
        str(folder),
        "-r",
        str(names),
        *arguments,
    ]
    if subprocess.run(command, check=False).returncode:  # noqa: S603
        raise BuildError(f"pip could not download the libraries of {folder.name}")


def _wanted(name: str) -> bool:
    parts = name.split("/")
    if parts[0].endswith(".dist-info"):
        # licences have to come along, and importlib.metadata reads versions
        return parts[-1] == "METADATA" or "licen" in name.lower()
    return not name.startswith(UNUSED) and "tests" not in parts and not name.endswith((".pyi", "py.typed"))


def _write(path: Path, data: bytes, wheel: Path) -> None:
    if path.exists():
        if path.read_bytes() != data:
            raise BuildError(f"{wheel.name} has another {path.name} than a wheel before it")
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def natives(folder: Path) -> Iterator[str]:
    """The names of the native files that were unpacked."""
    yield from sorted(path.name for path in folder.rglob("native.*") if path.suffix in {".so", ".pyd"})
