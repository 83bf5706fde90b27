"""The real server over standard input and output, with analyses made by hand: every `lost(` is a finding.

A file that says `slow` takes its time, one that says `crash` fails. `fake.analyses` tells how many ran.
"""

import time

from fake_analysis import analyze_lost
from gradvet.analysis import Analysis
from gradvet.config import Config
from gradvet.lsp import session
from gradvet.lsp.instance import server
from gradvet.lsp.server import main
from gradvet.text import Source

runs: list[str] = []


def analyze(source: Source, config: Config, *_: object) -> Analysis:
    """What `gradvet.analysis.analyze` would be asked; `ignore` of the one rule there is silences it."""
    runs.append(source.text)
    if "crash" in source.text:
        message = "the engine broke"
        raise RuntimeError(message)
    if "slow" in source.text:
        time.sleep(0.3)
    if "lost-graph" in config.ignore:
        return analyze_lost(Source(source.path, source.text.replace("lost", "____")))
    return analyze_lost(source)


@server.command("fake.analyses")
def analyses() -> int:
    """How many analyses have run."""
    return len(runs)


@server.command("fake.held")
def held() -> int:
    """How many requests and notifications the server still holds."""
    return len(getattr(server.protocol, "_request_futures", {}))


if __name__ == "__main__":
    session.analyze = analyze  # type: ignore[attr-defined,assignment]
    main()
