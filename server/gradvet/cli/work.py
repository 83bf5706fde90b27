"""The work on one file: read, analyse, fix, report. Runs in any process, and never raises."""

import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from gradvet.analysis import Analysis, analyze
from gradvet.cli.report import Report, entries, parts
from gradvet.config import Config
from gradvet.finding import Applicability
from gradvet.project import ProjectError, read, reader
from gradvet.text import Source
from gradvet.views import fixed

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Job:
    """One file and what to do with it.

    `fix` names the kinds of fixes to apply, `write` puts their text in the file. Unsafe fixes are
    worked out only on demand: those that move statements cost more than the whole check.
    """

    path: Path
    config: Config
    unsafe_edits: bool = False
    fix: frozenset[Applicability] = frozenset()
    write: bool = False
    verbose: bool = False


def work(job: Job) -> Report:
    """Do a job. The report tells of every failure."""
    start = time.perf_counter()
    with _failures(verbose=job.verbose) as failures:
        try:
            report = _report(job)
        except ProjectError as error:
            report = Report(str(job.path), failures=(str(error),), checked=False)
        except Exception:
            log.exception("%s could not be checked", job.path)
            report = Report(str(job.path), checked=False)
    named = [line.replace(os.path.abspath(job.path), str(job.path)) for line in failures]
    return replace(report.failing(*named), seconds=time.perf_counter() - start)


def _report(job: Job) -> Report:
    file = read(job.path)
    before = file.source()
    analysis = first = _analysis(job, before)
    count = 0
    failures: tuple[str, ...] = ()
    # A text that does not parse is not rewritten: nobody could tell whether its fixed text does.
    if job.fix and not analysis.problems:
        result = fixed(analysis, lambda source: _analysis(job, source), job.fix)
        analysis, count = result.analysis, result.count
    if job.write and analysis.source.text != before.text:
        try:
            file.write(analysis.source)
        except ProjectError as error:
            analysis, count, failures = first, 0, (str(error),)
    found = entries(analysis, unsafe_edits=job.unsafe_edits)
    # The texts travel between processes, so only when they are needed.
    texts = (parts(before), parts(analysis.source)) if job.fix else ((), ())
    return Report(str(job.path), found, failures, count, *texts, limits=tuple(analysis.facts.limits))


def _analysis(job: Job, source: Source) -> Analysis:
    return analyze(source, job.config, reader(job.path))


@contextmanager
def _failures(*, verbose: bool) -> Iterator[list[str]]:
    """What Gradvet logs as errors meanwhile: failures of its own, which cost findings."""
    handler = _Collector(verbose=verbose)
    logger = logging.getLogger("gradvet")
    logger.addHandler(handler)
    try:
        yield handler.lines
    finally:
        logger.removeHandler(handler)


class _Collector(logging.Handler):
    def __init__(self, *, verbose: bool) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []
        self.verbose = verbose
        self.setFormatter(logging.Formatter("%(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        line = (
            self.format(record) if self.verbose else record.getMessage() + (f" ({error!r})" if error else "")
        )
        self.lines.append(line)
