"""A fork of the worker, in which programs run: one, or several one after the other."""

import contextlib
import json
import os
import select
import signal
import tempfile
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from tools.probe.observed import Observation, Program
from tools.probe.perform import perform, set_back

GRACE_SECONDS = 5.0
_MOST_BYTES = 1 << 16


class Fork:
    """A process that was not there before, and a folder of its own."""

    def __init__(self) -> None:
        """Start it."""
        self._folder = tempfile.TemporaryDirectory(prefix="gradvet-probe-", ignore_cleanup_errors=True)
        theirs, self._jobs = os.pipe()
        self._answers, ours = os.pipe()
        self._child = os.fork()
        if self._child == 0:
            _work(Path(self._folder.name), theirs, ours)
        os.close(theirs)
        os.close(ours)

    def run(self, program: Program, seconds: float, *, brief: bool) -> str | None:
        """What a program showed, as JSON; None when the process ended, or had to be given up, without an answer.

        Of one that raised it is only the exception, if the answer is to be `brief`.
        """
        job = json.dumps({"program": asdict(program), "for": seconds, "brief": brief})
        with contextlib.suppress(BrokenPipeError):
            _write(self._jobs, job)
        answer, end = b"", time.monotonic() + seconds + GRACE_SECONDS
        while not answer.endswith(b"\n"):
            ready, _, _ = select.select([self._answers], [], [], max(end - time.monotonic(), 0))
            read = os.read(self._answers, _MOST_BYTES) if ready else b""
            if not read:
                return None
            answer += read
        return answer.decode().rstrip("\n")

    def end(self) -> int:
        """The status of the process, which is ended if it has not; what it started ends with it."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._child, signal.SIGKILL)
        _, status = os.waitpid(self._child, 0)
        os.close(self._jobs)
        os.close(self._answers)
        self._folder.cleanup()
        return os.waitstatus_to_exitcode(status)


def _work(folder: Path, jobs: int, answers: int) -> None:
    """Run programs as long as there are any, and leave; nothing of this fork may go on with the parent's work."""
    try:
        os.setsid()
        with os.fdopen(jobs, encoding="utf-8") as lines:
            for number, line in enumerate(lines):
                work = folder / str(number) / "work"
                work.mkdir(parents=True)
                os.chdir(work)
                _perform(json.loads(line), answers)
                if not set_back():
                    break
    finally:
        os._exit(0)


def _perform(job: dict[str, Any], answers: int) -> None:
    def deliver(seen: Observation) -> None:
        brief = job["brief"] and seen.failure is not None
        _write(answers, json.dumps((replace(seen, seen={}) if brief else seen).to_json()))

    perform(Program(**job["program"]), job["for"], deliver)


def _write(pipe: int, line: str) -> None:
    """All of a line; what is not taken at once is written when there is room."""
    left = line.encode() + b"\n"
    while left:
        left = left[os.write(pipe, left) :]
