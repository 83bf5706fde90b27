"""Names that share storage with a value: change one in place, and the others change too."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from gradvet.analysis import Analysis
from gradvet.autograd.facts import ExpressionState
from gradvet.text import Span

_NAMES = (ast.Name, ast.Attribute)


@dataclass(frozen=True, slots=True)
class Sharer:
    """A name that is given a value of the same storage, and the name's node where that happens."""

    name: str
    node: ast.expr
    state: ExpressionState


def sharers(analysis: Analysis, node: ast.expr, state: ExpressionState) -> list[Sharer]:
    """The names, other than the expression itself, that were given what shares storage with it."""
    own = ast.unparse(node)
    found: dict[str, Sharer] = {}
    for name, value in named_values(analysis):
        words = ast.unparse(name)
        if words == own or value is node or words in found:
            continue
        other = analysis.facts.states.get(value)
        if other is not None and other.storage & state.storage:
            found[words] = Sharer(words, name, other)
    return list(found.values())


def named_values(analysis: Analysis) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Each name with the expression that it is given, in the order of the text."""
    for node in analysis.nodes():
        match node:
            case ast.Assign(targets=[ast.Name() | ast.Attribute() as name], value=value):
                yield name, value
            case ast.AnnAssign(target=ast.Name() | ast.Attribute() as name, value=ast.expr() as value):
                yield name, value
            case ast.NamedExpr(target=name, value=value):
                yield name, value


def shared_places(analysis: Analysis, offset: int) -> list[tuple[Span, bool]]:
    """Where names stand that share storage with the name at an offset, and whether each is written there."""
    source = analysis.source
    states = analysis.facts.states
    here: list[ast.AST] = [
        node for node in states if isinstance(node, _NAMES) and offset in source.span(node)
    ]
    here += [
        value for name, value in named_values(analysis) if offset in source.span(name) and value in states
    ]
    if not here:
        return []
    storage = states[min(here, key=lambda node: source.span(node).end - source.span(node).start)].storage
    if not storage:
        return []
    found = {
        source.span(node): False
        for node in states
        if isinstance(node, _NAMES) and states[node].storage & storage
    }
    for name, value in named_values(analysis):
        if value in states and states[value].storage & storage:
            found[source.span(name)] = True
    return sorted(found.items())
