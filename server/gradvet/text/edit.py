"""Replacements in a text, and how to apply them."""

from collections.abc import Iterable
from dataclasses import dataclass

from gradvet.text.span import Span


@dataclass(frozen=True, slots=True)
class Edit:
    """Put `text` where `span` stands. An empty span inserts, an empty text deletes."""

    span: Span
    text: str


def apply(text: str, edits: Iterable[Edit]) -> str:
    """Apply disjoint edits to the text they were made for.

    Raises ValueError when two edits overlap. Insertions at one place keep their order.
    """
    pieces: list[str] = []
    done = 0
    for edit in sorted(edits, key=lambda edit: (edit.span.start, edit.span.end)):
        if edit.span.start < done:
            message = f"edits overlap at character {edit.span.start}"
            raise ValueError(message)
        pieces += (text[done : edit.span.start], edit.text)
        done = edit.span.end
    return "".join((*pieces, text[done:]))
