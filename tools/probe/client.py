"""The near side: starts a worker, hands it programs and reads what they showed. Knows no torch."""

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import IO

from tools.probe.observed import Observation, Program

SECONDS = 60.0
_ROOT = Path(__file__).parents[2]
_SURROUNDINGS = {"MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(_ROOT), "PYTHONWARNINGS": "ignore"}


class Prober:
    """Runs programs one after the other; a context manager."""

    def __init__(self, seconds: float = SECONDS) -> None:
        """`seconds` is how long each program may run."""
        self._seconds = seconds
        self._worker: subprocess.Popen[str] | None = None

    def probe(self, program: Program) -> Observation:
        """What a program showed under torch."""
        into, out = self._pipes()
        into.write(json.dumps({"program": asdict(program), "seconds": self._seconds}) + "\n")
        into.flush()
        line = out.readline()
        if not line:
            message = "the worker of the probe ended; can it import torch?"
            raise RuntimeError(message)
        return Observation.from_json(json.loads(line))

    def _pipes(self) -> tuple[IO[str], IO[str]]:
        if self._worker is None:
            self._worker = subprocess.Popen(
                [sys.executable, "-m", "tools.probe.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                encoding="utf-8",
                cwd=_ROOT,
                env={**os.environ, **_SURROUNDINGS},
            )
            assert self._worker.stdout is not None
            self._worker.stdout.readline()
        assert self._worker.stdin is not None
        assert self._worker.stdout is not None
        return self._worker.stdin, self._worker.stdout

    def close(self) -> None:
        """End the worker."""
        if self._worker is not None:
            self._worker.communicate()
            self._worker = None

    def __enter__(self) -> "Prober":
        """The worker starts with the first program."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the worker."""
        self.close()


def read_program(path: Path) -> Program:
    """The program of a file."""
    return Program(path.read_text(encoding="utf-8"), str(path.resolve()), str(path.resolve().parent))
