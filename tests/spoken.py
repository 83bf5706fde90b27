"""What the server says to people about a program: every text of every view, as the client would be sent it."""

import ast
import os
import re
from collections.abc import Iterator

from gradvet.analysis import Analysis, analyze, states
from gradvet.errors.places import FINDERS, Seen
from gradvet.text import Source, Span
from gradvet.views import KINDS, GradientPath, actions, gradient_path, hover, inlays, lenses, rule_actions
from gradvet.words.skeleton import skeleton

_COMMENT = re.compile(r"# (?:gradvet: |grad: )")


def spoken(program: str, told: set[tuple[object, ...]]) -> tuple[list[str], list[str]]:
    """The texts of one line, and those in Markdown, that a program's views are made of.

    `told` are the kinds of expressions that were hovered over before, in other programs.
    """
    analysis = analyze(Source(os.path.abspath("program.py"), program))
    lines, pages = [*_findings(analysis), *_actions(analysis), *_hints(analysis)], [*_hovers(analysis, told)]
    for path in _paths(analysis):
        lines += [path.title, *(step.text for step in path.steps)]
        pages.append(path.markdown)
    return [*lines, *_guesses(analysis)], pages


def _findings(analysis: Analysis) -> Iterator[str]:
    for diagnostic in analysis.diagnostics:
        yield diagnostic.message
        for note in diagnostic.notes:
            yield note.label
            yield note.text


def _actions(analysis: Analysis) -> Iterator[str]:
    whole = Span(0, len(analysis.source.text))
    yield from (action.title for action in (*actions(analysis, whole), *rule_actions(analysis, whole)))
    for diagnostic in analysis.diagnostics:
        for fix in diagnostic.fixes:
            yield fix.title
            yield fix.effect


def _hints(analysis: Analysis) -> Iterator[str]:
    for inlay in inlays(analysis, Span(0, len(analysis.source.text)), KINDS):
        yield inlay.label
        yield inlay.tooltip
    yield from (lens.title for lens in lenses(analysis))


def _hovers(analysis: Analysis, told: set[tuple[object, ...]]) -> Iterator[str]:
    """The hovers on diagnostics, comments, and one expression of each kind, as a hover takes its time."""
    source = analysis.source
    offsets = [diagnostic.span.start for diagnostic in analysis.diagnostics]
    offsets += [match.start() for match in _COMMENT.finditer(source.text)]
    for node in ast.walk(analysis.module.tree):
        if isinstance(node, ast.keyword | ast.expr) and (kind := _kind(analysis, node)) not in told:
            told.add(kind)
            span = source.span(node)
            offsets.append(max(span.end - 1, span.start) if isinstance(node, ast.Attribute) else span.start)
    for offset in offsets:
        if (found := hover(analysis, offset)) is not None:
            yield found.markdown


def _kind(analysis: Analysis, node: ast.expr | ast.keyword) -> tuple[object, ...]:
    """What a hover on an expression depends on, but for names."""
    states = analysis.facts.states
    above = analysis.module.parents.get(node)
    told: list[object] = [getattr(node, "attr", getattr(node, "id", getattr(node, "arg", type(node))))]
    if isinstance(node, ast.keyword) or (isinstance(node, ast.Attribute) and isinstance(above, ast.Call)):
        told.append(ast.unparse(above).rpartition("(")[2] if above is not None else "")
    for part in (node, getattr(node, "value", None)):
        if isinstance(part, ast.AST) and part in states:
            state = states[part]
            told += (state.text, bool(state.saved_by), bool(state.reaches), *(cut.kind for cut in state.cuts))
            told += (skeleton(text).key for text, _ in state.reasons)
    return tuple(told)


def _paths(analysis: Analysis) -> Iterator[GradientPath]:
    seen = set()
    for node in analysis.facts.states:
        if isinstance(node, ast.Name) and node.id not in seen:
            seen.add(node.id)
            found = gradient_path(analysis, analysis.source.span(node).start)
            if found is not None:
                yield found


def _guesses(analysis: Analysis) -> Iterator[str]:
    held = states(analysis.source)
    seen = Seen(analysis.module, {one.node: one for one in held.expressions or ()}, ())
    for find in FINDERS.values():
        yield from (place.reason for place in find(seen))
