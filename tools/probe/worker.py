"""The far side: torch is imported once, then each program runs in a fork of this process, in a folder of its own."""

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tools.probe.observed import Failure, Observation, Program
from tools.probe.perform import perform

GRACE_SECONDS = 5.0


def main() -> None:
    """Jobs from stdin, one a line; an answer each. An empty answer first says that torch is there."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    _silence()
    print("{}", file=answers, flush=True)
    jobs = os.fdopen(os.dup(0), encoding="utf-8")
    for line in jobs:
        print(json.dumps(_in_fork(json.loads(line))), file=answers, flush=True)


def _silence() -> None:
    """What programs print goes nowhere, be it printed by Python or by C."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def _in_fork(job: dict[str, Any]) -> dict[str, Any]:
    program, seconds = Program(**job["program"]), float(job["seconds"])
    with tempfile.TemporaryDirectory(prefix="gradvet-probe-") as folder:
        answer, work = Path(folder, "answer.json"), Path(folder, "work")
        work.mkdir()
        child = os.fork()
        if child == 0:
            _child(program, seconds, answer, work)
        status = _wait(child, seconds + GRACE_SECONDS)
        if answer.exists():
            return json.loads(answer.read_text(encoding="utf-8"))  # type: ignore[no-any-return]
        return Observation({}, Failure("Died", f"the process ended with status {status}", None)).to_json()


def _child(program: Program, seconds: float, answer: Path, work: Path) -> None:
    """Run the program and leave; nothing of this fork may go on with the parent's work."""

    def deliver(seen: Observation) -> None:
        text = json.dumps(seen.to_json())
        unfinished = answer.with_suffix(".part")
        unfinished.write_text(text, encoding="utf-8")
        unfinished.rename(answer)

    try:
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.chdir(work)
        perform(program, seconds, deliver)
    finally:
        sys.stdout.flush()
        os._exit(0)


def _wait(child: int, seconds: float) -> int:
    """The status of a child that ends, or is ended, in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(child, 9)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    main()
