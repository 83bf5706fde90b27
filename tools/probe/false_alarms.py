"""Findings that say torch raises, on lines that ran and did not raise: false by construction."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from gradvet.analysis import Analysis, Diagnostic, analyze
from gradvet.finding import Severity
from gradvet.syntax.parse import Module
from gradvet.text import Source, Span
from tools.probe.instrument import place
from tools.probe.judgement import modules_around
from tools.probe.observed import Observation, Program

SILENT_FAULTS = frozenset({
    "clip-misplaced", "clone-keeps-graph", "data-attribute", "detached-alias-edited", "fake-not-detached",
    "grad-mode-escape", "gradient-cut", "graph-retained",
    "leaf-rebound", "numpy-alias-edited", "optimizer-misses-parameters", "parameter-unregistered", "requires-grad-forced",
    "running-average-with-graph", "step-before-backward", "zero-grad-misplaced", "zero-grad-missing",
})  # fmt: skip
"""Rules whose errors are faults that torch keeps silent about, so that a clean run disproves nothing."""

_AT_TIMES_SILENT = frozenset({"nondifferentiable-in-loss"})
"""Rules of which only those errors can be disproved that say that torch raises; others tell of gradients that are zero."""

_AGAIN = frozenset({"backward-twice"})
"""Rules that may speak of the second round of any loop; each may of one that is left in its midst."""

_LOADER = "DataLoader"
"""What gives batches, of which a dry run takes there to be several."""

_OFTENER = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)

_SWALLOWING = ("suppress", "raises")


@dataclass(frozen=True, slots=True)
class FalseAlarm:
    """An error that a clean run disproves."""

    path: str
    row: int
    rule: str
    message: str

    def __str__(self) -> str:
        """One line that an editor can follow."""
        return f"{self.path}:{self.row}: false alarm [{self.rule}] {self.message}"


def false_alarms(program: Program, observation: Observation) -> list[FalseAlarm]:
    """The errors in a program that ran to its end, at expressions that were run."""
    if observation.failure is not None:
        return []
    analysis = analyze(Source(program.path, program.text), read=modules_around(program))
    return [
        FalseAlarm(
            program.path, analysis.source.row_column(found.span.start)[0], found.rule.name, found.message
        )
        for found in analysis.diagnostics
        if found.severity is Severity.ERROR
        and found.rule.name not in SILENT_FAULTS
        and (found.rule.name not in _AT_TIMES_SILENT or "raises" in found.message)
        and _ran(analysis, found, observation)
        and all(_came_by(analysis.module, note.span, observation) for note in found.notes)
    ]


def _came_by(module: Module, span: Span | None, observation: Observation) -> bool:
    """Whether the run came by a place that a finding rests on: not so if it is an expression on a branch not taken."""
    whole = [
        node
        for node in ast.walk(module.tree)
        if isinstance(node, ast.expr) and module.source.span(node) == span
    ]
    return not whole or any(place(node) in observation.seen for node in whole)


def _ran(analysis: Analysis, found: Diagnostic, observation: Observation) -> bool:
    """Whether a place was run where nothing could have swallowed what it raised.

    What may be told of the second round of a loop needs to have been run twice.
    """
    loops = [node for node in _around(analysis, found) if isinstance(node, (ast.For, ast.While))]
    again = loops if found.rule.name in _AGAIN else [loop for loop in loops if _may_end_early(loop)]
    times = 2 if again else 1
    return any(
        (seen := observation.seen.get(place(node))) is not None
        and seen.visits >= times
        and not _swallowed(analysis.module, node)
        for node in _expressions(analysis.module, found)
    )


def _may_end_early(loop: ast.For | ast.While) -> bool:
    """Whether what comes in the second round of a loop may never come: something leaves it, or there is one batch."""
    if isinstance(loop, ast.For) and _LOADER in ast.unparse(loop.iter):
        return True
    return any(isinstance(node, (ast.Break, ast.Return)) for child in loop.body for node in ast.walk(child))


def _around(analysis: Analysis, found: Diagnostic) -> Iterator[ast.AST]:
    """What stands around a finding, from the inside out."""
    node = analysis.module.parents.get(next(_expressions(analysis.module, found), None))
    while node is not None:
        yield node
        node = analysis.module.parents.get(node)


def _expressions(module: Module, found: Diagnostic) -> Iterator[ast.expr]:
    """The expressions in a place, but those that run more often than it does: in a lambda, in a comprehension."""
    oftener: set[ast.AST] = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.expr) and node not in oftener:
            span = module.source.span(node)
            if found.span.start <= span.start and span.end <= found.span.end:
                yield node
                if isinstance(node, _OFTENER):
                    oftener.update(ast.walk(node))


def _swallowed(module: Module, node: ast.AST) -> bool:
    """Whether an exception here may be caught: by a `try`, or by `suppress` and its kin."""
    while node in module.parents:
        parent = module.parents[node]
        if isinstance(parent, ast.Try) and parent.handlers and node in parent.body:
            return True
        if isinstance(parent, ast.With):
            managers = [ast.unparse(item.context_expr) for item in parent.items]
            if any(word in manager for manager in managers for word in _SWALLOWING):
                return True
        node = parent
    return False
