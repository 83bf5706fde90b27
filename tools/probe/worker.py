"""The far side: torch is imported once, then each program runs in a fork, in an empty folder."""

import contextlib
import json
import os
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

import torch._dynamo  # noqa: F401  the first optimizer would import it, in every fork again, for seconds

from tools.probe.observed import Failure, Observation, Program
from tools.probe.perform import perform

GRACE_SECONDS = 5.0


def main() -> None:
    """Jobs from stdin, one a line; an answer each. An empty answer first says that torch is there."""
    jobs = os.fdopen(os.dup(0), encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    _silence()
    print("{}", file=answers, flush=True)
    for line in jobs:
        print(json.dumps(_in_fork(json.loads(line))), file=answers, flush=True)


def _silence() -> None:
    """What programs read is empty and what they print goes nowhere, be it by Python or by C."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)


def _in_fork(job: dict[str, Any]) -> dict[str, Any]:
    program, seconds = Program(**job["program"]), float(job["seconds"])
    with tempfile.TemporaryDirectory(prefix="gradvet-probe-", ignore_cleanup_errors=True) as folder:
        answer, work = Path(folder, "answer.json"), Path(folder, "work")
        work.mkdir()
        child = os.fork()
        if child == 0:
            _child(program, seconds, answer, work)
        status = _end(child, seconds + GRACE_SECONDS)
        if answer.exists():
            return json.loads(answer.read_text(encoding="utf-8"))  # type: ignore[no-any-return]
        return Observation({}, Failure("Died", f"the process ended with status {status}", None)).to_json()


def _child(program: Program, seconds: float, answer: Path, work: Path) -> None:
    """Run the program and leave; nothing of this fork may go on with the parent's work."""

    def deliver(seen: Observation) -> None:
        unfinished = answer.with_suffix(".part")
        unfinished.write_text(json.dumps(seen.to_json()), encoding="utf-8")
        unfinished.rename(answer)

    try:
        os.setsid()
        os.chdir(work)
        perform(program, seconds, deliver)
    finally:
        os._exit(0)


def _end(child: int, seconds: float) -> int:
    """The status of a child that ends, or is ended, in time; what it started ends with it."""
    end = time.monotonic() + seconds
    done = status = 0
    while not done and time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if not done:
            time.sleep(0.005)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if not done:
        _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    main()
