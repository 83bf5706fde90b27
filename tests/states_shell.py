"""`gradvet states` as a script or a person meets it: real files, and what is printed about them."""

import json
from pathlib import Path
from typing import Any

import pytest

from gradvet import cli

ROOT = Path(__file__).parent.parent
PROGRAMS = [
    *sorted((ROOT / "tests" / "programs").glob("*.py")),
    *sorted((ROOT / "examples").glob("*.py")),
]
PLACE = ["line", "column", "end_line", "end_column", "text", "kind"]
STATE = ["requires_grad", "is_leaf", "is_view", "is_inference", "grad_fn", "grad_mode", "storage", "assumes"]


class Shell:
    """A folder, and the command run in it."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capsys = capsys

    def write(self, text: str, name: str = "program.py") -> None:
        """Put a text in a file."""
        (self.folder / name).write_bytes(text.encode())

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Exit status, output and errors of `gradvet states` with these arguments."""
        try:
            status = cli.main(("states", *arguments), serve=lambda: None)
        except SystemExit as end:
            status = int(end.code or 0)
        return status, *self._capsys.readouterr()

    def objects(self, text: str) -> list[dict[str, Any]]:
        """The array for a program."""
        self.write(text)
        status, out, errors = self.run("program.py", "--output-format", "json")
        assert (0, "") == (status, errors)
        found: list[dict[str, Any]] = json.loads(out)
        return found

    def last(self, text: str, expression: str) -> dict[str, Any]:
        """The object of the last expression of this text in a program."""
        return [about for about in self.objects(text) if about["text"] == expression][-1]


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    """A shell in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    return Shell(tmp_path, capsys)
