"""All fixes of a text at once: disjoint ones together, the rest in further rounds."""

import difflib
import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import accumulate

from gradvet.analysis import Analysis
from gradvet.finding import Applicability, Fix
from gradvet.syntax.parse import Module, parse
from gradvet.syntax.rewrite import CannotRewriteError
from gradvet.text import Edit, Source, Span, apply

log = logging.getLogger(__name__)

# Each round needs an analysis; fixes that still make work for each other after ten would never end.
ROUNDS = 10


SAFE_ONLY = frozenset({Applicability.SAFE})


@dataclass(frozen=True, slots=True)
class Fixed:
    """What became of a text: its last analysis, and how many fixes led there."""

    analysis: Analysis
    count: int


def fix_all(analysis: Analysis, analyze: Callable[[Source], Analysis]) -> str:
    """The text after every safe fix."""
    return fixed(analysis, analyze).analysis.source.text


def fix_all_edits(
    analysis: Analysis,
    analyze: Callable[[Source], Analysis],
    allowed: Collection[Applicability] = SAFE_ONLY,
    rule: str | None = None,
) -> list[Edit]:
    """The edits of every safe fix together, or of the allowed ones of one rule; each within one text."""
    before, after = analysis.source, fixed(analysis, analyze, allowed, rule).analysis.source
    return [
        Edit(Span(old.start + edit.span.start, old.start + edit.span.end), edit.text)
        for old, new in zip(before.texts, after.texts)
        for edit in changes(before[old], after[new])
    ]


def fixed(
    analysis: Analysis,
    analyze: Callable[[Source], Analysis],
    allowed: Collection[Applicability] = SAFE_ONLY,
    rule: str | None = None,
) -> Fixed:
    """Apply the best allowed fix of every diagnostic, or of those of a rule. What breaks the syntax is left out."""
    count = 0
    for _ in range(ROUNDS):
        source = analysis.source
        fixes = _disjoint(analysis, allowed, rule)
        after = _after(source, fixes)
        if len(after.problems) > len(analysis.problems):
            log.error("fixes broke the syntax of %s; they are left out", source.path)
            fixes = _harmless(analysis, fixes)
            after = _after(source, fixes)
        if after.source.text == source.text:
            break
        count += len(fixes)
        analysis = analyze(after.source)
    return Fixed(analysis, count)


def fix_edits(analysis: Analysis, fix: Fix) -> Sequence[Edit]:
    """The edits of a fix; none when it fails, as one bad fix must not take its neighbours along."""
    try:
        return asked_edits(analysis, fix)
    except CannotRewriteError as error:
        log.warning("%s (%s)", error, fix.title)
        return ()


def asked_edits(analysis: Analysis, fix: Fix) -> Sequence[Edit]:
    """The same for a fix that somebody asked for: `CannotRewriteError` tells them why it cannot be had."""
    try:
        edits = analysis.edits(fix)
        apply(analysis.source.text, edits)  # raises where edits meet
    except CannotRewriteError:
        raise
    except Exception:
        log.exception("the fix %r failed on %s", fix.title, analysis.source.path)
        return ()
    return edits


def changes(before: str, after: str) -> list[Edit]:
    """The smallest runs of whole lines that turn one text into the other, as disjoint edits."""
    if before == after:
        return []
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    starts = list(accumulate(map(len, old), initial=0))
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    return [
        Edit(Span(starts[a], starts[b]), "".join(new[c:d]))
        for tag, a, b, c, d in matcher.get_opcodes()
        if tag != "equal"
    ]


def _after(source: Source, fixes: Sequence[Sequence[Edit]]) -> Module:
    edits = [edit for edits in fixes for edit in edits]
    return parse(source.edited(edits))


def _harmless(analysis: Analysis, fixes: Sequence[Sequence[Edit]]) -> list[Sequence[Edit]]:
    """Those of the fixes that keep the text readable, also together."""
    kept: list[Sequence[Edit]] = []
    for edits in fixes:
        if len(_after(analysis.source, [*kept, edits]).problems) <= len(analysis.problems):
            kept.append(edits)
    return kept


def _disjoint(
    analysis: Analysis, allowed: Collection[Applicability], rule: str | None
) -> list[Sequence[Edit]]:
    """The edits of each diagnostic's best allowed fix, as far as they do not meet those taken before."""
    fixes: list[Sequence[Edit]] = []
    taken: list[Edit] = []
    for diagnostic in analysis.diagnostics:
        if rule not in (None, diagnostic.rule.name):
            continue
        fix = min((fix for fix in diagnostic.fixes if fix.applicability in allowed), key=_rank, default=None)
        # the same edit twice is one edit: two fixes may both need one import
        edits = [] if fix is None else [edit for edit in fix_edits(analysis, fix) if edit not in taken]
        if edits and not any(edit.span.overlaps(other.span) for edit in edits for other in taken):
            taken += edits
            fixes.append(edits)
    return fixes


def _rank(fix: Fix) -> int:
    return 0 if fix.applicability is Applicability.SAFE else 1
