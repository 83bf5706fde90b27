"""Hints at the end of a line where what autograd holds changes; nothing where it stays as it was."""

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from gradvet.analysis import Analysis
from gradvet.autograd.facts import ExpressionState
from gradvet.text import Span
from gradvet.views.sharing import named_values
from gradvet.views.words import code, state_words

GRAD, DETACHED, LEAF, ALIAS, NO_GRAD, INFERENCE = "grad", "detached", "leaf", "alias", "noGrad", "inference"
KINDS = {
    GRAD: "a value that begins to carry a graph",
    DETACHED: "a value whose gradient is cut here",
    LEAF: "a new leaf that requires grad",
    ALIAS: "a name for storage that another name has",
    NO_GRAD: "a value that has no graph since grad mode is off",
    INFERENCE: "a tensor of inference mode",
}
QUIET = frozenset(KINDS) - {GRAD}
"""The kinds that are shown unless the user says otherwise: graphs begin at every call of a model."""


@dataclass(frozen=True, slots=True)
class Inlay:
    """A hint of a kind behind `offset`, and what to say when it is pointed at."""

    offset: int
    kind: str
    label: str
    tooltip: str


def inlays(analysis: Analysis, span: Span, kinds: Collection[str] = QUIET) -> list[Inlay]:
    """The hints of some kinds for the names that are given a value within a span."""
    found = []
    for name, value in named_values(analysis):
        here = analysis.source.span(name)
        state = analysis.facts.states.get(value)
        if state is None or not span.overlaps(here):
            continue
        change = _change(analysis, name, value, state)
        if change is not None and change[0] in kinds:
            kind, label = change
            tooltip = f"{code(ast.unparse(name))} {state_words(state.text)}"
            found.append(Inlay(here.end, kind, label, tooltip))
    return sorted(found, key=lambda inlay: inlay.offset)


def _change(
    analysis: Analysis, name: ast.expr, value: ast.expr, state: ExpressionState
) -> tuple[str, str] | None:
    """What is new about a value against what it was made of."""
    operands = list(_operands(analysis, value))
    asked = any(operand.requires_grad == "yes" for _, operand in operands)
    if state.is_inference == "yes" and not any(operand.is_inference == "yes" for _, operand in operands):
        return INFERENCE, "inference"
    if state.requires_grad == "no":
        before = {cut for _, operand in operands for cut in operand.cuts}
        kinds = {cut.kind for cut in state.cuts if cut not in before}
        if "no_grad" in kinds:
            return NO_GRAD, "no grad"
        if kinds & {"detach", "data"}:
            return DETACHED, "detached"
    elif state.requires_grad == "yes" and state.is_leaf == "yes" and not asked:
        return LEAF, "leaf"
    if (other := _aliased(name, value, state, operands)) is not None:
        return ALIAS, f"alias of {code(other)}"
    if state.requires_grad == "yes" and state.is_leaf == "no" and not asked:
        return GRAD, "grad"
    return None


def _operands(analysis: Analysis, value: ast.expr) -> Iterator[tuple[ast.expr, ExpressionState]]:
    """The names of tensors that an expression is made of, itself left out."""
    for node in ast.walk(value):
        if (
            isinstance(node, (ast.Name, ast.Attribute))
            and (state := analysis.facts.states.get(node)) is not None
        ):
            yield node, state


def _aliased(
    name: ast.expr, value: ast.expr, state: ExpressionState, operands: list[tuple[ast.expr, ExpressionState]]
) -> str | None:
    """The name whose storage the new name has; plain `b = a` says so itself."""
    if isinstance(value, (ast.Name, ast.Attribute)) and not _is_data(value):
        return None
    for node, operand in operands:
        words = ast.unparse(node)
        if operand.storage & state.storage and node is not value and words != ast.unparse(name):
            return words
    return None


def _is_data(value: ast.expr) -> bool:
    return isinstance(value, ast.Attribute) and value.attr == "data"
