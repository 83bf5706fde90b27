"""Run programs under torch and dry, and tell where the dry run rules out what torch held.

A star marks the contradictions from which the others follow.
"""

import argparse
import sys
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

_ROOT = Path(__file__).parents[2]
sys.path.append(str(_ROOT / "server"))

from tools.probe.client import SECONDS, probing, read_program  # noqa: E402
from tools.probe.false_alarms import FalseAlarm, false_alarms  # noqa: E402
from tools.probe.judgement import Judgement, judge  # noqa: E402
from tools.probe.observed import Observation, Program  # noqa: E402


def main() -> int:
    """Run from the command line; 1 when there is a contradiction or a false alarm."""
    parser = argparse.ArgumentParser(prog="python -m tools.probe.compare", description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a file, or a folder to search")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long each program may run")
    parser.add_argument("--missing", type=int, default=12, metavar="N", help="show the N commonest reasons")
    options = parser.parse_args()
    total = Total()
    with probing(options.seconds) as prober:
        for path in files(options.paths):
            program = read_program(path)
            observation = prober.probe(program)
            for line in total.add(program, observation):
                print(line, flush=True)
    print("\n".join(total.lines(options.missing)))
    return 1 if total.contradictions or total.alarms or total.crashes else 0


def files(paths: Sequence[Path]) -> Iterator[Path]:
    """The Python files among paths and in folders, in order."""
    for path in paths:
        yield from sorted(path.rglob("*.py")) if path.is_dir() else [path]


class Total:
    """Adds up the judgements of many programs."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.programs = self.raised = self.crashes = 0
        self.contradictions = self.tensors = self.unknown = self.assumed = 0
        self.missing: Counter[str] = Counter()
        self.alarms: Counter[str] = Counter()

    def add(self, program: Program, observation: Observation) -> Iterator[str]:
        """Take one program in; what there is to say about it."""
        self.programs += 1
        self.raised += observation.failure is not None
        try:
            judgement = judge(program, observation)
            alarms = false_alarms(program, observation)
        except Exception:  # a dry run that fails is reported like any other fault
            self.crashes += 1
            yield f"{program.path}: the dry run failed\n{traceback.format_exc()}"
            return
        self.contradictions += len(judgement.contradictions)
        self.tensors += judgement.tensors
        self.unknown += judgement.unknown
        self.assumed += judgement.assumed
        self.missing += judgement.missing
        self.alarms += Counter(alarm.rule for alarm in alarms)
        yield _summary(program, observation, judgement, alarms)
        yield from (f"{'*' if found.root else ' '} {found}" for found in judgement.contradictions)
        yield from (f"  {alarm}" for alarm in alarms)

    def lines(self, most: int) -> Iterator[str]:
        """The sums."""
        yield (
            f"{self.programs} programs ({self.raised} raised), {self.tensors} tensor expressions: "
            f"{self.contradictions} contradictions, {_share(self.unknown, self.tensors)} unknown, "
            f"{_share(self.assumed, self.tensors)} assumed, "
            f"{_share(self.missing.total(), self.tensors)} missing, {self.crashes} crashes"
        )
        yield from (f"  missing {count:5}  {why}" for why, count in self.missing.most_common(most))
        yield from (f"  false alarms {count:5}  {rule}" for rule, count in self.alarms.most_common())


def _summary(
    program: Program, observation: Observation, judgement: Judgement, alarms: Sequence[FalseAlarm]
) -> str:
    ended = f"; {observation.failure}" if observation.failure else ""
    return (
        f"{program.path}: {judgement.tensors} tensors, {len(judgement.contradictions)} contradictions, "
        f"{judgement.unknown} unknown, {judgement.assumed} assumed, {judgement.missing.total()} missing, "
        f"{len(alarms)} false alarms{ended}"
    )


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole if whole else 0:.1f} %"


if __name__ == "__main__":
    sys.exit(main())
