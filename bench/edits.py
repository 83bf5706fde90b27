"""How long a keystroke takes to published diagnostics, with the real server over standard input and output.

    python bench/edits.py [LINES...]      default: 1400 and 4800

Each edit changes a line in the middle of a model file: a comment, or code in a function, which may parse or not.
The time from sending it to receiving what is said of it is told without the server's pause for further keys, as a
multiple of `ast.parse` on the same text in the same run. Between edits, `ping` is how long the server takes to answer
a request that needs no analysis while one is under way.
"""

import argparse
import ast
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

from keystroke import best, model_file
from wire import Client

from gradvet.lsp.newest import SETTLE

EDITS = {
    "a comment": ("\n", "# edit {}\n"),
    "code": ("    optimizer = ", "    rate = {} * 1e-4\n"),
    "code that will not parse": ("    optimizer = ", "    rate = ({} * 1e-4\n"),
}
"""What the line before the edited one begins with, and that line."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("lines", nargs="*", type=int, default=[1400, 4800])
    parser.add_argument("--edits", type=int, default=40)
    options = parser.parse_args()
    for lines in options.lines:
        text = model_file(lines)
        parsing = best(5, lambda text=text: ast.parse(text))
        for kind in EDITS:
            times, pings = edits(text, options.edits, kind)
            print(
                f"{text.count(chr(10))} lines, {len(times)} edits of {kind}: {_words(times, pings, parsing)}"
            )


def _words(times: Sequence[float], pings: Sequence[float], parsing: float) -> str:
    p95 = statistics.quantiles(times, n=20)[-1] if len(times) > 1 else times[0]
    return (
        f"median {statistics.median(times) * 1000:.0f} ms, p95 {p95 * 1000:.0f} ms, "
        f"{p95 / parsing:.1f} times ast.parse ({parsing * 1000:.1f} ms); "
        f"ping while analysing: median {statistics.median(pings) * 1000:.0f} ms, most {max(pings) * 1000:.0f} ms"
    )


def edits(text: str, count: int, kind: str) -> tuple[list[float], list[float]]:
    """The seconds that each edit of a kind took after the pause, and each ping meanwhile."""
    client = Client()
    uri = (Path.cwd() / "model.py").as_uri()
    client.open(uri, text)
    rows = text.splitlines(keepends=True)
    middle = len(rows) // 2
    before, line = EDITS[kind]
    while not rows[middle - 1].startswith(before):
        middle += 1
    rows.insert(middle, "")
    times, pings = [], []
    for version in range(2, count + 2):
        rows[middle] = line.format(version)
        start = time.perf_counter()
        document = {"uri": uri, "version": version}
        client.send(
            "textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": "".join(rows)}]}
        )
        asked = time.perf_counter()
        client.request("workspace/executeCommand", {"command": "gradvet.server.debugInformation"})
        pings.append(time.perf_counter() - asked)
        client.diagnostics(uri, version)
        times.append(time.perf_counter() - start - SETTLE)
    client.end()
    return times, pings


if __name__ == "__main__":
    main()
