"""Editors and the browser from Debian's packages."""

import os
import shutil
from pathlib import Path

from tools.editors.cache import MissingEditorError, lock
from tools.editors.run import run

# A program, or a file, that shows that a package is there.
PACKAGES = {
    "chromium": "chromium",
    "rg": "ripgrep",
    "nvim": "neovim",
    "emacs": "emacs-nox",
    "/usr/share/doc/elpa-eglot": "elpa-eglot",
    "vim.nox": "vim-nox",
    "/usr/share/vim-ale/autoload": "vim-ale",
    "/usr/share/fonts/truetype/dejavu": "fonts-dejavu-core",
    "/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc": "fonts-noto-cjk",
}


def need(*signs: str) -> None:
    """Have these there; install what is not. `MissingEditorError` where that takes a person."""
    if _absent(signs):
        with lock("apt"):
            _install([PACKAGES[sign] for sign in _absent(signs)])
        if still := _absent(signs):
            raise MissingEditorError(
                f"apt installed {', '.join(PACKAGES[s] for s in still)}, but it is not where it should be"
            )


def program(sign: str) -> Path:
    """The path of one of the programs, installed if need be."""
    need(sign)
    return Path(shutil.which(sign) or sign)


def _absent(signs: tuple[str, ...]) -> list[str]:
    return [sign for sign in signs if not (Path(sign).exists() if "/" in sign else shutil.which(sign))]


def _install(packages: list[str]) -> None:
    if not packages:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise MissingEditorError(
            f"needed and not there: {', '.join(packages)}. "
            f"On Debian and Ubuntu: sudo apt-get install --no-install-recommends {' '.join(packages)}"
        )
    apt = {"DEBIAN_FRONTEND": "noninteractive"}
    patient = ["-o", "DPkg::Lock::Timeout=300"]  # something else may be installing
    command = ["apt-get", "install", "-y", "-q", "--no-install-recommends", *patient, *packages]
    try:
        run(command, env=apt)
    except MissingEditorError:  # the lists may be old, or there may be none yet
        run(["apt-get", "update", "-q"], env=apt)
        run(command, env=apt)
