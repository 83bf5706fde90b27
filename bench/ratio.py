"""How long the dry run takes, as a multiple of `ast.parse` on the same files.

    python bench/ratio.py PATH...      folders or files; files that do not speak of torch are left out

Time is that of the processor, each file is parsed and run several times and the best of each counts: so other work on the
machine shows little. The figures are only for comparing with one another.
"""

import argparse
import ast
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from gradvet.autograd.run import run
from gradvet.collection import seldom
from gradvet.syntax.parse import parse
from gradvet.text import Source


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=3, help="take the best of so many")
    parser.add_argument("--worst", type=int, default=5, help="name so many of the slowest files")
    options = parser.parse_args()
    seldom()
    run(parse(Source("warm-up", "import torch\nx = torch.ones(3) * 2\n")))
    rows = []
    for path in files(options.paths):
        text = path.read_text(encoding="utf-8", errors="replace")
        if "torch" not in text:
            continue
        try:
            parsing = best(options.rounds, lambda text=text: ast.parse(text))
        except SyntaxError:
            continue
        source = Source(str(path), text)
        running = best(options.rounds, lambda source=source: run(parse(source))) - parsing
        rows.append((running / parsing, running, path, text.count("\n")))
    if not rows:
        parser.error("no file there speaks of torch")
    rows.sort(key=lambda row: row[0])
    ratios = [row[0] for row in rows]
    lines = sum(row[3] for row in rows)
    total = sum(row[1] for row in rows)
    print(
        f"{len(rows)} files, {lines} lines: median {statistics.median(ratios):.1f} times ast.parse, worst {ratios[-1]:.1f}"
    )
    print(f"{total:.2f} s of dry run in all, {lines / total:.0f} lines a second")
    for ratio, seconds, path, _ in reversed(rows[-options.worst :]):
        print(f"{ratio:7.1f}  {seconds * 1000:7.1f} ms  {path}")


def files(paths: list[Path]) -> Iterator[Path]:
    """All Python files under some paths, in order."""
    for path in paths:
        yield from sorted(path.rglob("*.py")) if path.is_dir() else [path]


def best(rounds: int, work: Callable[[], object]) -> float:
    """The seconds of the quickest of several rounds."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


if __name__ == "__main__":
    main()
