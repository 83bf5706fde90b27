"""What is wrong with a page: in its form, in what the analyzer says of it, in what torch does with it."""

import ast
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from gradvet.text import Source, Span, apply
from pages import Case, Expected, Page, Repair, Reveal, probe
from torch_side import Job, Outcome, Seen

if TYPE_CHECKING:
    from gradvet.analysis import Analysis, Diagnostic

ENOUGH_SILENT_CASES = 3


Analyze = Callable[[Source], "Analysis"]


def form_complaints(page: Page) -> Iterator[str]:
    """A rule's page is named for its rule, proves what it says, and tells where the rule stays silent."""
    if page.title != page.name:
        yield f"the title is `{page.title}`, the rule is `{page.name}`"
    silent = [case for case in page.cases if case.silent]
    if len(silent) < ENOUGH_SILENT_CASES:
        yield f"{len(silent)} cases are silent on purpose, {ENOUGH_SILENT_CASES} are the least"
    for case in silent:
        if case.findings:
            yield f"{case.id}: is to be silent and expects findings"
    faults = [case for case in page.cases if any(found.name == page.name for found in case.findings)]
    if not faults:
        yield "no case shows the fault"
    for case in faults:
        grave = any(found.kind != "info" for found in case.findings if found.name == page.name)
        if grave and not (case.proof or case.raises):
            yield f"{case.id}: nothing proves the fault: no `# raises:` and no proof before a diff"


def analyzer_complaints(case: Case, analyze: Analyze) -> Iterator[str]:
    """Findings, notes, states and fixes that are not as the page says."""
    analysis = analyze(Source(f"{case.id}.py", case.program))
    yield from (f"does not parse: {problem.message}" for problem in analysis.problems)
    rows = [_row(analysis, diagnostic.span) for diagnostic in analysis.diagnostics]
    missing = list(case.findings)
    for row, found in zip(rows, analysis.diagnostics, strict=True):
        match = next((expected for expected in missing if _fits(expected, row, found)), None)
        if match:
            missing.remove(match)
        else:
            yield f"line {row}: not expected: {found.severity.value}: [{found.rule.name}] {found.message}"
    yield from (f"line {e.row}: nothing like {e.kind}: [{e.name}] {e.text or ''}" for e in missing)
    yield from _note_complaints(case, analysis)
    yield from _state_complaints(case, analysis)
    for repair in case.repairs:
        yield from _repair_complaints(case, repair, analysis, analyze)


def undocumented_fixes(page: Page, analyze: Analyze) -> Iterator[str]:
    """Fixes that the page's own rule offers on it and that no diff of the page shows."""
    shown = [repair.title for case in page.cases for repair in case.repairs]
    offered = {
        fix.title
        for case in page.cases
        for found in analyze(Source(f"{case.id}.py", case.program)).diagnostics
        if found.rule.name == page.name
        for fix in found.fixes
    }
    hidden = sorted(title for title in offered if not title.startswith(tuple(shown)))
    yield from (f"no diff shows the fix `{title}`" for title in hidden)


def _row(analysis: "Analysis", span: Span) -> int:
    return analysis.source.row_column(span.start)[0]


def _fits(expected: Expected, row: int, found: "Diagnostic") -> bool:
    asked = (expected.row, expected.kind, expected.name)
    return asked == (row, found.severity.value, found.rule.name) and (expected.text or "") in found.message


def _note_complaints(case: Case, analysis: "Analysis") -> Iterator[str]:
    notes = [
        (_row(analysis, note.span) if note.span else None, note.label, note.text)
        for found in analysis.diagnostics
        for note in found.notes
    ]
    for expected in case.notes:
        near = [text for row, label, text in notes if (row, label) == (expected.row, expected.name)]
        if not any((expected.text or "") in text for text in near):
            yield f"line {expected.row}: no note [{expected.name}] {expected.text or ''}; there are {notes}"


def _state_complaints(case: Case, analysis: "Analysis") -> Iterator[str]:
    arguments = {
        node.lineno: argument
        for node in ast.walk(analysis.module.tree)
        if isinstance(node, ast.stmt) and (argument := probe(node))
    }
    for reveal in case.reveals:
        state = analysis.facts.states.get(arguments[reveal.row])
        said = state.text if state else "nothing"
        if said != reveal.text:
            yield f"line {reveal.row}: the analyzer holds {said}, the page says {reveal.text}"


