"""Comments that speak to Gradvet: `# gradvet: ignore[rule-name] reason`, `ignore-file`, `# grad: stop`, `# grad: keep`."""

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gradvet.syntax.lexical import lexemes
from gradvet.syntax.parse import Module
from gradvet.text import Span

_MARK = "gradvet"
_IGNORE = re.compile(r"#\s*gradvet\s*:\s*ignore(?P<file>-file)?(?:\s*\[(?P<names>[^\[\]]*)\])?(?![\w\[-])")
_INTENT = re.compile(r"#\s*grad\s*:\s*(?P<wish>stop|keep)(?![\w-])")

JUSTIFIED = {"stop": frozenset({"cut"}), "keep": frozenset({"leak", "flow"})}
"""The families of rules that a stated intent answers: a cut that is meant, a graph that is wanted."""


class Comment(ast.AST):
    """A comment as a node, so that a finding can stand on it. `span` is its place in the source."""

    lineno: int
    col_offset: int
    end_lineno: int
    end_col_offset: int
    span: Span
    _attributes = ("lineno", "col_offset", "end_lineno", "end_col_offset")

    @classmethod
    def at(cls, module: Module, span: Span) -> "Comment":
        """The comment at a span of one line."""
        source = module.source
        row, _ = source.row_column(span.start)
        before = source.readable[source.line_starts[row - 1] : span.start].encode()
        inside = source.readable[span.start : span.end].encode()
        node = cls()
        node.lineno = node.end_lineno = row
        node.col_offset = len(before)
        node.end_col_offset = len(before) + len(inside)
        node.span = span
        return node


@dataclass(frozen=True, slots=True)
class Ignore:
    """One `ignore`: the names of rules and families that it hides (None is all of them), and where it stands.

    `span` goes to the end of its reason, `whole_file` is whether it is an `ignore-file`.
    """

    names: frozenset[str] | None
    span: Span
    whole_file: bool = False

    def hides(self, rule_name: str, family: str) -> bool:
        """Whether it speaks of a rule."""
        return self.names is None or rule_name in self.names or family in self.names


@dataclass(frozen=True, slots=True)
class Intent:
    """What the author says of a gradient on a line: `stop`, it is meant to end there, or `keep`, it is wanted."""

    wish: str
    row: int
    span: Span


@dataclass(frozen=True, slots=True)
class UnusedIgnore:
    """An `ignore` that hides nothing: `names` are those in vain, None for the whole comment; `unknown` are no rules."""

    node: Comment
    ignore: Ignore
    names: tuple[str, ...] | None
    unknown: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Suppressions:
    """What the comments of one source hide: on their rows, and in the whole of it."""

    rows: Mapping[int, tuple[Ignore, ...]]
    everywhere: tuple[Ignore, ...] = ()
    intents: tuple[Intent, ...] = ()

    @classmethod
    def of(cls, module: Module) -> "Suppressions":
        """Read them from a source. A comment on the whole file counts only above its first statement."""
        rows: dict[int, tuple[Ignore, ...]] = {}
        everywhere: tuple[Ignore, ...] = ()
        intents: list[Intent] = []
        if _MARK not in module.healed and _INTENT.search(module.healed) is None:
            return cls(rows)
        top = _top(module)
        for lexeme in lexemes(module.healed):
            if not lexeme.comment:
                continue
            row, _ = module.source.row_column(lexeme.span.start)
            text = module.source[lexeme.span]
            intents += (
                Intent(match["wish"], row, _part(lexeme.span, text, match))
                for match in _INTENT.finditer(text)
            )
            for match in _IGNORE.finditer(text):
                whole = match["file"] is not None
                ignore = Ignore(_names(match["names"]), _part(lexeme.span, text, match), whole)
                if not whole:
                    rows[row] = (*rows.get(row, ()), ignore)
                elif row < top:
                    everywhere = (*everywhere, ignore)
        return cls(rows, everywhere, tuple(intents))

    @property
    def ignores(self) -> tuple[Ignore, ...]:
        """Every `ignore` that counts, in the order of the text."""
        return (*self.everywhere, *(ignore for at in self.rows.values() for ignore in at))

    def hiding(self, rule_name: str, family: str, rows: Iterable[int]) -> tuple[Ignore, ...]:
        """The comments that hide a finding of this rule on one of these rows."""
        near = (ignore for row in rows for ignore in self.rows.get(row, ()))
        return tuple(ignore for ignore in (*self.everywhere, *near) if ignore.hides(rule_name, family))

    def justifies(self, family: str, rows: Iterable[int]) -> bool:
        """Whether an intent that is stated on one of these rows answers a rule of this family."""
        there = set(rows)
        return any(intent.row in there and family in JUSTIFIED[intent.wish] for intent in self.intents)


def _part(comment: Span, text: str, match: re.Match[str]) -> Span:
    """From the mark to the end of its reason: the end of the comment, or where another comment begins."""
    other = text.find("#", match.end())
    end = len(text[: other if other >= 0 else len(text)].rstrip())
    return Span(comment.start + match.start(), comment.start + max(end, match.end()))


def _names(inside: str | None) -> frozenset[str] | None:
    return None if inside is None else frozenset(name for part in inside.split(",") if (name := part.strip()))


def _top(module: Module) -> int:
    """The row of the first statement that is more than the module's docstring."""
    return next(
        (node.lineno for node in module.tree.body if not _is_docstring(node)), len(module.source.text) + 1
    )


def _is_docstring(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
