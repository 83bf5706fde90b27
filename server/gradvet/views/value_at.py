"""Which value a place in the text speaks of."""

import ast
from dataclasses import dataclass

from gradvet.analysis import Analysis
from gradvet.autograd.facts import ExpressionState
from gradvet.text import Span
from gradvet.views.sharing import named_values


@dataclass(frozen=True, slots=True)
class ValueAt:
    """A node that is pointed at, and the expression that gave it its value: itself, or what a name is given."""

    node: ast.AST
    value: ast.AST
    state: ExpressionState


def value_at(analysis: Analysis, character: Span) -> ValueAt | None:
    """The smallest expression with a state around a character, or the name that is given such a value."""
    source, states = analysis.source, analysis.facts.states
    row, _ = source.row_column(character.start)
    around: list[tuple[int, ast.AST, ast.AST]] = []
    for node in states:
        if getattr(node, "lineno", row + 1) <= row <= (getattr(node, "end_lineno", None) or 0):
            span = source.span(node)
            if span.start <= character.start and character.end <= span.end:
                around.append((span.end - span.start, node, node))
    for name, given in named_values(analysis):
        if name.lineno <= row <= (name.end_lineno or 0) and given in states:
            span = source.span(name)
            if span.start <= character.start and character.end <= span.end:
                around.append((span.end - span.start, name, given))
    if not around:
        return None
    _, node, value = min(around, key=lambda found: found[0])
    return ValueAt(node, value, states[value])


def value_near(analysis: Analysis, offset: int) -> ValueAt | None:
    """The value at an offset, or what ends there: the cursor may stand behind a word."""
    return value_at(analysis, Span(offset, offset + 1)) or value_at(
        analysis, Span(max(offset - 1, 0), offset)
    )
