"""Commands of installations: silent when they work, and told in full when they do not."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.editors.cache import MissingEditorError


def run(command: Sequence[str | Path], cwd: Path | None = None, env: Mapping[str, str] | None = None) -> None:
    """Run a command of an installation; `MissingEditorError` with its last lines when it fails."""
    try:
        done = subprocess.run(  # noqa: S603
            [str(part) for part in command],
            cwd=cwd,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=1500,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MissingEditorError(f"{command[0]} could not be run: {error}") from error
    if done.returncode:
        last = "\n".join(done.stdout.splitlines()[-20:])
        raise MissingEditorError(f"`{' '.join(map(str, command))}` failed with {done.returncode}:\n{last}")
