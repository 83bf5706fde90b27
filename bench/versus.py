"""How long `gradvet check` takes over a path, beside another command over the same path.

    python bench/versus.py PATH COMMAND [ARGUMENT...]      {} among the arguments stands for the path

For example, `python bench/versus.py src/ other-linter check {}`. The two take turns, so that other work
on the machine hits both, and of each the quickest round counts and the middle one is shown. Wall time is what a
person waits; the processor's time, over all processes, is hardly touched by other work.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Round:
    """The seconds of one run, and its exit status."""

    wall: float
    processor: float
    status: int


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5, help="so many of each")
    parser.add_argument("--jobs", type=int, default=2, help="processors that may be used")
    parser.add_argument("path", type=Path)
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND [ARGUMENT...]")
    options = parser.parse_args()
    if not options.command:
        parser.error("name the command to compare with")
    path = str(options.path)
    ours = [
        sys.executable,
        "-m",
        "gradvet",
        "check",
        "--no-cache",
        "--exit-zero",
        "-j",
        str(options.jobs),
        path,
    ]
    theirs = [path if part == "{}" else part for part in options.command]
    if path not in theirs:
        theirs.append(path)
    _keep_to(options.jobs)
    commands = {"gradvet": ours, theirs[0].rpartition(os.sep)[2]: theirs}
    rounds: dict[str, list[Round]] = {name: [] for name in commands}
    for command in commands.values():
        _run(command)  # warm: byte code is written, files are in memory
    for _ in range(options.rounds):
        for name, command in commands.items():
            rounds[name].append(_run(command))
    print(f"{path}, {options.jobs} processors, {options.rounds} rounds")
    for name, runs in rounds.items():
        walls = [one.wall for one in runs]
        print(
            f"{name:>20}: {min(walls):7.2f} s at best, {statistics.median(walls):7.2f} s in the middle, "
            f"{min(one.processor for one in runs):7.2f} s of processor; exit status {runs[-1].status}"
        )
    first, second = rounds.values()
    walls = min(one.wall for one in second) / min(one.wall for one in first)
    middle = statistics.median(one.wall for one in second) / statistics.median(one.wall for one in first)
    processor = min(one.processor for one in second) / min(one.processor for one in first)
    print(f"gradvet is {walls:.1f} times as fast ({middle:.1f} in the middle, {processor:.1f} by processor)")


def _keep_to(processors: int) -> None:
    """Let this process, and what it starts, use no more than so many processors."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:processors])


def _run(command: list[str]) -> Round:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Round(wall, spent, done.returncode)


if __name__ == "__main__":
    main()
