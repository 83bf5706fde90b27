"""What can be done about a diagnostic: its fixes, best first, and ignoring it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from gradvet.analysis import Analysis, Diagnostic
from gradvet.finding import Applicability, Fix
from gradvet.text import Edit, Source, Span
from gradvet.views.fixall import SAFE_ONLY, asked_edits, fix_all_edits
from gradvet.views.ignore import ignore_edit, ignore_file_edit

_EVERY = frozenset(Applicability)
FIX, FIX_RULE, IGNORE, IGNORE_FILE, PAGE = "fix", "fix-rule", "ignore", "ignore-file", "page"


@dataclass(frozen=True, slots=True)
class Action:
    """Something to do about one diagnostic: apply a `fix`, or what its `kind` says.

    `key` names the action within its analysis, so that its edits can be asked for later. `kind` is one of
    FIX, FIX_RULE (all findings of the rule), IGNORE, IGNORE_FILE and PAGE, which edits nothing.
    """

    key: str
    title: str
    diagnostic: Diagnostic
    fix: Fix | None
    preferred: bool
    kind: str = FIX

    def edits(
        self, analysis: Analysis, analyze: Callable[[Source], Analysis] | None = None
    ) -> Sequence[Edit]:
        """The edits, made only now; none when the action cannot be done here.

        Fixing all of a rule takes several rounds, for which `analyze` is needed. `CannotRewriteError` when it
        takes something that is not installed.
        """
        rule = self.diagnostic.rule
        match self.kind:
            case "fix" if self.fix is not None:
                return asked_edits(analysis, self.fix)
            case "fix-rule" if analyze is not None:
                allowed = SAFE_ONLY if self.key.endswith("-safe") else _EVERY
                return fix_all_edits(analysis, analyze, allowed, rule.name)
            case "ignore":
                edit = ignore_edit(analysis.module, self.diagnostic)
                return () if edit is None else (edit,)
            case "ignore-file":
                return (ignore_file_edit(analysis.module, rule.name),)
        return ()


def actions(analysis: Analysis, span: Span) -> list[Action]:
    """The actions for the diagnostics that the span touches: preferred, safe, unsafe, then ignoring."""
    found = [action for diagnostic in _near(analysis, span) for action in _of(analysis, diagnostic)]
    return sorted(found, key=_rank)


def rule_actions(analysis: Analysis, span: Span) -> list[Action]:
    """The actions for all that the rules which speak of a span have found: fixing, ignoring, reading."""
    near = {diagnostic.rule.name: diagnostic for diagnostic in reversed(_near(analysis, span))}
    found = [action for diagnostic in near.values() for action in _of_rule(analysis, diagnostic)]
    return sorted(found, key=_rank)


def _near(analysis: Analysis, span: Span) -> list[Diagnostic]:
    """The diagnostics that a span touches."""
    return [
        diagnostic
        for diagnostic in analysis.diagnostics
        if diagnostic.span.start <= span.end and span.start <= diagnostic.span.end
    ]


def _of(analysis: Analysis, diagnostic: Diagnostic) -> Iterator[Action]:
    """The actions for one diagnostic alone."""
    place = diagnostic.key
    preferred = next((fix for fix in diagnostic.fixes if fix.applicability is Applicability.SAFE), None)
    for number, fix in enumerate(diagnostic.fixes):
        yield Action(f"{place}#{number}", _title(fix), diagnostic, fix, preferred=fix is preferred)
    if ignore_edit(analysis.module, diagnostic) is not None:
        title = f"Ignore here: # gradvet: ignore[{diagnostic.rule.name}]"
        yield Action(f"{place}#ignore", title, diagnostic, None, preferred=False, kind=IGNORE)


def _of_rule(analysis: Analysis, diagnostic: Diagnostic) -> Iterator[Action]:
    """The actions for all that a diagnostic's rule has found."""
    name = diagnostic.rule.name
    same = [other for other in analysis.diagnostics if other.rule.name == name]
    for allowed, safety, more in ((SAFE_ONLY, "safe", ""), (_EVERY, "unsafe", ": read what they did")):
        fixable = sum(any(fix.applicability in allowed for fix in other.fixes) for other in same)
        if fixable > 1:
            title = f"Fix all {fixable} findings of `{name}` in this file ({safety}{more})"
            yield Action(f"{name}#all-{safety}", title, diagnostic, None, preferred=False, kind=FIX_RULE)
            break
    title = f"Ignore in this file: # gradvet: ignore-file[{name}]"
    yield Action(f"{name}#ignore-file", title, diagnostic, None, preferred=False, kind=IGNORE_FILE)
    yield Action(f"{name}#page", f"Read about `{name}`", diagnostic, None, preferred=False, kind=PAGE)


def _title(fix: Fix) -> str:
    """What the fix does and what that changes, in one line."""
    effect = fix.effect.strip().rstrip(".")
    return f"{fix.title} ({effect})" if effect else fix.title


_ORDER = (FIX_RULE, IGNORE, IGNORE_FILE, PAGE)


def _rank(action: Action) -> int:
    if action.kind != FIX or action.fix is None:
        return 3 + _ORDER.index(action.kind)
    return 0 if action.preferred else 1 + (action.fix.applicability is Applicability.UNSAFE)
