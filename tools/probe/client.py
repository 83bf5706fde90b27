"""The near side: starts a worker, hands it programs and reads what they showed. Knows no torch."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import IO

from tools.probe.observed import Observation, Program

SECONDS = 60.0
_ROOT = Path(__file__).parents[2]
_SURROUNDINGS = {
    "MPLBACKEND": "Agg",
    "OMP_NUM_THREADS": "1",
    "PYTHONPATH": str(_ROOT),
    "PYTHONWARNINGS": "ignore",
}


class Prober:
    """Runs programs one after the other in a worker that is there; see `probing`."""

    def __init__(self, jobs: IO[str], answers: IO[str], seconds: float, *, share: bool) -> None:
        """Speak to a worker by its pipes; each program may run for so many seconds."""
        self._jobs = jobs
        self._answers = answers
        self._seconds = seconds
        self._share = share
        self._answer()  # torch has been imported

    def probe(self, program: Program, *, brief: bool = False) -> Observation:
        """What a program showed under torch; of one that raised only the exception, if that is enough."""
        job = {"program": asdict(program), "seconds": self._seconds, "share": self._share, "brief": brief}
        self._jobs.write(json.dumps(job) + "\n")
        self._jobs.flush()
        return Observation.from_json(json.loads(self._answer()))

    def _answer(self) -> str:
        line = self._answers.readline()
        if not line:
            raise RuntimeError("the worker of the probe ended; can it import torch?")
        return line


@contextlib.contextmanager
def probing(seconds: float = SECONDS, *, share: bool = False) -> Iterator[Prober]:
    """A prober, as long as it is needed; `seconds` is how long each program may run.

    Each program has a process of its own, unless they `share` one, which is much faster: then only chance,
    grad mode, folder and main module are set back in between, not what a program does to torch itself.
    """
    with subprocess.Popen(
        [sys.executable, "-m", "tools.probe.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        cwd=_ROOT,
        env={**os.environ, **_SURROUNDINGS},
    ) as worker:
        if worker.stdin is None or worker.stdout is None:  # they are pipes, but mypy cannot know
            return
        yield Prober(worker.stdin, worker.stdout, seconds, share=share)


def read_program(path: Path) -> Program:
    """The program of a file."""
    return Program(path.read_text(encoding="utf-8"), str(path.resolve()), str(path.resolve().parent))
