"""Parts of a program that run in another grad mode: `with torch.no_grad():` and functions decorated so."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from gradvet.analysis import Analysis
from gradvet.syntax.qualified import imported_names, qualified
from gradvet.text import Span

MODES = {
    "torch.no_grad": "no_grad",
    "torch.autograd.no_grad": "no_grad",
    "torch.autograd.grad_mode.no_grad": "no_grad",
    "torch.inference_mode": "inference_mode",
    "torch.autograd.inference_mode": "inference_mode",
    "torch.autograd.grad_mode.inference_mode": "inference_mode",
    "torch.enable_grad": "enable_grad",
    "torch.autograd.enable_grad": "enable_grad",
    "torch.autograd.grad_mode.enable_grad": "enable_grad",
    "torch.set_grad_enabled": "set_grad_enabled",
    "torch.autograd.set_grad_enabled": "set_grad_enabled",
    "torch.autograd.grad_mode.set_grad_enabled": "set_grad_enabled",
}


@dataclass(frozen=True, slots=True)
class Region:
    """Statements in a grad mode of their own. `head` is the expression that says so, `owner` what it stands on."""

    mode: str
    head: ast.expr
    owner: ast.stmt
    span: Span


def regions(analysis: Analysis) -> Iterator[Region]:
    """The regions of a module, in the order of the text."""
    names = imported_names(analysis.module.tree)
    for node in analysis.nodes():
        match node:
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                heads = [item.context_expr for item in items]
            case (
                ast.FunctionDef(decorator_list=heads, body=body)
                | ast.AsyncFunctionDef(decorator_list=heads, body=body)
            ):
                pass
            case _:
                continue
        source = analysis.source
        span = Span(source.span(body[0]).start, source.span(body[-1]).end)
        for head in heads:
            called = head.func if isinstance(head, ast.Call) else head
            mode = MODES.get(qualified(called, names))
            if mode is not None:
                yield Region(mode, head, node, span)


def region_at(analysis: Analysis, offset: int) -> Region | None:
    """The region whose head is at an offset."""
    return next((region for region in regions(analysis) if offset in analysis.source.span(region.head)), None)


def without_graph(analysis: Analysis, region: Region) -> list[tuple[ast.AST, str]]:
    """The ops of a region whose results would have a graph but for its mode, each with its text."""
    source, states = analysis.source, analysis.facts.states
    found: list[tuple[ast.AST, str]] = []
    for node in states:
        if not isinstance(node, ast.Call | ast.BinOp | ast.UnaryOp | ast.Subscript):
            continue
        span = source.span(node)
        if region.span.start <= span.start and span.end <= region.span.end:
            state = states[node]
            if any(cut.kind == "no_grad" and cut.node is region.head for cut in state.cuts):
                found.append((node, analysis.module.text(node)))
    return sorted(found, key=lambda pair: source.span(pair[0]))


def highlighted(analysis: Analysis, offset: int) -> list[tuple[Span, bool]]:
    """What to highlight for the head of a region: itself, and the ops that record nothing because of it."""
    region = region_at(analysis, offset)
    if region is None:
        return []
    source = analysis.source
    lost = [source.span(node) for node, _ in without_graph(analysis, region)]
    outermost = [
        span
        for span in lost
        if not any(other != span and other.start <= span.start and span.end <= other.end for other in lost)
    ]
    return [(source.span(region.head), True), *((span, False) for span in outermost)]
