"""Runs the programs of pages under real torch, in a process of its own, and tells what happened.

`run` is the near side: it starts `torch_worker.py` as a script, hands it jobs and collects their outcomes. A job
that does not end in time is killed and the rest goes on in a new process. Only the far side imports torch.
"""

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from tools.probe.observed import Failure

START_SECONDS = 120.0
JOB_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Job:
    """A program to run, then a proof in its namespace; `like` is a program whose values it must share."""

    id: str
    program: str
    proof: str = ""
    like: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """What torch held where `reveal_grad` stood."""

    row: int
    requires_grad: bool
    is_leaf: bool
    grad_fn: str | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a job; `differences` are the values that `like` holds otherwise."""

    error: Failure | None = None
    proof: Failure | None = None
    seen: tuple[Seen, ...] = ()
    warnings: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()


def run(jobs: Sequence[Job], job_seconds: float = JOB_SECONDS) -> dict[str, Outcome]:
    """The outcome of each job by its id."""
    outcomes: dict[str, Outcome] = {}
    left = list(jobs)
    while left:
        done = _run_some(left, job_seconds)
        outcomes |= done
        left = [job for job in left if job.id not in outcomes]
        if left:
            stuck = left.pop(0)
            text = f"no end after {job_seconds:g} seconds, or the process died"
            outcomes[stuck.id] = Outcome(error=Failure("Killed", text, None))
    return outcomes


def _run_some(jobs: Sequence[Job], job_seconds: float) -> dict[str, Outcome]:
    """The outcomes up to the first job that does not end."""
    command = [sys.executable, str(Path(__file__).with_name("torch_worker.py").resolve())]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
    assert process.stdin is not None
    assert process.stdout is not None
    lines: queue.Queue[str] = queue.Queue()
    reader = threading.Thread(target=_pump, args=(process.stdout, lines), daemon=True)
    reader.start()
    done: dict[str, Outcome] = {}
    try:
        process.stdin.write(json.dumps([asdict(job) for job in jobs]))
        process.stdin.close()
        seconds = START_SECONDS
        while line := lines.get(timeout=seconds):
            seconds = job_seconds
            answer = json.loads(line)
            if answer:
                done[answer["id"]] = _outcome(answer)
    except (queue.Empty, BrokenPipeError):
        pass  # what has no outcome was not done, and that is what the caller looks at
    finally:
        process.kill()
        process.wait()
        reader.join()
        process.stdout.close()
    return done


def _pump(stream: IO[str], lines: "queue.Queue[str]") -> None:
    """Each line into the queue, and an empty one at the end."""
    for line in stream:
        lines.put(line)
    lines.put("")


def _outcome(answer: dict[str, Any]) -> Outcome:
    return Outcome(
        _failure(answer["error"]),
        _failure(answer["proof"]),
        tuple(Seen(*seen) for seen in answer["seen"]),
        tuple(answer["warnings"]),
        tuple(answer["differences"]),
    )


def _failure(answer: dict[str, Any] | None) -> Failure | None:
    return Failure(**answer) if answer else None
