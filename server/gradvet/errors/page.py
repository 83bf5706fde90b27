"""An explanation of an error as a page in Markdown."""

from collections.abc import Iterator

from gradvet.errors.explanation import Explanation, Suspect
from gradvet.text import Source
from gradvet.views.links import Link, no_links
from gradvet.views.page import rule_url
from gradvet.views.words import code


def page(told: Explanation, link: Link = no_links) -> str:
    """What the message means, where its cause may be, the right fix, and what is no fix."""
    return "\n".join(_lines(told, link)) + "\n"


def _lines(told: Explanation, link: Link) -> Iterator[str]:
    known, source = told.known, told.module.source
    yield f"**{known.meaning}**"
    for row in dict.fromkeys(told.noticed):
        yield ""
        yield f"torch noticed it on {_row(source, row, link)}: {code(source.line(row).strip(), 90)}"
    yield ""
    if not told.suspects:
        yield "Nothing in this file stands out as the cause. It may lie in another file of the traceback."
    elif not any(suspect.diagnostic for suspect in told.suspects):
        yield "No rule is sure. The likeliest lines, from the text and the dry run:"
    else:
        yield "The likeliest causes:"
    for suspect in told.suspects:
        yield ""
        yield from _suspect(source, suspect, link)
    yield ""
    yield f"- **right fix:** {known.right}"
    for wrong in known.wrong:
        yield f"- **not a fix:** {code(wrong.change, 90)}: {wrong.why}"


def _suspect(source: Source, suspect: Suspect, link: Link) -> Iterator[str]:
    row, _ = source.row_column(suspect.span.start)
    rule = suspect.diagnostic.rule if suspect.diagnostic is not None else None
    name = f" ([{rule.name}]({rule_url(rule)}))" if rule is not None else ""
    yield f"1. {_row(source, row, link)}: {suspect.reason}{name}"
    yield ""
    yield f"   {code(source.line(row).strip(), 90)}"
    for fix in suspect.diagnostic.fixes if suspect.diagnostic is not None else ():
        yield ""
        yield f"   *fix* {fix.title} ({fix.applicability.value}{f': {fix.effect}' if fix.effect else ''})"


def _row(source: Source, row: int, link: Link) -> str:
    words, address = source.row_words(row), link(source, row)
    return words if address is None else f"[{words}]({address})"
