"""How long the language server takes from its start to the first diagnostics, beside importing pygls's server alone.

    python bench/start.py [--lines 300] [--rounds 7]

Both take turns, and of each the quickest round counts. Wall time is what a person waits; the processor's time is
hardly touched by other work on the machine. The last line tells where the server's time goes.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import IO, Any

from keystroke import model_file

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
    )  # noqa: S603
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
    subprocess.run([sys.executable, "-c", _PYGLS], check=True)  # noqa: S603


def first_diagnostics(text: str) -> float:
    """Start the server, open a file, and wait for what it says of it; gives the seconds to there."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "gradvet", "server"]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )  # noqa: S603
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("no pipes")
    send(process.stdin, "initialize", {"capabilities": {}, "processId": os.getpid(), "rootUri": None}, 1)
    receive(process.stdout, lambda message: message.get("id") == 1)
    send(process.stdin, "initialized", {})
    item = {"uri": "file:///w/model.py", "languageId": "python", "version": 1, "text": text}
    send(process.stdin, "textDocument/didOpen", {"textDocument": item})
    receive(process.stdout, lambda message: message.get("method") == "textDocument/publishDiagnostics")
    seconds = time.perf_counter() - start
    send(process.stdin, "shutdown", None, 2)
    receive(process.stdout, lambda message: message.get("id") == 2)
    send(process.stdin, "exit", None)
    process.wait(30)
    return seconds


def send(stream: IO[bytes], method: str, params: Any, number: int | None = None) -> None:
    """Send a message; one with a number is a request."""
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    if number is not None:
        message["id"] = number
    body = json.dumps(message).encode()
    stream.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    stream.flush()


def receive(stream: IO[bytes], wanted: Any) -> dict[str, Any]:
    """The next message that is wanted; those before it are dropped."""
    while True:
        length = 0
        while (line := stream.readline()) not in (b"\r\n", b""):
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        if not length:
            raise EOFError("the server has ended")
        message: dict[str, Any] = json.loads(stream.read(length))
        if wanted(message):
            return message


if __name__ == "__main__":
    main()
