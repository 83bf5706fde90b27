"""Names of tensors that carry a graph, are leaves, or were cut: for editors that colour words by meaning."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from gradvet.analysis import Analysis
from gradvet.autograd.facts import ExpressionState
from gradvet.text import Span

VARIABLE, PROPERTY = KINDS_OF_NAMES = ("variable", "property")
GRAPH, LEAF, DETACHED = MARKS = ("graph", "gradLeaf", "detached")


@dataclass(frozen=True, slots=True)
class Mark:
    """A name, what kind of name it is, and what autograd holds for it."""

    span: Span
    kind: str
    mark: str


def marks(analysis: Analysis) -> list[Mark]:
    """The names with something to say, in the order of the text."""
    return sorted(_marks(analysis), key=lambda mark: mark.span)


def _marks(analysis: Analysis) -> Iterator[Mark]:
    source = analysis.source
    states = analysis.facts.states
    for node in states:
        if isinstance(node, ast.Name | ast.Attribute) and (mark := _mark(states[node])) is not None:
            span = source.span(node)
            if isinstance(node, ast.Attribute):
                end = len(source[span].rstrip())
                span = Span(span.start + end - len(node.attr), span.start + end)
                if source[span] != node.attr:
                    continue
            yield Mark(span, PROPERTY if isinstance(node, ast.Attribute) else VARIABLE, mark)


def _mark(state: ExpressionState) -> str | None:
    if state.requires_grad == "yes":
        return GRAPH if state.is_leaf == "no" else LEAF if state.is_leaf == "yes" else None
    if state.requires_grad == "no" and any(cut.kind in ("detach", "data", "no_grad") for cut in state.cuts):
        return DETACHED
    return None
