"""A half-open run of characters in one text."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Characters `start` up to, not including, `end`, counted in code points from 0."""

    start: int
    end: int

    def __contains__(self, offset: int) -> bool:
        """Whether the offset lies in the span; the end counts, as a cursor may stand there."""
        return self.start <= offset <= self.end

    def overlaps(self, other: "Span") -> bool:
        """Whether the two spans share a character, or one of them is empty and touches the other."""
        return (self.start < other.end and other.start < self.end) or self.start == other.start
