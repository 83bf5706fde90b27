"""What a person reads on a place: a diagnostic with its rule's page, an expression with its state."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from gradvet.analysis import Analysis, Diagnostic, RelatedPlace
from gradvet.autograd.events import Cut
from gradvet.autograd.facts import ExpressionState
from gradvet.rules import Rule, all_rules
from gradvet.syntax.suppress import Suppressions
from gradvet.text import Span
from gradvet.views.gradient_api import explained
from gradvet.views.links import Link, at_line, behind, no_links
from gradvet.views.page import rule_url, summary
from gradvet.views.sharing import sharers
from gradvet.views.value_at import value_at
from gradvet.views.words import code, state_words

_LINE = "\n\n---\n\n"
MOST_NAMES = 4
_MOST_PAGES = 3


@dataclass(frozen=True, slots=True)
class Hover:
    """A text in Markdown and the span that it speaks of."""

    span: Span
    markdown: str


def hover(analysis: Analysis, offset: int, link: Link = no_links) -> Hover | None:
    """The diagnostics on a character, what a call that controls gradients does, the state of the expression.

    Where there is nothing on the character, what ends before it is meant: the cursor may stand behind a word.
    """
    return _on(analysis, Span(offset, offset + 1), link) or _on(
        analysis, Span(max(offset - 1, 0), offset), link
    )


def _on(analysis: Analysis, character: Span, link: Link) -> Hover | None:
    found = sorted(
        (d for d in analysis.diagnostics if _holds(d.span, character)), key=lambda d: _size(d.span)
    )
    parts = [_diagnostic(analysis, diagnostic, link) for diagnostic in found]
    spans = [diagnostic.span for diagnostic in found]
    if (comment := _comment(analysis, character)) is not None:
        spans.append(comment[0])
        parts.append(comment[1])
    if (use := explained(analysis, character)) is not None:
        spans.append(use[0])
        parts.append(use[1])
    if (value := value_at(analysis, character)) is not None:
        parts.append(_expression(analysis, value.node, value.value, value.state, link))
        spans.append(analysis.source.span(value.node))
    return Hover(min(spans, key=_size), _LINE.join(parts)) if spans else None


def _holds(span: Span, character: Span) -> bool:
    return span.start <= character.start and character.end <= span.end


def _size(span: Span) -> int:
    return span.end - span.start


def _diagnostic(analysis: Analysis, diagnostic: Diagnostic, link: Link) -> str:
    """Message and reasons, then the start of the rule's page."""
    rule = diagnostic.rule
    head = f"**{diagnostic.severity.value}** [{rule.name}]({rule_url(rule)}): {diagnostic.message}"
    notes = [f"- {_note(analysis, note, link)}" for note in diagnostic.notes]
    return "\n\n".join(part for part in (head, "\n".join(notes), summary(rule.page).strip()) if part)


def _note(analysis: Analysis, note: RelatedPlace, link: Link) -> str:
    text = note.text
    if note.span is not None:
        row, _ = analysis.source.row_column(note.span.start)
        text = behind(text, linked(analysis, row, link))
    return f"*{note.label}* {text}" if note.label else f"← {text}"


def linked(analysis: Analysis, row: int, link: Link) -> str:
    """A row of the analysed source in words, with a link where there can be one."""
    words, address = analysis.source.row_words(row), link(analysis.source, row)
    return words if address is None else f"[{words}]({address})"


def _comment(analysis: Analysis, character: Span) -> tuple[Span, str] | None:
    """The rules that a comment hides, or what is said by a `# grad:` comment."""
    comments = Suppressions.of(analysis.module)
    for ignore in comments.ignores:
        if _holds(ignore.span, character):
            where = "in this file" if ignore.whole_file else "on this line"
            if ignore.names is None:
                return ignore.span, f"Hides every finding of Gradvet {where}."
            rules = _named(analysis, ignore.span, ignore.names, character)
            head = f"Hides findings of {', '.join(code(name) for name in sorted(ignore.names))} {where}."
            return ignore.span, _LINE.join((head, *(_page(rule) for rule in rules)))
    for intent in comments.intents:
        if _holds(intent.span, character):
            return intent.span, _INTENTS[intent.wish]
    return None


_INTENTS = {
    "stop": "**grad: stop** says that no gradient is meant to pass here. It answers the rules of the family `cut`; "
    "should a gradient flow through it all the same, that is a finding.",
    "keep": "**grad: keep** says that the gradient, or the graph, is wanted here. It answers the rules of the families "
    "`leak` and `flow`; should the gradient be cut all the same, that is a finding.",
}


def _named(analysis: Analysis, span: Span, names: frozenset[str], character: Span) -> list[Rule]:
    """The rules that a comment names: the one under the cursor, else the first few."""
    rules = all_rules()
    text = analysis.source[span]
    for name in names & rules.keys():
        at = text.find(name)
        if at >= 0 and _holds(Span(span.start + at, span.start + at + len(name)), character):
            return [rules[name]]
    return [rules[name] for name in sorted(names & rules.keys())][:_MOST_PAGES]


def _page(rule: Rule) -> str:
    return f"[{rule.name}]({rule_url(rule)})\n\n{summary(rule.page).strip()}"


def _expression(analysis: Analysis, node: ast.AST, value: ast.AST, state: ExpressionState, link: Link) -> str:
    """`h` requires grad · not a leaf · …, then the chain of reasons, then what depends on it."""
    head = f"{code(analysis.module.text(node))} {state_words(state.text)}"
    about = [f"- {line}" for line in _about(analysis, value, state, link)]
    return "\n".join((head, *_reasons(analysis, state, link), *(["", *about] if about else [])))


def _about(analysis: Analysis, node: ast.AST, state: ExpressionState, link: Link) -> Iterator[str]:
    """Who shares its storage, who saved it, where its gradient goes: a line each, where there is something to say."""
    if isinstance(node, ast.expr) and (others := sharers(analysis, node, state)):
        names = [
            f"{code(other.name)} ({at_line(analysis, other.node, link)})" for other in others[:MOST_NAMES]
        ]
        yield f"*shares storage with* {', '.join(names)}"
    savers = [s for s in state.saved_by if isinstance(s, ast.expr) and analysis.module.holds(s)]
    if savers:
        names = [
            f"{code(analysis.module.text(saver))} ({at_line(analysis, saver, link)})"
            for saver in savers[:MOST_NAMES]
        ]
        yield f"*saved for backward by* {', '.join(names)}: do not change it in place before the backward"
    if state.requires_grad != "no" and state.reaches:
        more = " and others" if len(state.reaches) > MOST_NAMES else ""
        yield f"*gradient reaches* {', '.join(code(name) for name in state.reaches[:MOST_NAMES])}{more}"
    if state.requires_grad == "no" and state.cuts:
        yield f"*gradient reaches nothing*: {_cut(analysis, _nearest(state), link)}"


def _nearest(state: ExpressionState) -> Cut:
    """Of the cuts on the way here, the one that the chain of reasons comes to first."""
    at = {cut.node: cut for cut in state.cuts}
    return next((at[node] for _, node in state.reasons if node in at), state.cuts[-1])


def _cut(analysis: Analysis, cut: Cut, link: Link) -> str:
    """What stopped a gradient, and where."""
    text = "grad mode is off" if cut.kind == "no_grad" else f"cut by {code(cut.name)}"
    return behind(text, at_line(analysis, cut.node, link))


def _reasons(analysis: Analysis, state: ExpressionState, link: Link) -> Iterator[str]:
    if state.reasons:
        yield ""
    for text, node in state.reasons:
        yield f"- {behind(text, at_line(analysis, node, link))}"
