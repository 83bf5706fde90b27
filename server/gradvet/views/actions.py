"""What can be done about a diagnostic: its fixes, best first, and ignoring it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gradvet.analysis import Analysis, Diagnostic
from gradvet.finding import Applicability, Fix
from gradvet.text import Edit, Span
from gradvet.views.fixall import fix_edits
from gradvet.views.ignore import ignore_edit


@dataclass(frozen=True, slots=True)
class Action:
    """Something to do about one diagnostic. `fix` is None for "ignore here".

    `key` names the action within its analysis, so that its edits can be asked for later.
    """

    key: str
    title: str
    diagnostic: Diagnostic
    fix: Fix | None
    preferred: bool

    def edits(self, analysis: Analysis) -> Sequence[Edit]:
        """The edits, made only now; none when the action cannot be done here."""
        if self.fix is not None:
            return fix_edits(analysis, self.fix)
        edit = ignore_edit(analysis.module, self.diagnostic)
        return () if edit is None else (edit,)


def actions(analysis: Analysis, span: Span) -> list[Action]:
    """The actions for the diagnostics that the span touches: preferred, safe, unsafe, then ignoring."""
    found = [
        action
        for diagnostic in analysis.diagnostics
        if diagnostic.span.start <= span.end and span.start <= diagnostic.span.end
        for action in _of(analysis, diagnostic)
    ]
    return sorted(found, key=_rank)


def _of(analysis: Analysis, diagnostic: Diagnostic) -> Iterator[Action]:
    place = f"{diagnostic.rule.name}@{diagnostic.span.start}-{diagnostic.span.end}"
    preferred = next((fix for fix in diagnostic.fixes if fix.applicability is Applicability.SAFE), None)
    for number, fix in enumerate(diagnostic.fixes):
        yield Action(f"{place}#{number}", _title(fix), diagnostic, fix, preferred=fix is preferred)
    if ignore_edit(analysis.module, diagnostic) is not None:
        title = f"Ignore here: # gradvet: ignore[{diagnostic.rule.name}]"
        yield Action(f"{place}#ignore", title, diagnostic, None, preferred=False)


def _title(fix: Fix) -> str:
    """What the fix does and what that changes, in one line."""
    effect = fix.effect.strip().rstrip(".")
    return f"{fix.title} ({effect})" if effect else fix.title


def _rank(action: Action) -> int:
    if action.fix is None:
        return 3
    return 0 if action.preferred else 1 + (action.fix.applicability is Applicability.UNSAFE)
