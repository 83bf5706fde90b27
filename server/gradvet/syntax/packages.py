"""Where the modules of a project lie: from the names in an import to paths, as Python's own search goes."""

import os
from collections.abc import Callable, Iterator, Sequence

Read = Callable[[str], str | None]
"""Gives the text of a file by its path, or None where there is none to be had."""

MOST_FOLDERS_UP = 8
_PACKAGE = "__init__.py"


class Packages:
    """Finds modules by asking for their texts. Paths have `/` between their parts, and folders end with one."""

    def __init__(self, read: Read) -> None:
        """Nothing has been asked for; no path is asked for twice."""
        self._read = read
        self._texts: dict[str, str | None] = {}
        self._files: dict[str, str | None] = {}
        self._roots: dict[str, tuple[str, ...]] = {}
        self._places: dict[tuple[str, str, tuple[str, ...]], str | None] = {}

    def text(self, path: str) -> str | None:
        """The text of a file."""
        if path not in self._texts:
            self._texts[path] = self._read(path)
        return self._texts[path]

    def file(self, place: str) -> str | None:
        """The file of the module at a place, which is its path without an ending; a package goes before a file."""
        if place not in self._files:
            paths = (within(place, _PACKAGE), f"{place}.py")
            self._files[place] = next((path for path in paths if self.text(path) is not None), None)
        return self._files[place]

    def place(self, importer: str, module: str, level: int, taken: tuple[str, ...] = ()) -> str | None:
        """Where the module lies that `importer` means by `module` with `level` dots before it.

        `taken` are the names that are taken from it: a folder without a file of its own is only
        known by the modules in it.
        """
        parts = module.split(".") if module else []
        if level:
            folder: str | None = folder_of(importer)
            for _ in range(level - 1):
                folder = None if folder is None else _above(folder)
            return None if folder is None else (folder + "/".join(parts)).removesuffix("/")
        key = (folder_of(importer), module, taken)
        if key not in self._places:
            roots = (root for root in self._roots_of(key[0]) if self._begins(root, parts, taken))
            self._places[key] = next((root + "/".join(parts) for root in roots), None)
        return self._places[key]

    def _begins(self, root: str, parts: Sequence[str], taken: Sequence[str]) -> bool:
        """Whether the search for a module would end in this root."""
        first = self.file(root + parts[0])
        if first is not None:
            return is_package(first) or len(parts) == 1
        whole = root + "/".join(parts)
        return (len(parts) > 1 and self.file(whole) is not None) or any(
            self.file(within(whole, name)) is not None for name in taken
        )

    def _roots_of(self, folder: str) -> tuple[str, ...]:
        """The folders in which a search from here looks for packages, best first."""
        if folder not in self._roots:
            self._roots[folder] = tuple(self._search(folder))
        return self._roots[folder]

    def _search(self, folder: str) -> Iterator[str]:
        """Around the packages that the folder is in, with `src` folders; at last within them, as for a script."""
        inside = []
        outer: str | None = folder
        while outer is not None and self.text(outer + _PACKAGE) is not None:
            inside.append(outer)
            outer = _above(outer)
        for _ in range(MOST_FOLDERS_UP):
            if outer is None:
                break
            yield from (outer, f"{outer}src/")
            outer = _above(outer)
        yield from inside


def is_package(path: str) -> bool:
    """Whether a file is that of a package, which may have modules in it."""
    return path.rpartition("/")[2] == _PACKAGE


def within(place: str, name: str) -> str:
    """The place of what has this name in the package at a place."""
    return f"{place}/{name}" if place else name


def with_slashes(path: str) -> str:
    """The path of a file as it is written here, whatever the system writes between the parts."""
    return path.replace(os.sep, "/")


def folder_of(path: str) -> str:
    """The folder that a file lies in."""
    return path[: path.rfind("/") + 1]


def _above(folder: str) -> str | None:
    """The folder around a folder; None at the end of the path."""
    return folder_of(folder[:-1]) if len(folder) > 1 else None


def seen_from(path: str, other: str) -> str:
    """The path of another file as a reader of this one would write it."""
    here, there = with_slashes(path).split("/")[:-1], other.split("/")
    while here and len(there) > 1 and here[0] == there[0]:
        here, there = here[1:], there[1:]
    return "/".join([".."] * len(here) + there)
