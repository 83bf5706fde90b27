"""How long the language server takes from its start to the first diagnostics, beside importing pygls's server alone.

    python bench/start.py [--lines 300] [--rounds 7]

Both take turns, and of each the quickest round counts. Wall time is what a person waits; the processor's time is
hardly touched by other work on the machine. The last line tells where the server's time goes.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any

from keystroke import model_file
from wire import Client

_PYGLS = "import pygls.lsp.server"
_STEPS = f"""
import sys, time
start = time.process_time()
{_PYGLS}
pygls = time.process_time()
import gradvet.lsp.server
server = time.process_time()
from gradvet.rules import all_rules
all_rules()
rules = time.process_time()
from gradvet.analysis import analyze
from gradvet.text import Source
analyze(Source("model.py", sys.stdin.read()))
print(pygls - start, server - pygls, rules - server, time.process_time() - rules)
"""


@dataclass(frozen=True, slots=True)
class Round:
    """The seconds of one run."""

    wall: float
    processor: float


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lines", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=7, help="so many of each")
    options = parser.parse_args()
    text = model_file(options.lines)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # what is installed is compiled
    first_diagnostics(text)
    rounds: dict[str, list[Round]] = {"pygls imported": [], "first diagnostics": []}
    for _ in range(options.rounds):
        rounds["pygls imported"].append(timed(importing))
        rounds["first diagnostics"].append(timed(lambda: first_diagnostics(text)))
    for name, runs in rounds.items():
        walls = [run.wall for run in runs]
        print(
            f"{name:>20}: {min(walls):6.2f} s at best, {statistics.median(walls):6.2f} s in the middle, "
            f"{min(run.processor for run in runs):6.2f} s of processor"
        )
    alone, ours = rounds.values()
    wall = min(run.wall for run in ours) / min(run.wall for run in alone)
    processor = min(run.processor for run in ours) / min(run.processor for run in alone)
    print(f"{text.count(chr(10))} lines: {wall:.2f} times pygls by wall time, {processor:.2f} by processor")
    done = subprocess.run(
        [sys.executable, "-c", _STEPS], input=text, capture_output=True, text=True, check=True
    )
    parts = [float(part) for part in done.stdout.split()]
    names = ("pygls", "the server", "the rules", "the analysis")
    print(", ".join(f"{name} {part:.2f} s" for name, part in zip(names, parts)))


def timed(work: Any) -> Round:
    """The seconds that some work takes, with those of the processes that it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    wall = work()
    wall = time.perf_counter() - start if wall is None else wall
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Round(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def importing() -> None:
    """Import what every server that is made with pygls does."""
    subprocess.run([sys.executable, "-c", _PYGLS], check=True)


def first_diagnostics(text: str) -> float:
    """Start the server, open a file, and wait for what it says of it; gives the seconds to there."""
    start = time.perf_counter()
    client = Client()
    client.open("file:///w/model.py", text)
    seconds = time.perf_counter() - start
    client.end()
    return seconds


if __name__ == "__main__":
    main()
