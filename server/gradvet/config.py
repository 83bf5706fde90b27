"""The settings that an analysis takes."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Config:
    """What the user chose. `select` and `ignore` hold rule names and family names; empty `select` means all."""

    select: frozenset[str] = frozenset()
    ignore: frozenset[str] = frozenset()

    def enables(self, name: str, family: str) -> bool:
        """Whether a rule of this name and family speaks."""
        asked = {name, family}
        return not (asked & self.ignore) and (not self.select or bool(asked & self.select))
