"""Source to tree. Never raises: what will not parse is a problem in the answer."""

import ast
import bisect
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from gradvet.syntax.cells import CellSource
from gradvet.syntax.heal import Broken, Unreadable, heal, read
from gradvet.syntax.lexical import skeleton
from gradvet.syntax.parents import Parents
from gradvet.text import Source, Span

_PYTHON = f"Python {sys.version_info.major}.{sys.version_info.minor}"


@dataclass(frozen=True, slots=True)
class Problem:
    """A place that Python itself cannot read."""

    span: Span
    message: str


class Module:
    """A parsed source: its tree, and what was left out of it because it does not parse."""

    def __init__(
        self,
        source: Source,
        tree: ast.Module,
        problems: tuple[Problem, ...] = (),
        healed: str | None = None,
        former: Sequence[ast.stmt] = (),
        gone: Iterable[ast.AST] = (),
    ) -> None:
        """Hold them; nothing is computed yet. `healed` is the text that the tree was read from.

        `former` are statements in the tree which are of an earlier text, and stand for what does not parse now;
        of those of their nodes that are `gone` the text says nothing any more.
        """
        self.source = source
        self.tree = tree
        self.problems = problems
        self.healed = source.readable if healed is None else healed
        self.former = former
        self.gone = frozenset(gone)
        self.share = 1.0
        """How much of its source it is, by lines."""

    def part(self, statements: Sequence[ast.stmt]) -> "Module":
        """Some of its statements, as a module by itself."""
        one = Module(
            self.source, ast.Module([*statements], []), self.problems, self.healed, self.former, self.gone
        )
        one.share = self.share * sum(map(lines, statements)) / max(self.lines, 1)
        return one

    @property
    def lines(self) -> int:
        """How many lines its statements take."""
        return sum(map(lines, self.tree.body))

    @cached_property
    def words(self) -> str:
        """All that its statements say: the text that they were read from, and what is not in there any more."""
        return "\n".join((self.healed, *map(ast.unparse, self.former)))

    @cached_property
    def parents(self) -> Parents:
        """The node that each node stands in."""
        return Parents(self.tree)

    @cached_property
    def bare(self) -> str:
        """The text with its comments and strings masked, offset for offset; blank where it was left out."""
        return skeleton(self.healed)

    @cached_property
    def displayed(self) -> frozenset[ast.expr]:
        """What stands alone at the end of a notebook's cell: what it gives is shown."""
        last: dict[int, ast.stmt] = {}
        if isinstance(self.source, CellSource):
            starts = [first for first, _ in self.source.parts]
            for statement in self.tree.body:
                last[bisect.bisect_right(starts, statement.lineno)] = statement
        return frozenset(statement.value for statement in last.values() if isinstance(statement, ast.Expr))

    def holds(self, node: ast.AST) -> bool:
        """Whether a node is one of this tree."""
        return node in self.parents or node is self.tree

    def rows(self, pattern: re.Pattern[str]) -> frozenset[int]:
        """The rows on which what a pattern finds in the text begins or ends."""
        found = [match.span() for match in pattern.finditer(self.healed)]
        former = [statement.lineno for statement in self.former if pattern.search(ast.unparse(statement))]
        return frozenset((*former, *(self.source.row_column(offset)[0] for span in found for offset in span)))

    def text(self, node: ast.AST) -> str:
        """The source text of a node."""
        return self.source[self.source.span(node)]

    def is_former(self, node: ast.AST) -> bool:
        """Whether a node is part of what stands for something that does not parse."""
        while self.former and node in self.parents and node not in self.former:
            node = self.parents[node]
        return node in self.former

    def statement(self, node: ast.AST) -> ast.stmt:
        """The innermost statement that holds the node, or the node itself."""
        while not isinstance(node, ast.stmt):
            node = self.parents[node]
        return node


def lines(statement: ast.stmt) -> int:
    """How many lines a statement takes."""
    return (statement.end_lineno or statement.lineno) - statement.lineno + 1


def parse(source: Source) -> Module:
    """The tree of a source; syntax errors become problems."""
    problems = _nulls(source)
    try:
        return Module(source, read(source.readable), problems)
    except Unreadable:
        healed = heal(source)
    problems += tuple(problem(source, broken) for broken in healed.broken)
    return Module(source, healed.tree, problems, healed.text)


def _nulls(source: Source) -> tuple[Problem, ...]:
    at = source.text.find("\0")
    if at < 0:
        return ()
    return (
        Problem(Span(at, at + 1), "a null byte: Python reads no file that holds one. Is this text at all?"),
    )


def problem(source: Source, broken: Broken) -> Problem:
    """What Python says of a block, at the place it names or, failing that, at the block's first line."""
    error = broken.error
    whole = Span(source.line_starts[broken.first - 1], _end(source, broken.end - 1))
    span = _named(source, error) if isinstance(error, SyntaxError) else None
    if span is None or not (whole.start <= span.start < span.end <= whole.end):
        line = source.line(broken.first)
        indent = len(line) - len(line.lstrip())
        span = Span(whole.start + indent, max(_end(source, broken.first), whole.start + indent + 1))
    return Problem(
        span, f"{_PYTHON} cannot read this: {_said(error)}. The rest of the file is checked without it"
    )


def _end(source: Source, row: int) -> int:
    """The end of a row, without its line end and the space before that."""
    return source.line_starts[row - 1] + len(source.line(row).rstrip())


def _named(source: Source, error: SyntaxError) -> Span | None:
    """The span that a syntax error names; to the end of the line where it names but a place."""
    if error.lineno is None or not error.offset or not 0 < error.lineno <= len(source.line_starts):
        return None
    start = source.line_starts[error.lineno - 1] + error.offset - 1
    end = start
    if error.end_lineno and error.end_offset and error.end_lineno <= len(source.line_starts):
        end = source.line_starts[error.end_lineno - 1] + error.end_offset - 1
    return Span(start, end if end > start else _end(source, error.lineno))


def _said(error: Exception) -> str:
    match error:
        case SyntaxError(msg=str(message)):
            return message
        case RecursionError() | MemoryError():
            return "it is nested too deeply"
        case _:
            return str(error)
