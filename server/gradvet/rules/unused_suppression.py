"""A comment that hides findings hides none."""

import difflib
import re
from collections.abc import Iterator, Sequence

from gradvet.finding import Applicability, Finding, Fix, Note, Severity, Tag
from gradvet.rules import all_rules, rule
from gradvet.syntax.parse import Module
from gradvet.syntax.suppress import UnusedIgnore
from gradvet.text import Edit, Span

_NAMES = re.compile(r"\[(?P<names>[^\[\]]*)\]")


@rule(UnusedIgnore, family="suppression", severity=Severity.INFO, tag=Tag.UNNECESSARY)
def check(event: UnusedIgnore) -> Iterator[Finding]:
    """Report an `ignore` without effect: the fault is gone, or its name is written wrong."""
    where = "in this file" if event.ignore.whole_file else "on this line"
    if event.unknown:
        name = event.unknown[0]
        families = {found.family for found in all_rules().values()}
        near = difflib.get_close_matches(name, [*all_rules(), *sorted(families)], 1)
        hint = (Note("hint", f"did you mean `{near[0]}`?"),) if near else ()
        message = f"`{name}` is neither a rule nor a family, so this comment hides nothing of it"
        yield Finding(event.node, message, hint, (_drop(event),), Severity.WARNING)
        return
    names = " and ".join(f"`{name}`" for name in event.names or ())
    message = (
        f"there is no finding of {names} {where} to hide" if names else f"there is no finding {where} to hide"
    )
    yield Finding(event.node, message, (), (_drop(event),))


def _drop(event: UnusedIgnore) -> Fix:
    def change(module: Module) -> Sequence[Edit]:
        left = sorted((event.ignore.names or frozenset()) - set(event.names or ()))
        span, text = event.ignore.span, module.source.text
        if left:
            match = _NAMES.search(text, span.start, span.end)
            return [Edit(Span(match.start("names"), match.end("names")), ", ".join(left))] if match else []
        return [_without(module, span)]

    title = (
        "Remove the name"
        if event.ignore.names and set(event.names or ()) < event.ignore.names
        else "Remove the comment"
    )
    return Fix(title, "nothing was hidden by it", Applicability.SAFE, change)


def _without(module: Module, span: Span) -> Edit:
    """Take a comment out, with the space before it; with its line, when nothing else stands there."""
    source = module.source
    row, column = source.row_column(span.start)
    line, start = source.line(row), source.line_starts[row - 1]
    before, behind = line[: column - 1], line[span.end - start :]
    if behind.strip():
        return Edit(Span(span.start, span.end + len(behind) - len(behind.lstrip())), "")
    if before.strip():
        return Edit(Span(start + len(before.rstrip()), span.end), "")
    end = source.line_starts[row] if row < len(source.line_starts) else len(source.text)
    return Edit(Span(start, end), "")
