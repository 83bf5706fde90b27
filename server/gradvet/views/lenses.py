"""A line above each function that tensors go through: what a gradient reaches, what cuts it, who holds on to it."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from gradvet.analysis import Analysis
from gradvet.autograd.facts import ExpressionState
from gradvet.syntax.place import place
from gradvet.text import Span
from gradvet.views.sharing import named_values
from gradvet.views.words import code

_MOST = 4
_Function = ast.FunctionDef | ast.AsyncFunctionDef
Named = list[tuple[ast.expr, ast.expr]]


@dataclass(frozen=True, slots=True)
class Lens:
    """What to say above a function, at its head; `value` is the expression whose way can be shown."""

    span: Span
    title: str
    value: Span | None


def lenses(analysis: Analysis) -> list[Lens]:
    """One for each function with something to say."""
    inside = _by_function(analysis)
    named = [pair for pair in named_values(analysis) if isinstance(pair[0], ast.Attribute)]
    found = [
        lens
        for node in analysis.nodes()
        if isinstance(node, _Function)
        and (lens := _lens(analysis, node, inside.get(node, []), named)) is not None
    ]
    return sorted(found, key=lambda lens: lens.span)


def _by_function(analysis: Analysis) -> dict[_Function, list[ast.AST]]:
    """The expressions with a state in each function, nested functions left out."""
    parents = analysis.module.parents
    found: dict[_Function, list[ast.AST]] = {}
    owners: dict[ast.AST, _Function | None] = {}
    for node in analysis.facts.states:
        trail = []
        above: ast.AST | None = node
        while above is not None and above not in owners and not isinstance(above, _Function):
            trail.append(above)
            above = parents.get(above)
        owner = above if isinstance(above, _Function) else owners.get(above) if above is not None else None
        owners.update(dict.fromkeys(trail, owner))
        if owner is not None:
            found.setdefault(owner, []).append(node)
    return found


def _lens(analysis: Analysis, function: _Function, nodes: list[ast.AST], named: Named) -> Lens | None:
    states = {node: analysis.facts.states[node] for node in nodes}
    out = _result(function, states)
    parts = [
        *_reached(analysis, function, out),
        *_cuts(analysis, states),
        *_holders(analysis, function, named),
    ]
    if not parts:
        return None
    value = None if out is None else analysis.source.span(out)
    return Lens(place(analysis.module, function), " · ".join(parts), value)


def _result(function: _Function, states: dict[ast.AST, ExpressionState]) -> ast.AST | None:
    """What the function gives, if it carries a graph; else the value from which its backward starts."""
    for node in _own(function):
        match node:
            case ast.Return(value=ast.expr() as value):
                parts = value.elts if isinstance(value, ast.Tuple) else [value]
                for part in parts:
                    if part in states and states[part].requires_grad != "no":
                        return part
            case ast.Call(func=ast.Attribute(value=receiver, attr="backward")) if receiver in states:
                return receiver
    return None


def _own(function: _Function) -> Iterator[ast.AST]:
    """The nodes of a function, without those of functions in it."""
    stack: list[ast.AST] = list(reversed(function.body))
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, _Function | ast.ClassDef | ast.Lambda):
            stack += reversed(list(ast.iter_child_nodes(node)))


def _reached(analysis: Analysis, function: _Function, out: ast.AST | None) -> Iterator[str]:
    """The arguments and parameters that a gradient from its result comes to."""
    if out is None:
        return
    state = analysis.facts.states[out]
    way = analysis.facts.way(out)
    sites = [node for _, node in way.ops] if way is not None else []
    arguments = [
        arg.arg
        for arg in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
        if arg.arg not in ("self", "cls")
    ]
    met = [
        name
        for name in arguments
        if any(_asks(analysis, name, site) for site in sites if analysis.module.holds(site))
    ]
    names = [*met, *(name for name in state.reaches if name not in met)]
    if names:
        more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
        yield f"gradient reaches {', '.join(map(code, names[:_MOST]))}{more}"


def _asks(analysis: Analysis, name: str, site: ast.AST) -> bool:
    """Whether an op takes the argument of this name, which may ask for a gradient."""
    states = analysis.facts.states
    return any(
        isinstance(node, ast.Name)
        and node.id == name
        and node in states
        and states[node].requires_grad != "no"
        for node in ast.walk(site)
    )


def _cuts(analysis: Analysis, states: dict[ast.AST, ExpressionState]) -> Iterator[str]:
    """The places in the function where a gradient stops."""
    found = {
        cut.node: cut
        for state in states.values()
        for cut in state.cuts
        if cut.node in states
        and cut.kind in ("detach", "data", "nondiff", "item", "rewrap", "numpy", "sample")
    }
    if found:
        told = sorted(found.values(), key=lambda cut: analysis.source.span(cut.node))
        words = [
            f"{code(cut.name)} ({analysis.source.row_words(getattr(cut.node, 'lineno', 1))})" for cut in told
        ]
        more = f" and {len(words) - _MOST} more" if len(words) > _MOST else ""
        yield f"cut by {', '.join(words[:_MOST])}{more}"


def _holders(analysis: Analysis, function: _Function, named: Named) -> Iterator[str]:
    """The attributes in which a graph lives on after the call."""
    states = analysis.facts.states
    own = set(_own(function))
    held = [
        ast.unparse(name)
        for name, value in named
        if name in own
        and value in states
        and states[value].requires_grad == "yes"
        and states[value].is_leaf == "no"
    ]
    if held:
        yield f"graph held by {', '.join(code(name) for name in dict.fromkeys(held))}"
