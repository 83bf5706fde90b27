"""Neovim, Emacs and Vim with what `docs/editors.md` tells their users to write, word for word."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from editors import there
from tools.editors.cache import MissingEditorError
from tools.editors.debian import need, program
from tools.editors.neovim import neovim

HERE = Path(__file__).parent
ROOT = HERE.parent
DOCUMENT = ROOT / "docs" / "editors.md"
_SECTION = re.compile(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def documented(editor: str, language: str, number: int = 0) -> str:
    """What the document tells the users of an editor to write."""
    sections = dict(_SECTION.findall(DOCUMENT.read_text(encoding="utf-8")))
    blocks = [text for name, text in _BLOCK.findall(sections[editor]) if name == language]
    return str(blocks[number])


class Desk:
    """A user's home with their configuration, a file to work on, and `gradvet` on the PATH."""

    def __init__(self, folder: Path) -> None:
        """Lay it out."""
        self.home = folder / "home"
        (self.home / "bin").mkdir(parents=True)
        command = self.home / "bin" / "gradvet"
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m gradvet "$@"\n', encoding="utf-8")
        command.chmod(0o755)
        self.file = folder / "work" / "train.py"
        self.file.parent.mkdir()
        shutil.copy(HERE / "vscode" / "workspace" / "train.py", self.file)

    def configuration(self, name: str, text: str) -> Path:
        """Write what the document says."""
        path = self.home / name
        path.write_text(text, encoding="utf-8")
        return path

    def run(
        self, command: Sequence[str | Path], typed: str = "", more: Mapping[str, str] | None = None
    ) -> None:
        """Run an editor; it has to say that it passed, and the file has to be mended."""
        environment = {
            **os.environ,
            "HOME": str(self.home),
            "XDG_CONFIG_HOME": str(self.home / "config"),
            "XDG_CACHE_HOME": str(self.home / "cache"),
            "XDG_DATA_HOME": str(self.home / "data"),
            "XDG_STATE_HOME": str(self.home / "state"),
            "PATH": f"{self.home / 'bin'}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT / "server"),
            **(more or {}),
        }
        done = subprocess.run(
            [str(part) for part in command],
            cwd=self.file.parent,
            env=environment,
            input=typed,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=300,
            check=False,
        )
        told = f"{done.stdout}\n{done.stderr}"
        assert 0 == done.returncode, told
        assert "passed" in told
        assert "total += loss.detach()\n" in self.file.read_text(encoding="utf-8")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A user's desk."""
    return Desk(tmp_path)


@pytest.mark.parametrize(
    ("find", "number"),
    [(lambda: program("nvim"), 1), (neovim, 0), (neovim, 1)],
    ids=["0.7", "0.11", "0.11 with what is for older ones"],
)
def test_neovim(find: Callable[[], Path], number: int, desk: Desk) -> None:
    """Debian's takes diagnostics that are pushed, the newer one asks for them."""
    command = there(find)
    init = desk.configuration("init.lua", documented("Neovim", "lua", number))
    script = HERE / "editor_scripts" / "neovim.lua"
    desk.run([command, "--headless", "--clean", "-n", "-u", init, desk.file, "-c", f"luafile {script}"])


def test_emacs(desk: Desk) -> None:
    """With Eglot."""
    there(lambda: need("emacs", "/usr/share/doc/elpa-eglot"))
    init = desk.configuration("init.el", documented("Emacs", "elisp"))
    desk.run(["emacs", "-Q", "--batch", "-l", HERE / "editor_scripts" / "eglot.el", init, desk.file])


def test_vim(desk: Desk) -> None:
    """With ALE, whose menu is answered with its first entry."""
    there(lambda: need("vim.nox", "/usr/share/vim-ale/autoload"))
    init = desk.configuration("vimrc", f"set nocompatible\n{documented('Vim', 'vim')}")
    script = HERE / "editor_scripts" / "ale.vim"
    desk.run(["vim.nox", "-u", init, "-i", "NONE", "-n", "-es", "-S", script, desk.file], typed="1\r")


def test_where_an_editor_takes_a_person_to_install_it_the_test_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is passed over, and fails only where editors are required."""
    monkeypatch.setattr("tools.editors.debian.PACKAGES", {"no-such-editor": "no-such-package"})
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.delenv("GRADVET_EDITORS", raising=False)
    with pytest.raises(
        pytest.skip.Exception, match="sudo apt-get install --no-install-recommends no-such-package"
    ):
        there(lambda: program("no-such-editor"))
    monkeypatch.setenv("GRADVET_EDITORS", "required")
    with pytest.raises(MissingEditorError):
        there(lambda: program("no-such-editor"))


@pytest.mark.parametrize("editor", ["Zed", "Sublime Text", "Kate"])
def test_configurations_in_json_can_be_read(editor: str) -> None:
    """And they start the server."""
    text = documented(editor, "json")
    assert json.loads(text)
    assert '"server"' in text


def test_helix_gets_a_table_that_can_be_read() -> None:
    """Its configuration is TOML."""
    tomllib = pytest.importorskip("tomllib" if sys.version_info >= (3, 11) else "tomli")
    read = tomllib.loads(documented("Helix", "toml"))
    assert ["server"] == read["language-server"]["gradvet"]["args"]
    assert "gradvet" in read["language"][0]["language-servers"]
