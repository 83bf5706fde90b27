"""Where and how to write `# gradvet: ignore[rule]` for a diagnostic."""

import re

from gradvet.analysis import Diagnostic
from gradvet.syntax.lexical import lexemes
from gradvet.syntax.parse import Module
from gradvet.text import Edit, Span

_IGNORE = re.compile(r"#\s*gradvet\s*:\s*ignore\s*\[(?P<rules>[^\[\]]*)\]")

_IGNORE_FILE = re.compile(r"#\s*gradvet\s*:\s*ignore-file\s*\[(?P<rules>[^\[\]]*)\]")
# What must stand on a file's first lines: `#!`, the encoding; on a cell's, what language it is in.
_STAYS_FIRST = re.compile(r"\ufeff?#!|\ufeff?[ \t\f]*#.*?coding[:=]|%%")


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


def ignore_file_edit(module: Module, name: str) -> Edit:
    """`# gradvet: ignore-file[rule]` above all statements, where those that have to be first leave room.

    One that is there gets the name as well.
    """
    source = module.source
    first = next((node.lineno for node in module.tree.body), len(source.line_starts) + 1)
    for lexeme in lexemes(module.healed):
        if source.row_column(lexeme.span.start)[0] >= first:
            break
        there = _IGNORE_FILE.search(source[lexeme.span]) if lexeme.comment else None
        if there is not None:
            before = there["rules"].strip().rstrip(",")
            at = lexeme.span.start
            inside = Span(at + there.start("rules"), at + there.end("rules"))
            return Edit(inside, f"{before}, {name}" if before else name)
    row = 1
    while row <= len(source.line_starts) and _STAYS_FIRST.match(source.line(row)):
        row += 1
    comment = f"# gradvet: ignore-file[{name}]"
    if row > len(source.line_starts):
        return Edit(Span(len(source.text), len(source.text)), f"{source.line_end}{comment}{source.line_end}")
    start = source.line_starts[row - 1] + (row == 1 and source.text.startswith("\ufeff"))
    return Edit(Span(start, start), f"{comment}{source.line_end}")
