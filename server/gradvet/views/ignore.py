"""Where and how to write `# gradvet: ignore[rule]` for a diagnostic."""

import re

from gradvet.analysis import Diagnostic
from gradvet.syntax.lexical import lexemes
from gradvet.syntax.parse import Module
from gradvet.text import Edit, Span

_IGNORE = re.compile(r"#\s*gradvet\s*:\s*ignore\s*\[(?P<rules>[^\[\]]*)\]")


def ignore_edit(module: Module, diagnostic: Diagnostic) -> Edit | None:
    """The comment at the end of the diagnostic's first line, joined with one that is there already.

    None where the line cannot end in a comment: inside a string, or before a backslash.
    """
    source, name = module.source, diagnostic.rule.name
    row, _ = source.row_column(diagnostic.span.start)
    line, start = source.line(row), source.line_starts[row - 1]
    end = start + len(line)
    comment = ""
    for lexeme in lexemes(module.healed):
        if lexeme.span.start >= end:
            break
        if not lexeme.comment and lexeme.span.end > end:
            return None
        if lexeme.comment and lexeme.span.start >= start:
            comment = source[lexeme.span]
    if (there := _IGNORE.search(comment)) is not None:
        before = there["rules"].strip().rstrip(",")
        at = end - len(comment)
        inside = Span(at + there.start("rules"), at + there.end("rules"))
        return Edit(inside, f"{before}, {name}" if before else name)
    if line.endswith("\\") and not comment:
        return None
    return Edit(Span(start + len(line.rstrip()), end), f"  # gradvet: ignore[{name}]")
