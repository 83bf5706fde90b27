"""Measure torch and write the data file, or measure some names again and compare."""

import argparse
import sys
import warnings
from pathlib import Path

if __package__ in (None, ""):  # `python tools/measure` puts this folder first, not the project's
    sys.path[0] = str(Path(__file__).parents[2])
sys.path.append(str(Path(__file__).parents[2] / "server"))

warnings.simplefilter("ignore")  # torch deprecates some of what it is asked here

import torch  # noqa: E402

from gradvet.autograd.knowledge.lookup import load  # noqa: E402
from tools.measure import build, table, wide  # noqa: E402


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.measure", description=__doc__)
    parser.add_argument(
        "--check", type=int, metavar="N", help="measure N names again and compare; write nothing"
    )
    parser.add_argument(
        "--wide", type=int, metavar="N", help="hold the records of N names against many more calls"
    )
    parser.add_argument("--seed", type=int, default=0, help="which names --check takes")
    parser.add_argument(
        "--name", action="append", default=[], help="print the record of this name; write nothing"
    )
    options = parser.parse_args()
    torch.set_num_threads(1)  # the examples are tiny
    if options.name:
        for name in options.name:
            print(name, table.line(build.measure(name)))
        return 0
    if options.check is not None:
        drift = build.drift(table.load(), build.sample(table.load(), options.check, options.seed))
        print("\n".join(drift) or f"{options.check} names measured again: no difference")
        return bool(drift)
    if options.wide is not None:
        calls, found = wide.contradictions(load(), wide.names(options.wide, options.seed))
        print("\n".join(found) or f"{calls} calls: no contradiction")
        return bool(found)
    sections = build.everything()
    table.TARGET.write_text(table.dump(sections), encoding="utf-8")
    print(table.line(sections["meta"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
