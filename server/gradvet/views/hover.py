"""What a person reads on a place: a diagnostic with its rule's page, an expression with its state."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from gradvet.analysis import Analysis, Diagnostic, RelatedPlace
from gradvet.autograd.events import Cut
from gradvet.autograd.facts import ExpressionState
from gradvet.text import Source, Span
from gradvet.views.page import rule_url, summary
from gradvet.views.sharing import sharers
from gradvet.views.words import code, placed, row_words, state_words

_LINE = "\n\n---\n\n"
MOST_NAMES = 4


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
    text = placed(note.text, row_words(source, note.span))
    return f"*{note.label}* {text}" if note.label else f"← {text}"


def _expression(analysis: Analysis, node: ast.AST, state: ExpressionState) -> str:
    """`h` requires grad · not a leaf · …, then the chain of reasons, then what depends on it."""
    head = f"{code(analysis.module.text(node))} {state_words(state.text)}"
    about = [f"- {line}" for line in _about(analysis, node, state)]
    return "\n".join((head, *_reasons(analysis, state), *(["", *about] if about else [])))


def _about(analysis: Analysis, node: ast.AST, state: ExpressionState) -> Iterator[str]:
    """Who shares its storage, who saved it, where its gradient goes: a line each, where there is something to say."""
    if isinstance(node, ast.expr) and (others := sharers(analysis, node, state)):
        names = [
            f"{code(other.name)} ({analysis.source.row_words(other.node.lineno)})"
            for other in others[:MOST_NAMES]
        ]
        yield f"*shares storage with* {', '.join(names)}"
    savers = [s for s in state.saved_by if isinstance(s, ast.expr) and analysis.module.holds(s)]
    if savers:
        names = [
            f"{code(analysis.module.text(saver))} ({analysis.source.row_words(saver.lineno)})"
            for saver in savers[:MOST_NAMES]
        ]
        yield f"*saved for backward by* {', '.join(names)}: do not change it in place before the backward"
    if state.reaches and state.requires_grad == "yes" and state.is_leaf == "no":
        more = f" and {len(state.reaches) - MOST_NAMES} more" if len(state.reaches) > MOST_NAMES else ""
        yield f"*gradient reaches* {', '.join(code(name) for name in state.reaches[:MOST_NAMES])}{more}"
    if state.requires_grad == "no" and state.cuts:
        yield f"*gradient reaches nothing*: {_cut(analysis, state.cuts[-1])}"


def _cut(analysis: Analysis, cut: Cut) -> str:
    """What stopped a gradient, and where."""
    text = "grad mode is off" if cut.kind == "no_grad" else f"cut by {code(cut.name)}"
    row = getattr(cut.node, "lineno", None) if analysis.module.holds(cut.node) else None
    return placed(text, None if row is None else analysis.source.row_words(row))


def _reasons(analysis: Analysis, state: ExpressionState) -> Iterator[str]:
    if state.reasons:
        yield ""
    for text, node in state.reasons:
        where = analysis.elsewhere(node)
        if where is None and node is not None and hasattr(node, "lineno"):
            where = analysis.source.row_words(node.lineno)
        yield f"- {placed(text, where)}"