def _repair_complaints(case: Case, repair: Repair, analysis: "Analysis", analyze: Analyze) -> Iterator[str]:
    """The diff is the work of an offered fix, and after it the finding is gone and none has come."""
    offers = [
        (found, fix)
        for found in analysis.diagnostics
        for fix in found.fixes
        if fix.title.startswith(repair.title) and fix.applicability.value == repair.applicability
    ]
    if not offers:
        fixes = [fix for found in analysis.diagnostics for fix in found.fixes]
        kinds = sorted({f"{fix.title} ({fix.applicability.value})" for fix in fixes})
        yield f"no fix `{repair.title}` ({repair.applicability}) is offered; there are {kinds}"
        return
    texts = [apply(case.program, analysis.edits(fix)) for _, fix in offers]
    if repair.text not in texts:
        yield f"the fix `{repair.title}` makes another text than the diff:\n{texts[0]}"
        return
    mended = offers[texts.index(repair.text)][0].rule.name
    before = Counter(found.rule.name for found in analysis.diagnostics)
    after = Counter(found.rule.name for found in analyze(Source(f"{case.id}.py", repair.text)).diagnostics)
    if after[mended] >= before[mended]:
        yield f"after the fix `{repair.title}` [{mended}] is still there"
    for name in sorted(after):
        if after[name] > before[name]:
            yield f"the fix `{repair.title}` brings a new [{name}]"


def torch_jobs(case: Case) -> Iterator[Job]:
    """The runs that show whether the page tells the truth about torch."""
    yield Job(case.id, case.program, case.proof)
    for number, repair in enumerate(case.repairs):
        keeps_values = repair.applicability == "safe" and not case.raises
        yield Job(f"{case.id}#{number}", repair.text, repair.proof, case.program if keeps_values else "")
        if case.proof:
            yield Job(f"{case.id}#{number} fault", repair.text, case.proof)


def torch_complaints(case: Case, outcomes: Mapping[str, Outcome]) -> Iterator[str]:
    """Exceptions, states and proofs that are not as the page says."""
    outcome = outcomes[case.id]
    yield from _raise_complaints(case, outcome)
    if outcome.proof:
        yield f"the proof of the fault fails: {outcome.proof}"
    for reveal in case.reveals:
        yield from _seen_complaints(reveal, [seen for seen in outcome.seen if seen.row == reveal.row])
    for number, repair in enumerate(case.repairs):
        fixed = outcomes[f"{case.id}#{number}"]
        if fixed.error:
            yield f"after `{repair.title}` torch raises {fixed.error}"
        if fixed.proof:
            yield f"the proof of `{repair.title}` fails: {fixed.proof}"
        if fixed.differences:
            yield f"`{repair.title}` is not safe: {'; '.join(fixed.differences)}"
        if case.proof and not outcomes[f"{case.id}#{number} fault"].proof:
            yield f"the proof of the fault passes after `{repair.title}` too: one of them is useless"


def _raise_complaints(case: Case, outcome: Outcome) -> Iterator[str]:
    error = outcome.error
    if error and not any(
        expected.row == error.row and error.type in expected.types and (expected.text or "") in error.message
        for expected in case.raises
    ):
        yield f"torch raises {error}"
    if case.raises and not error:
        yield f"torch raises nothing; the page says {case.raises[0].types} on line {case.raises[0].row}"
    if len(case.raises) > 1:
        yield "two lines are said to raise, but the first ends the program"


def _seen_complaints(reveal: Reveal, seen: Sequence[Seen]) -> Iterator[str]:
    if not seen:
        yield f"line {reveal.row}: torch never comes to this reveal_grad"
    for state in seen:
        holds = (
            _allows(reveal.requires_grad, fact=state.requires_grad)
            and _allows(reveal.is_leaf, fact=state.is_leaf)
            and not reveal.grad_fn.isdisjoint({"*", str(state.grad_fn)})
        )
        if not holds:
            yield f"line {reveal.row}: torch holds {state}, the page says {reveal.text}"


def _allows(word: str, *, fact: bool) -> bool:
    return word == "MAYBE" or (word == "YES") is fact
