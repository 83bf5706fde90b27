"""Put known faults into real training code, one at a time, and count those that a checker finds.

Counted are the mutants that were read by hand and are faults that their file shows (`judged.json`); `--all`
counts those too that nobody has read, of which some are no faults.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "server"))

from tools.checker import OURS, Found
from tools.mutate.campaign import FAULT, HIDDEN, NONE, PACKAGES, Case, all_cases, judged, run, snippet
from tools.mutate.operators import OPERATORS
from tools.packages import pinned

MOST_OF_A_PACKAGE = 3


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutate", description=__doc__)
    parser.add_argument(
        "--command", action="append", metavar="COMMAND", help="a checker; paths are put behind it"
    )
    parser.add_argument("--all", action="store_true", help="those too that nobody has judged")
    parser.add_argument(
        "--only",
        action="append",
        metavar="OPERATOR",
        choices=OPERATORS,
        help="the mutants of this operator, or of several",
    )
    parser.add_argument("--misses", action="store_true", help="show each fault that is missed")
    parser.add_argument(
        "--sample", type=int, metavar="N", help="show N unjudged mutants of each operator, to judge"
    )
    options = parser.parse_args()
    for package in pinned(PACKAGES):
        package.fetch()
    known = judged()
    operators = options.only or list(OPERATORS)
    if options.sample is not None:
        for case in _sample(all_cases(operators), known, options.sample):
            print(f"=== {case.key} {case.mutant.operator} {case.package.name} {case.path}\n{snippet(case)}")
        return 0
    if options.all:
        wanted = [case for case in all_cases(operators) if _verdict(case, known) not in (NONE, HIDDEN)]
    else:
        wanted = all_cases(
            operators, {key: entry for key, entry in known.items() if entry["verdict"] == FAULT}
        )
    for command in options.command or [OURS]:
        found = run(wanted, command)
        print(_table(command, wanted, found))
        if options.misses:
            for case in wanted:
                if not found[case.key]:
                    place = f"{case.package.name} {case.path}:{case.mutant.row}"
                    print(f"missed {case.key} {case.mutant.operator} {place} {case.line}")
    return 0


def _verdict(case: Case, known: dict[str, dict[str, str]]) -> str:
    return known.get(case.key, {}).get("verdict", "")


def _sample(cases: list[Case], known: dict[str, dict[str, str]], size: int) -> list[Case]:
    """The first few of each operator in the order of their names, which nobody chooses; few of one package."""
    taken: Counter[tuple[str, str]] = Counter()
    sample = []
    for case in sorted(cases, key=lambda case: (case.key not in known, case.key)):
        name, package = case.mutant.operator, case.package.name
        if case.key in known or (taken[name, ""] < size and taken[name, package] < MOST_OF_A_PACKAGE):
            taken[name, ""] += 1
            taken[name, package] += 1
            sample += [case] * (case.key not in known)
    return sorted(sample, key=lambda case: case.mutant.operator)


def _table(command: str, cases: list[Case], found: dict[str, list[Found]]) -> str:
    lines = [f"{command}"]
    for name in (*OPERATORS, "in all"):
        own = [case for case in cases if name in (case.mutant.operator, "in all")]
        caught = sum(bool(found[case.key]) for case in own)
        share = f"{caught / len(own):.2f}" if own else "-"
        lines.append(f"  {name:26} {caught:4} of {len(own):4}  {share}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
