"""Adds up what came of random programs."""

from collections.abc import Sequence
from dataclasses import dataclass

from tools.fuzz.campaign import Trial


@dataclass(frozen=True, slots=True)
class Total:
    """How many programs, how many of them raised, how many expressions held tensors, and what became of those."""

    programs: int = 0
    raised: int = 0
    disagreeing: int = 0
    tensors: int = 0
    unknown: int = 0
    missing: int = 0

    @classmethod
    def of(cls, found: Sequence[Trial]) -> "Total":
        """The sums over some programs."""
        return cls(
            programs=len(found),
            raised=sum(one.observation.failure is not None for one in found),
            disagreeing=sum(bool(one.faults) for one in found),
            tensors=sum(one.judgement.tensors for one in found),
            unknown=sum(one.judgement.unknown for one in found),
            missing=sum(one.judgement.missing.total() for one in found),
        )

    def __add__(self, other: "Total") -> "Total":
        """Both together."""
        return Total(
            self.programs + other.programs,
            self.raised + other.raised,
            self.disagreeing + other.disagreeing,
            self.tensors + other.tensors,
            self.unknown + other.unknown,
            self.missing + other.missing,
        )

    def __str__(self) -> str:
        """One line."""
        return (
            f"{self.programs} programs ({self.raised} raised), {self.disagreeing} disagree; "
            f"{self.tensors} tensor expressions, {self._share(self.unknown)} unknown, "
            f"{self._share(self.missing)} missing"
        )

    def _share(self, part: int) -> str:
        return f"{part} ({100 * part / (self.tensors or 1):.1f} %)"
