"""The packages: one for each platform that LibCST has a native part for, and one for everywhere else."""

from dataclasses import dataclass

PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")  # CPython; what runs the server


@dataclass(frozen=True, slots=True)
class Target:
    """A platform as vsce names it, and as Python's wheels do; the universal package has no such names."""

    name: str
    platforms: tuple[str, ...] = ()

    @property
    def universal(self) -> bool:
        """Whether it is for every platform, and so without native parts."""
        return not self.platforms


TARGETS = (
    # VS Code itself needs this glibc or a newer one
    Target("linux-x64", ("manylinux_2_28_x86_64", "manylinux2014_x86_64")),
    Target("linux-arm64", ("manylinux_2_28_aarch64", "manylinux2014_aarch64")),
    Target("darwin-arm64", ("macosx_11_0_arm64",)),
    Target("win32-x64", ("win_amd64",)),
    Target("universal"),
)
