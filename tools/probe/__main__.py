"""Show what autograd held for every expression of a program."""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from tools.probe.client import SECONDS, probing, read_program
from tools.probe.observed import Observation, Program


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.probe", description=__doc__)
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--json", action="store_true", help="print all of it as JSON")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long the program may run")
    options = parser.parse_args()
    program = read_program(options.file)
    with probing(options.seconds) as prober:
        observation = prober.probe(program)
    if options.json:
        print(json.dumps(observation.to_json(), indent=1))
    else:
        print("\n".join(lines(program, observation)))
    return 1 if observation.failure else 0


def lines(program: Program, observation: Observation) -> Iterator[str]:
    """The states of each tensor expression, in the order of the text."""
    texts = program.text.splitlines()
    for where, seen in sorted(observation.seen.items()):
        for state in sorted(seen.states, key=str):
            cut = None if where.end_row > where.row else where.end_column
            text = texts[where.row - 1].encode()[where.column : cut].decode(errors="replace")
            yield f"{where.row}:{where.column}: `{text}` {state}"
    if observation.failure:
        yield str(observation.failure)


if __name__ == "__main__":
    sys.exit(main())
