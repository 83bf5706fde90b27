"""An explanation of a pasted error for one source: the rule, the likeliest lines, what is no fix."""

import ast
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gradvet.analysis import Diagnostic, States, analyze, states
from gradvet.errors import places
from gradvet.errors.known import Known
from gradvet.errors.pasted import Pasted
from gradvet.syntax.packages import Read
from gradvet.syntax.parse import Module
from gradvet.syntax.place import place
from gradvet.text import Source, Span

MOST_GUESSES = 5


@dataclass(frozen=True, slots=True)
class Suspect:
    """A place that may be the cause. `diagnostic` is what a rule says there; without one it is a guess."""

    span: Span
    reason: str
    diagnostic: Diagnostic | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a message means for a source: rows where torch noticed, and suspects, the likeliest first."""

    known: Known
    module: Module
    noticed: Sequence[int]
    suspects: Sequence[Suspect]


def explain(pasted: Pasted, source: Source, read: Read | None = None) -> Explanation:
    """Look through a source for what a known message may come of. Raises ValueError for an unknown one."""
    if pasted.known is None:
        raise ValueError("the message is not known")
    known = pasted.known
    analysis = analyze(source, read=read)
    module = analysis.module
    noticed = [
        row
        for frame in pasted.frames
        if _is_same_file(frame.path, source.path) and 1 <= (row := frame.row) <= len(source.line_starts)
    ]
    found = [finding for finding in analysis.diagnostics if finding.rule.name in known.rules]
    found.sort(key=lambda finding: _rank(finding, known, source, noticed))
    suspects = [Suspect(finding.span, finding.message, finding) for finding in found]
    if not suspects:
        suspects = list(_guesses(pasted, known, states(source, read), noticed))
    return Explanation(known, module, noticed, suspects)


def _is_same_file(named: str, path: str) -> bool:
    """Whether a traceback's path may mean this file: it may have been run elsewhere, so its name decides."""
    return os.path.basename(named.replace("\\", "/")) == os.path.basename(path)


def _rank(finding: Diagnostic, known: Known, source: Source, noticed: Sequence[int]) -> tuple[bool, int, int]:
    """What torch's own lines lead to comes first, then the order of the rules, then that of the text."""
    rows = {source.row_column(finding.span.start)[0]}
    rows |= {source.row_column(note.span.start)[0] for note in finding.notes if note.span is not None}
    named = bool(rows & set(noticed))
    return not named, known.rules.index(finding.rule.name), finding.span.start


def _guesses(pasted: Pasted, known: Known, held: States, noticed: Sequence[int]) -> Iterator[Suspect]:
    module = held.module
    told: set[Span] = set()
    if known.raised_there and noticed:
        statement = _statement_at(module, noticed[-1])
        if statement is not None:
            span = place(module, statement)
            told.add(span)
            yield Suspect(span, "torch raised it on this line, which is where the fault is")
    seen = places.Seen(module, {one.node: one for one in held.expressions or ()}, pasted.details)
    for guess in places.places(known.look_for, seen):
        span = place(module, guess.node)
        if any(span.overlaps(other) for other in told):
            continue
        told.add(span)
        yield Suspect(span, guess.reason)
        if len(told) >= MOST_GUESSES:
            return


def _statement_at(module: Module, row: int) -> ast.stmt | None:
    """The innermost statement that stands on a row."""
    around = [
        node
        for node in ast.walk(module.tree)
        if isinstance(node, ast.stmt) and node.lineno <= row <= (node.end_lineno or node.lineno)
    ]
    return min(around, key=lambda node: (node.end_lineno or node.lineno) - node.lineno, default=None)
