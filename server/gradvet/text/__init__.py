"""Text, spans and edits. Knows neither Python nor torch."""

from gradvet.text.edit import Edit, apply
from gradvet.text.source import Source
from gradvet.text.span import Span

__all__ = ["Edit", "Source", "Span", "apply"]
