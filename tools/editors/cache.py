"""The folder that keeps what was installed, and the lock that keeps two test processes from doing it twice."""

import contextlib
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
# Elsewhere, for those who want several clones to share it.
CACHE = Path(os.environ.get("GRADVET_EDITORS") or ROOT / ".cache" / "editors")


class MissingEditorError(Exception):
    """An editor is not there and cannot be installed from here; the message says what a person can do."""


@contextlib.contextmanager
def lock(name: str) -> Iterator[None]:
    """Let one process at a time install `name`; the others wait, and then find it there."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def once(name: str, install: Callable[[Path], None]) -> Path:
    """The folder `name` of the cache, filled by `install` unless that was done before.

    A half-done installation leaves no stamp, and is begun anew. The folder is filled where it stays: scripts
    inside name it.
    """
    folder = CACHE / name
    stamp = folder / "installed"
    with lock(name):
        if not stamp.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            install(folder)
            stamp.touch()
    return folder
