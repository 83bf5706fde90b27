"""Put what a command prints below it in README.md: `python -m tools.readme`; with `--check`, only compare."""

import argparse
import contextlib
import io
import os
import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
sys.path.insert(0, str(ROOT / "server"))

from gradvet.cli import main as gradvet  # noqa: E402  the server of this very clone

_BLOCK = re.compile(
    r"(?<=```console\n)\$ gradvet (?P<command>check examples/.*)\n(?P<output>(?s:.+?))(?=```\n)"
)
_STATES = re.compile(r"(?<=```console\n)\$ gradvet states (?P<file>\S+)\n(?P<output>(?s:.+?))(?=```\n)")
_SAID = re.compile(r" *#   .*\n")


def current(text: str) -> str:
    """The readme with the outputs of today; a command that stands there without an output is left alone."""
    text = _BLOCK.sub(
        lambda match: f"$ gradvet {match['command']}\n{_output(match['command'].split())}", text
    )
    return _STATES.sub(lambda match: f"$ gradvet states {match['file']}\n{_states(match['output'])}", text)


def _states(annotated: str) -> str:
    """What is said of the states of a program that stands there with them."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program.py"
        program.write_text(_SAID.sub("", annotated), encoding="utf-8")
        return _output(["states", str(program)])


def _output(arguments: list[str]) -> str:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        gradvet(arguments, serve=lambda: None)
    return said.getvalue()


def main(arguments: list[str] | None = None) -> int:
    """Write the file anew or compare it; 1 when it is out of date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(arguments)
    os.chdir(ROOT)
    text = README.read_text(encoding="utf-8")
    new = current(text)
    if options.check and text != new:
        print("README.md shows what Gradvet no longer prints; run: python -m tools.readme", file=sys.stderr)
        return 1
    if text != new:
        README.write_text(new, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
