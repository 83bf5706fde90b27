"""Links from a text in Markdown to lines, where whoever shows it can follow them."""

import ast
from collections.abc import Callable

from gradvet.analysis import Analysis
from gradvet.text import Source

Link = Callable[[Source, int], str | None]
"""Gives the address of a row of a source, or None where it has none that can be opened."""


def no_links(_source: Source, _row: int) -> str | None:
    """For those who show plain text."""
    return None


def at_line(analysis: Analysis, node: ast.AST | None, link: Link = no_links) -> str | None:
    """The line of a node in words, `line 12` or `line 3 of models/net.py`, linked where it can be."""
    if node is None:
        return None
    found = analysis.line(node)
    if found is None:
        return None
    source, row, words = found
    address = link(source, row)
    return words if address is None else f"[{words}]({address})"


def behind(text: str, where: str | None) -> str:
    """The text with the line behind it, unless it says it itself."""
    if where is None or _words(where) in text:
        return text
    return f"{text} ({where})"


def _words(where: str) -> str:
    return where[1 : where.index("](")] if where.startswith("[") and "](" in where else where
