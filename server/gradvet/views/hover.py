"""What a person reads on a place: a diagnostic with its rule's page, an expression with its state."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from gradvet.analysis import Analysis, Diagnostic, RelatedPlace
from gradvet.autograd.facts import ExpressionState
from gradvet.text import Source, Span
from gradvet.views.page import rule_url, summary
from gradvet.views.words import code, placed, state_words

_LINE = "\n\n---\n\n"


@dataclass(frozen=True, slots=True)
class Hover:
    """A text in Markdown and the span that it speaks of."""

    span: Span
    markdown: str


def hover(analysis: Analysis, offset: int) -> Hover | None:
    """The diagnostics on a character, then the state of the smallest expression there; None without either.

    Where there is nothing on the character, what ends before it is meant: the cursor may stand behind a word.
    """
    return _on(analysis, Span(offset, offset + 1)) or _on(analysis, Span(max(offset - 1, 0), offset))


def _on(analysis: Analysis, character: Span) -> Hover | None:
    source = analysis.source
    found = sorted(
        (d for d in analysis.diagnostics if _holds(d.span, character)), key=lambda d: _size(d.span)
    )
    parts = [_diagnostic(source, diagnostic) for diagnostic in found]
    spans = [diagnostic.span for diagnostic in found]
    if (expression := _smallest(analysis, character)) is not None:
        node, state = expression
        parts.append(_expression(analysis, node, state))
        spans.append(source.span(node))
    return Hover(min(spans, key=_size), _LINE.join(parts)) if spans else None


def _holds(span: Span, character: Span) -> bool:
    return span.start <= character.start and character.end <= span.end


def _size(span: Span) -> int:
    return span.end - span.start


def _smallest(analysis: Analysis, character: Span) -> tuple[ast.AST, ExpressionState] | None:
    """The smallest expression with a state around the character."""
    source = analysis.source
    row, _ = source.row_column(character.start)
    around = [
        (_size(span), node)
        for node in analysis.facts.states
        if getattr(node, "lineno", row + 1) <= row <= (getattr(node, "end_lineno", None) or 0)
        and _holds(span := source.span(node), character)
    ]
    if not around:
        return None
    _, node = min(around, key=lambda found: found[0])
    return node, analysis.facts.states[node]


def _diagnostic(source: Source, diagnostic: Diagnostic) -> str:
    """Message and reasons, then the start of the rule's page."""
    rule = diagnostic.rule
    head = f"**{diagnostic.severity.value}** [{rule.name}]({rule_url(rule)}): {diagnostic.message}"
    notes = [f"- {_note(source, note)}" for note in diagnostic.notes]
    return "\n\n".join(part for part in (head, "\n".join(notes), summary(rule.page).strip()) if part)


def _note(source: Source, note: RelatedPlace) -> str:
    text = placed(note.text, source.row_column(note.span.start)[0] if note.span else None)
    return f"*{note.label}* {text}" if note.label else f"← {text}"


def _expression(analysis: Analysis, node: ast.AST, state: ExpressionState) -> str:
    """`h` requires grad · not a leaf · …, then the chain of reasons."""
    head = f"{code(analysis.module.text(node))} {state_words(state.text)}"
    return "\n".join((head, *_reasons(analysis, state)))


def _reasons(analysis: Analysis, state: ExpressionState) -> Iterator[str]:
    if state.reasons:
        yield ""
    for text, node in state.reasons:
        where = analysis.elsewhere(node)
        yield f"- {placed(text, getattr(node, 'lineno', None)) if where is None else f'{text} ({where})'}"
