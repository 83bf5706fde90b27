"""`python -m tools.fixes PATH...`: apply each safe fix to each program, run both under torch, compare every step.

What is compared is each value that a backward starts from, and at each step of an optimizer the gradients of
its parameters and the parameters after it. Where the program as it stands raises, what came before is compared.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "server"))

from gradvet.analysis import Analysis, analyze  # noqa: E402  the server of this very clone
from gradvet.finding import Applicability  # noqa: E402
from gradvet.text import Source, apply  # noqa: E402
from gradvet.views import fixed  # noqa: E402
from tools.fixes.runs import Run, runs  # noqa: E402


def main(arguments: list[str] | None = None) -> int:
    """Print what differs, and a summary; 1 when a safe fix changes something, or leaves its finding."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "paths", nargs="+", type=Path, help="Python files that can be run, or folders of them"
    )
    options = parser.parse_args(arguments)
    jobs: dict[str, tuple[Path, str]] = {}
    bad = 0
    for path in _files(options.paths):
        text = path.read_text(encoding="utf-8")
        jobs[f"{path}"] = (path, text)
        for title, changed, complaint in _repairs(path, text):
            jobs[f"{path} · {title}"] = (path, changed)
            if complaint:
                bad += 1
                print(f"{path}: `{title}`: {complaint}")
    needed = {
        name: job for name, job in jobs.items() if " · " in name or any(f"{name} · " in n for n in jobs)
    }
    done = runs(needed)
    fixes = [name for name in needed if " · " in name]
    for name in fixes:
        for difference in _differences(done[str(needed[name][0])], done[name]):
            bad += 1
            print(f"{name}: {difference}")
    print(f"{len(fixes)} texts with safe fixes of {len(needed) - len(fixes)} programs, {bad} complaints")
    return 1 if bad else 0


def _files(paths: list[Path]) -> Iterator[Path]:
    for path in paths:
        yield from sorted(path.rglob("*.py")) if path.is_dir() else [path]


def _repairs(path: Path, text: str) -> Iterator[tuple[str, str, str]]:
    """Each safe fix by itself and all of them together: a name, the text, and what is wrong with it before it is run."""
    analysis = analyze(Source(str(path), text))
    for diagnostic in analysis.diagnostics:
        for fix in diagnostic.fixes:
            if fix.applicability is not Applicability.SAFE:
                continue
            row, _ = analysis.source.row_column(diagnostic.span.start)
            changed = apply(text, analysis.edits(fix))
            yield f"{row} {diagnostic.rule.name}: {fix.title}", changed, _news(analysis, changed)
    result = fixed(analysis, analyze, frozenset({Applicability.SAFE}))
    if result.count > 1:
        yield "all", result.analysis.source.text, ""


def _news(before: Analysis, text: str) -> str:
    """Findings that a fix brings: of a rule that had fewer before."""
    after = analyze(Source(before.source.path, text))
    counts: dict[str, int] = {}
    for analysis, step in ((before, -1), (after, 1)):
        for diagnostic in analysis.diagnostics:
            counts[diagnostic.rule.name] = counts.get(diagnostic.rule.name, 0) + step
    new = sorted(name for name, count in counts.items() if count > 0)
    return (
        f"brings {', '.join(new)}"
        if new
        else ""
        if min(counts.values(), default=0) < 0
        else "changes no finding"
    )


def _differences(ours: Run, theirs: Run) -> Iterator[str]:
    """Where the run of a fixed program trains something else."""
    if not ours.ended:
        yield f"cannot be compared: {ours.error}"
        return
    if theirs.error and theirs.error != ours.error:
        yield f"raises {theirs.error}"
    for number, (a, b) in enumerate(zip(ours.log, theirs.log)):
        if a != b:
            yield f"event {number}: {a} without the fix, {b} with it"
            return
    if not ours.error and len(ours.log) != len(theirs.log):
        yield f"{len(ours.log)} events without the fix, {len(theirs.log)} with it"


if __name__ == "__main__":
    sys.exit(main())
