"""The near side: hands programs to a process that has torch, and collects what they trained."""

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Run:
    """What a program did: a line for each backward and each step, and the exception that ended it, if one did.

    `ended` is whether it came to an end at all.
    """

    log: tuple[str, ...] = ()
    error: str = ""
    ended: bool = True


def runs(jobs: Mapping[str, tuple[Path, str]]) -> dict[str, Run]:
    """The run of each program by its name: a path, beside which it finds its modules, and a text."""
    done: dict[str, Run] = {}
    while left := [name for name in jobs if name not in done]:
        done |= _some({name: jobs[name] for name in left})
        stuck = next((name for name in left if name not in done), None)
        if stuck is not None:
            done[stuck] = Run(error=f"no end after {SECONDS:g} seconds, or the process died", ended=False)
    return done


def _some(jobs: Mapping[str, tuple[Path, str]]) -> dict[str, Run]:
    """The runs up to the first that does not end."""
    command = [sys.executable, str(Path(__file__).with_name("worker.py"))]
    process = subprocess.Popen(  # noqa: S603  our own worker
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    )
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("the process has no pipes")
    lines: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_pump, args=(process.stdout, lines), daemon=True).start()
    done: dict[str, Run] = {}
    try:
        process.stdin.write(json.dumps([[name, str(path), text] for name, (path, text) in jobs.items()]))
        process.stdin.close()
        while line := lines.get(timeout=SECONDS):
            name, log, error = json.loads(line)
            done[name] = Run(tuple(log), error)
    except (queue.Empty, BrokenPipeError):
        pass  # the caller sees what has no run
    finally:
        process.kill()
        process.wait()
    return done


def _pump(stream: IO[str], lines: "queue.Queue[str]") -> None:
    for line in stream:
        lines.put(line)
    lines.put("")
