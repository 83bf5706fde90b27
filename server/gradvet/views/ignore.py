"""Where and how to write `# gradvet: ignore[rule]` for a diagnostic."""

import re

from gradvet.analysis import Diagnostic
from gradvet.syntax.lexical import lexemes
from gradvet.syntax.parse import Module
from gradvet.text import Edit, Span

_IGNORE = re.compile(r"#\s*gradvet\s*:\s*ignore\s*\[(?P<rules>[^\[\]]*)\]")


def ignore_edit(module: Module, diagnostic: Diagnostic) -> Edit | None:
    """The comment behind the diagnostic's first line, else behind its last; joined with one that is there.

    None where neither line can end in a comment: inside a string, or before a backslash.
    """
    span = diagnostic.span
    rows = dict.fromkeys(module.source.row_column(offset)[0] for offset in (span.start, span.end))
    edits = (_behind(module, row, diagnostic.rule.name) for row in rows)
    return next((edit for edit in edits if edit is not None), None)


def _statement_start(module: Module, row: int) -> int:
    """Where the outermost statement at or before a row begins: no string is open there."""
    first = max((node.lineno for node in module.tree.body if node.lineno <= row), default=1)
    return module.source.line_starts[first - 1]


def _behind(module: Module, row: int, name: str) -> Edit | None:
    line, start = module.source.line(row), module.source.line_starts[row - 1]
    end = start + len(line)
    comment = ""
    for lexeme in lexemes(module.healed, _statement_start(module, row)):
        if lexeme.span.start >= end:
            break
        if not lexeme.comment and lexeme.span.end > end:
            return None
        if lexeme.comment and lexeme.span.start >= start:
            comment = module.source[lexeme.span]
    if (there := _IGNORE.search(comment)) is not None:
        before = there["rules"].strip().rstrip(",")
        at = end - len(comment)
        inside = Span(at + there.start("rules"), at + there.end("rules"))
        return Edit(inside, f"{before}, {name}" if before else name)
    if line.endswith("\\") and not comment:
        return None
    return Edit(Span(start + len(line.rstrip()), end), f"  # gradvet: ignore[{name}]")
