"""The way of a gradient, from the parameters to a value, with everything that cuts it."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gradvet.analysis import Analysis
from gradvet.autograd.events import Cut
from gradvet.autograd.facts import ExpressionState
from gradvet.text import Source
from gradvet.views.links import Link, at_line, no_links
from gradvet.views.value_at import value_near
from gradvet.views.words import code, state_words

MOST_LEAVES = 12
MOST_OPS = 40


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a way, and where it stands: a source and the node's row in it, if it stands anywhere."""

    text: str
    node: ast.AST | None
    source: Source | None
    row: int


@dataclass(frozen=True, slots=True)
class GradientPath:
    """The way of a gradient to a value."""

    title: str
    steps: Sequence[Step]
    markdown: str


def gradient_path(analysis: Analysis, offset: int, link: Link = no_links) -> GradientPath | None:
    """The way from the parameters to the value at an offset; None where there is no value that is known."""
    found = value_near(analysis, offset)
    if found is None:
        return None
    words = code(analysis.module.text(found.node))
    told = [
        *_told(analysis, found.value, found.state),
        (f"{words}: {state_words(found.state.text)}", found.node),
    ]
    steps = []
    lines = [f"# The gradient path of {words}", ""]
    for number, (text, node) in enumerate(told, 1):
        line = None if node is None else analysis.line(node)
        source, row = (line[0], line[1]) if line is not None else (None, 0)
        steps.append(Step(text, node, source, row))
        where = at_line(analysis, node, link)
        lines.append(f"{number}. {text}{'' if where is None else f', {where}'}")
    lines += ["", *_conclusion(analysis, found.state)]
    return GradientPath(f"The gradient path of {words}", steps, "\n".join(lines) + "\n")


def _told(analysis: Analysis, value: ast.AST, state: ExpressionState) -> Iterator[tuple[str, ast.AST | None]]:
    """The leaves, the ops and the cuts, from the farthest to the nearest."""
    way = analysis.facts.way(value)
    cuts = [cut for cut in state.cuts if _matters(cut)]
    if way is not None and not way.ops and not way.leaves:
        for cut in cuts:  # before the cut, the graph is that of what was cut
            receiver = _cut_off(cut)
            before = None if receiver is None else analysis.facts.way(receiver)
            if before is not None and (before.ops or before.leaves):
                way = before
                break
    if way is not None:
        for name, node in way.leaves[:MOST_LEAVES]:
            yield f"{code(name)}, a leaf that asks for a gradient", node
        if len(way.leaves) > MOST_LEAVES:
            yield f"and {len(way.leaves) - MOST_LEAVES} more leaves", None
    told: list[tuple[str, ast.AST | None]] = []
    if way is not None:
        told += [
            (f"{code(_source_text(analysis, node) or name)} records `{name}`", node) for name, node in way.ops
        ]
    told += [(_said(analysis, cut), cut.node) for cut in cuts]
    if len(told) > MOST_OPS + 1:
        half = MOST_OPS // 2
        told[half:-half] = [(f"… {len(told) - 2 * half} more ops …", None)]
    yield from told


def _cut_off(cut: Cut) -> ast.AST | None:
    """What was cut: of `x.detach()` and `x.data`, `x`."""
    match cut.node:
        case ast.Call(func=ast.Attribute(value=receiver)) | ast.Attribute(value=receiver):
            return receiver
    return None


def _matters(cut: Cut) -> bool:
    return hasattr(cut.node, "lineno")


_CUT = {
    "detach": "is cut: {} gives the value without its graph",
    "data": "is cut in silence: {} gives the storage without its graph",
    "no_grad": "is not recorded: grad mode is off at {}",
    "nondiff": "ends: {} has no gradient",
    "item": "ends: {} is a Python number",
    "rewrap": "is cut: {} makes a new tensor of the value",
    "numpy": "ends: {} leaves torch",
    "sample": "ends: {} draws without a gradient",
}


def _said(analysis: Analysis, cut: Cut) -> str:
    words = code(_source_text(analysis, cut.node) or cut.name)
    return f"**the gradient {_CUT.get(cut.kind, 'is cut at {}').format(words)}**"


def _source_text(analysis: Analysis, node: ast.AST) -> str:
    """The text of a node, also of one in an imported module."""
    return analysis.module.text(node) if analysis.module.holds(node) else ast.unparse(node)


def _conclusion(analysis: Analysis, state: ExpressionState) -> Iterator[str]:
    """What it comes to."""
    if state.requires_grad == "no":
        if state.cuts:
            yield "A backward from a result of this reaches nothing behind the cuts."
        else:
            yield "Nothing on the way here asks for a gradient, so there is no path."
    elif state.reaches:
        names = ", ".join(code(name) for name in state.reaches[:MOST_LEAVES])
        more = len(state.reaches) - MOST_LEAVES
        yield f"A backward from here reaches {names}{f' and {more} more' if more > 0 else ''}."
    elif state.requires_grad == "maybe":
        yield "Whether there is a graph depends on what is not in this file, or on the path that the program takes."
    if state.requires_grad != "no" and state.cuts:
        yield "\nThrough the cuts that are named no gradient passes; it flows by the other ways."
