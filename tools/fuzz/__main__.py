"""Make random programs, run them under torch and dry, and show the smallest in which the two disagree."""

import argparse
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "server"))

from tools.fuzz.campaign import SECONDS, STATEMENTS, Trial, smallest
from tools.fuzz.total import Total
from tools.fuzz.work import batch, begin
from tools.probe.client import Prober, probing

BATCH = 50
"""How many programs a worker is given at a time."""


def main() -> int:
    """Run from the command line; 1 when a disagreement was found."""
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__)
    parser.add_argument("programs", type=int, metavar="N", help="how many programs")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first; each has the next")
    parser.add_argument("--statements", type=int, default=STATEMENTS, help="how long the programs are")
    parser.add_argument("--tries", type=int, default=400, help="how hard to make each small; 0: not at all")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="how many run at once")
    parser.add_argument("--every", type=int, default=1000, metavar="N", help="tell the sums after so many")
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.programs)
    batches = [seeds[at : at + BATCH] for at in range(0, len(seeds), BATCH)]
    total, told, shown = Total(), 0, set[str]()
    workers = ProcessPoolExecutor(options.workers, get_context("spawn"), begin)
    with workers, probing(SECONDS, share=True) as prober:
        for sums, disagreeing in workers.map(batch, batches, [options.statements] * len(batches)):
            for found in disagreeing:
                for text in reports(found, prober, options.tries, shown):
                    print(text, flush=True)
            total += sums
            if total.programs // options.every > told:
                told = total.programs // options.every
                print(total, flush=True)
    print(total)
    return 1 if total.disagreeing else 0


def reports(found: Trial, prober: Prober, tries: int, shown: set[str]) -> Iterator[str]:
    """The report of a disagreement, made small, unless one like it has been shown."""
    for fault, words in list(found.faults.items())[:1]:  # the others often follow from it
        if words in shown:
            continue
        small = smallest(found, fault, prober, tries) if tries else found
        if not {small.faults[fault], small.program.text} & shown:
            yield report(small)
        shown |= {words, small.faults[fault], small.program.text}


def report(found: Trial) -> str:
    """A program and what is wrong with it."""
    wrong = [str(contradiction) for contradiction in found.judgement.contradictions]
    wrong += [str(alarm) for alarm in found.alarms]
    wrong += [f"the dry run failed: {found.crash}"] if found.crash else []
    lines = [f"--- {found.program.path}", found.program.text.rstrip(), *(f"# {line}" for line in wrong), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
