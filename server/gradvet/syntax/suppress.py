"""Comments that hide findings: `# gradvet: ignore[rule-name] reason`, and `ignore-file` at the top."""

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass

from gradvet.syntax.lexical import lexemes
from gradvet.syntax.parse import Module

_MARK = "gradvet"
_IGNORE = re.compile(r"#\s*gradvet\s*:\s*ignore(?P<file>-file)?(?:\s*\[(?P<names>[^\[\]]*)\])?(?![\w\[-])")


@dataclass(frozen=True, slots=True)
class _Ignore:
    """The names of rules and families that one comment hides; None is all of them."""

    names: frozenset[str] | None

    def hides(self, rule_name: str, family: str) -> bool:
        return self.names is None or rule_name in self.names or family in self.names


@dataclass(frozen=True, slots=True)
class Suppressions:
    """What the comments of one source hide: on their rows, and in the whole of it."""

    rows: Mapping[int, tuple[_Ignore, ...]]
    everywhere: tuple[_Ignore, ...] = ()

    @classmethod
    def of(cls, module: Module) -> "Suppressions":
        """Read them from a source. A comment on the whole file counts only above its first statement."""
        rows: dict[int, tuple[_Ignore, ...]] = {}
        everywhere: tuple[_Ignore, ...] = ()
        if _MARK not in module.healed:
            return cls(rows)
        top = _top(module)
        for lexeme in lexemes(module.healed):
            if not lexeme.comment:
                continue
            row, _ = module.source.row_column(lexeme.span.start)
            for match in _IGNORE.finditer(module.source[lexeme.span]):
                ignore = _Ignore(_names(match["names"]))
                if match["file"] is None:
                    rows[row] = (*rows.get(row, ()), ignore)
                elif row < top:
                    everywhere = (*everywhere, ignore)
        return cls(rows, everywhere)

    def hides(self, rule_name: str, family: str, row: int) -> bool:
        """Whether a finding of this rule on this row is not to be shown."""
        return any(ignore.hides(rule_name, family) for ignore in (*self.everywhere, *self.rows.get(row, ())))


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
