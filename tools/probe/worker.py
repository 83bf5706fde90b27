"""The far side: torch is imported once, then programs run in forks, each in an empty folder."""

import gc
import json
import os

import torch._dynamo  # noqa: F401  the first optimizer would import it, in every fork again, for seconds

from tools.probe.fork import Fork
from tools.probe.observed import Failure, Observation, Program


def main() -> None:
    """Jobs from stdin, one a line; an answer each. An empty answer first says that torch is there."""
    jobs = os.fdopen(os.dup(0), encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    _silence()
    gc.freeze()  # what torch is made of is no garbage, and need not be looked through in every fork
    print("{}", file=answers, flush=True)
    shared: Fork | None = None
    for line in jobs:
        job = json.loads(line)
        program, seconds = Program(**job["program"]), float(job["seconds"])
        fork, answer = _run(program, seconds, shared, brief=job["brief"])
        shared = fork if job["share"] and answer is not None else None
        status = fork.end() if shared is None else 0
        print(answer or _died(status), file=answers, flush=True)
    if shared is not None:
        shared.end()


def _run(program: Program, seconds: float, fork: Fork | None, *, brief: bool) -> tuple[Fork, str | None]:
    """Run a program in a fork that others were run in, or in a new one where there is none or it has ended."""
    answer = fork.run(program, seconds, brief=brief) if fork is not None else None
    if fork is None or answer is None:
        if fork is not None:
            fork.end()
        fork = Fork()
        answer = fork.run(program, seconds, brief=brief)
    return fork, answer


def _silence() -> None:
    """What programs read is empty and what they print goes nowhere, be it by Python or by C."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)


def _died(status: int) -> str:
    failure = Failure("Died", f"the process ended with status {status}", None)
    return json.dumps(Observation({}, failure).to_json())


if __name__ == "__main__":
    main()
