"""`gradvet check`: look at files, print what was found, apply fixes."""

import difflib
import os
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path

from gradvet.cli import as_text
from gradvet.cli.parallel import in_parallel
from gradvet.cli.report import Report
from gradvet.cli.work import Job, work
from gradvet.config import Config
from gradvet.finding import Applicability
from gradvet.project import Project, ProjectError, unknown_rules

CLEAN, FINDINGS, FAILURE = 0, 1, 2


def check(options: Namespace) -> int:
    """Do it; gives the exit status."""
    try:
        jobs, failures = _jobs(options)
    except ProjectError as error:
        return _complain([str(error)])
    if not jobs and not failures:
        _complain([f"{path}: no Python files there" for path in options.paths])
    processes = options.jobs or _processors()
    reports: list[Report] = []
    paint = as_text.Paint(_wants_colour())
    for report in in_parallel(work, jobs, processes, _lost):
        reports.append(report)
        failures += report.failures
        _tell(report, options, paint)
    _conclude(reports, options, paint)
    _complain(failures)
    return _status(reports, failures, options)


def _jobs(options: Namespace) -> tuple[list[Job], list[str]]:
    for option in ("select", "ignore"):
        if (complaint := unknown_rules(getattr(options, option) or ())) is not None:
            raise ProjectError(f"--{option} names {complaint}\n`gradvet rules` lists them all")
    if options.unsafe_fixes and not options.fix and not options.diff:
        raise ProjectError("--unsafe-fixes needs --fix, which applies them, or --diff, which shows them")
    kinds = set()
    if options.fix or options.diff:
        kinds = {Applicability.SAFE, Applicability.UNSAFE} if options.unsafe_fixes else {Applicability.SAFE}
    project = Project()
    jobs, failures = [], []
    for found in project.files(options.paths):
        if isinstance(found, ProjectError):
            failures.append(str(found))
            continue
        settings = project.settings(found)
        config = Config(
            settings.config.select if options.select is None else frozenset(options.select),
            settings.config.ignore if options.ignore is None else frozenset(options.ignore),
        )
        jobs.append(
            Job(
                found,
                config,
                unsafe_edits=options.output_format == "json",
                fix=frozenset(kinds),
                write=options.fix and not options.diff,
                verbose=options.verbose,
            )
        )
        if options.verbose and settings.path is not None:
            print(f"{found}: settings of {settings.path}", file=sys.stderr)
    return jobs, failures


def _processors() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _lost(job: Job) -> Report:
    return Report(
        str(job.path),
        failures=(f"{job.path}: checking it ended the process; its findings are missing",),
        checked=False,
    )


def _tell(report: Report, options: Namespace, paint: as_text.Paint) -> None:
    """Say what is known of a file as soon as it is known, where the format allows."""
    if options.verbose:
        print(f"{report.path}: {report.seconds * 1000:.0f} ms", file=sys.stderr)
        for limit in report.limits:
            print(f"{report.path}: {limit}; what comes after it may be missing", file=sys.stderr)
    if options.diff:
        sys.stdout.writelines(_difference(report))
    elif options.output_format != "json":
        short = options.output_format == "concise"
        for text in as_text.texts([report], paint, Path.cwd(), short=short):
            print(text)


def _difference(report: Report) -> Iterator[str]:
    """A unified diff that `patch` takes, whatever the line ends."""
    path = as_text.shown_path(report.path, Path.cwd())
    for (part, before), (_, after) in zip(report.before, report.after):
        name = f"{path}:{part}" if part else path
        for line in difflib.unified_diff(_lines(before), _lines(after), name, name):
            yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _lines(text: str) -> list[str]:
    parts = text.split("\n")
    return [f"{part}\n" for part in parts[:-1]] + parts[-1:] * bool(parts[-1])


def _conclude(reports: Sequence[Report], options: Namespace, paint: as_text.Paint) -> None:
    if options.diff:
        fixes = sum(report.fixes for report in reports)
        files = sum(report.before != report.after for report in reports)
        print(
            f"Would fix {fixes} finding{'s' * (fixes != 1)} in {files} file{'s' * (files != 1)}.",
            file=sys.stderr,
        )
    elif options.output_format == "json":
        from gradvet.cli.as_json import as_json

        print(as_json(reports))
    elif reports:
        print(as_text.summary(reports, paint, fixing=options.fix))


def _complain(failures: Sequence[str]) -> int:
    sys.stdout.flush()
    for failure in failures:
        print(f"gradvet: {failure}", file=sys.stderr)
    return FAILURE


def _status(reports: Sequence[Report], failures: Sequence[str], options: Namespace) -> int:
    if failures:
        return FAILURE
    if options.exit_zero:
        return CLEAN
    if options.diff:
        return FINDINGS if any(report.before != report.after for report in reports) else CLEAN
    serious = any(entry.severity != "info" for report in reports for entry in report.entries)
    return FINDINGS if serious else CLEAN


def _wants_colour() -> bool:
    """Colours go to people only, and not to those who said no (see no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
