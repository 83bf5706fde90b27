"""Make random programs, run them under torch and dry, and show the smallest in which the two disagree."""

import argparse
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "server"))

from tools.fuzz.campaign import SECONDS, STATEMENTS, Trial, smallest, trial
from tools.probe.client import probing


def main() -> int:
    """Run from the command line; 1 when a disagreement was found."""
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__)
    parser.add_argument("programs", type=int, metavar="N", help="how many programs")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first; each has the next")
    parser.add_argument("--statements", type=int, default=STATEMENTS, help="how long the programs are")
    parser.add_argument("--tries", type=int, default=400, help="how hard to make each small; 0: not at all")
    options = parser.parse_args()
    tensors = unknown = missing = raised = disagreeing = 0
    shown: set[str] = set()
    with probing(SECONDS) as prober:
        for seed in range(options.seed, options.seed + options.programs):
            found = trial(seed, prober, options.statements)
            tensors += found.judgement.tensors
            unknown += found.judgement.unknown
            missing += found.judgement.missing.total()
            raised += found.observation.failure is not None
            disagreeing += bool(found.faults)
            for fault, words in list(found.faults.items())[:1]:  # the others often follow from it
                if words in shown:
                    continue
                small = smallest(found, fault, prober, options.tries) if options.tries else found
                if not {small.faults[fault], small.program.text} & shown:
                    print(report(seed, small), flush=True)
                shown |= {words, small.faults[fault], small.program.text}
    print(
        f"{options.programs} programs ({raised} raised), {tensors} tensor expressions: "
        f"{disagreeing} disagree, {unknown} unknown, {missing} missing"
    )
    return 1 if shown else 0


def report(seed: int, found: Trial) -> str:
    """A program and what is wrong with it."""
    wrong = [str(contradiction) for contradiction in found.judgement.contradictions]
    wrong += [str(alarm) for alarm in found.alarms]
    wrong += [f"the dry run failed: {found.crash}"] if found.crash else []
    return "\n".join([f"--- seed {seed}", found.program.text.rstrip(), *(f"# {line}" for line in wrong), ""])


if __name__ == "__main__":
    sys.exit(main())
