"""The disk: which files to look at, their texts and their settings. The only I/O below cli and lsp."""

import fnmatch
import io
import os
import stat
import sys
import tokenize
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from gradvet.config import Config
from gradvet.ipynb import Notebook, NotebookError, read_notebook
from gradvet.rules import all_rules
from gradvet.syntax.cells import CellSource
from gradvet.syntax.packages import Read, with_slashes
from gradvet.text import Source

EXCLUDED = frozenset({"__pycache__", "build", "dist", "node_modules", "site-packages", "venv"})
_NOTEBOOK = ".ipynb"
_KEYS = ("select", "ignore", "exclude")
_REPOSITORY = (".git", ".hg")
_PROJECT = ("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "gradvet.toml")


class ProjectError(Exception):
    """Something on the disk that the user has to put right; the message says what and where."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the nearest `pyproject.toml` or `gradvet.toml` says; `path` is None when there is none."""

    config: Config = Config()
    exclude: tuple[str, ...] = ()
    path: Path | None = None

    def excludes(self, path: Path) -> bool:
        """Whether a pattern leaves the path out: by its name or, with a `/`, by its way from here."""
        if self.path is None:
            return False
        way = Path(os.path.relpath(path, self.path.parent)).as_posix()
        return any(
            fnmatch.fnmatch(way if "/" in bare else path.name, bare)
            for pattern in self.exclude
            if (bare := pattern.rstrip("/"))
        )


@dataclass(frozen=True, slots=True)
class File:
    """The text of a file as it stands on the disk, and the encoding it is written in."""

    path: Path
    text: str
    encoding: str

    def source(self) -> Source:
        """What is analysed; its path is whole, as imports are looked for in the folders around."""
        return Source(os.path.abspath(self.path), self.text)

    def write(self, source: Source) -> None:
        """Put another source in the file; encoding and byte order mark stay."""
        try:
            self.path.write_bytes(self._written(source).encode(self.encoding))
        except OSError as error:
            with suppress(OSError):  # a disk that is full has cut the file off
                self.path.write_bytes(self.text.encode(self.encoding))
            raise ProjectError(f"{self.path}: cannot be written: {error.strerror}") from error

    def _written(self, source: Source) -> str:
        return source.text


@dataclass(frozen=True, slots=True)
class NotebookFile(File):
    """A notebook; what is analysed is its Python cells in their order."""

    notebook: Notebook

    def source(self) -> CellSource:
        """The cells, named by their numbers among all cells."""
        cells = self.notebook.cells
        names = [f"cell {cell.number}" for cell in cells]
        return CellSource(os.path.abspath(self.path), [cell.text for cell in cells], names)

    def _written(self, source: Source) -> str:
        return self.notebook.edited([source[cell] for cell in source.texts])


def read(path: Path) -> File:
    """Read a file as Python would, but keep its line ends."""
    try:
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # a pipe might let us wait forever
            raise ProjectError(f"{path}: cannot be read: it is a pipe, a device or the like, not a file")
        data = path.read_bytes()
    except OSError as error:
        raise ProjectError(f"{path}: cannot be read: {error.strerror}") from error
    if path.suffix.lower() == _NOTEBOOK:
        return _notebook(path, data)
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return File(path, data.decode(encoding), encoding)
    except UnicodeDecodeError as error:
        raise ProjectError(_undecodable(path, data, error)) from error
    except (SyntaxError, LookupError, ValueError) as error:
        try:
            data.decode("utf-8")
        except UnicodeDecodeError as inner:
            raise ProjectError(_undecodable(path, data, inner)) from error
        raise ProjectError(f"{path}: its first lines name an encoding that Python cannot use") from error


def _notebook(path: Path, data: bytes) -> NotebookFile:
    try:
        encoding = "utf-8-sig" if data.startswith(b"\xef\xbb\xbf") else "utf-8"
        text = data.decode(encoding)
        return NotebookFile(path, text, encoding, read_notebook(text))
    except UnicodeDecodeError as error:
        raise ProjectError(f"{path}: not a notebook: it is not UTF-8") from error
    except NotebookError as error:
        raise ProjectError(f"{path}: {error}") from error


def reader(path: Path, open_texts: Mapping[str, str] = MappingProxyType({})) -> Read:
    """Gives the texts of the modules that a file may import: those of its project, as they are now.

    What an editor has open stands in `open_texts` by its path and goes before what is on the disk.
    """
    root: list[str] = []

    def text(asked: str) -> str | None:
        if not root:
            root.append(f"{with_slashes(str(_project_of(path)))}/")
        if not asked.startswith(root[0]) or _is_foreign(asked[len(root[0]) :]):
            return None
        if (known := open_texts.get(asked)) is not None:
            return known
        try:
            return read(Path(asked)).text if os.path.isfile(asked) else None
        except ProjectError:
            return None

    return text


def _project_of(path: Path) -> Path:
    """The folder from which a file's imports may come.

    That is the repository around it, else what looks like a project, else what its package lies in.
    Of installed packages it is the package alone.
    """
    folder = Path(os.path.abspath(path)).parent
    around = (folder, *folder.parents)
    for above in around:
        if above.parent.name == "site-packages":
            return above
    for marks in (_REPOSITORY, _PROJECT):
        for above in around:
            if any(os.path.exists(above / mark) for mark in marks):
                return above
    return next(
        above for above in around if not os.path.isfile(above / "__init__.py") or above == above.parent
    )


def _is_foreign(way: str) -> bool:
    """Whether a way into a project leads to what others have made."""
    return any(part.startswith(".") or part in ("site-packages", "node_modules") for part in way.split("/"))


def _undecodable(path: Path, data: bytes, error: UnicodeDecodeError) -> str:
    row = data.count(b"\n", 0, error.start) + 1
    return (
        f"{path}: line {row} is not {error.encoding.upper()} (byte 0x{data[error.start]:02x}); "
        "save the file as UTF-8, or name its encoding in the first line: # -*- coding: latin-1 -*-"
    )


def _raise(message: str) -> None:
    raise ProjectError(message)


@dataclass(slots=True)
class Project:
    """Settings and files as they are on the disk now; each folder is asked once.

    `complain` is told what is wrong with settings, and raises unless the defaults are to hold in its place.
    """

    complain: Callable[[str], None] = _raise
    _known: dict[Path, Settings] = field(default_factory=dict)

    def settings(self, path: Path) -> Settings:
        """The settings for a file or folder: those of the nearest folder above that has some."""
        folder = path if os.path.isdir(path) else path.parent
        return self._of_folder(folder.absolute())

    def _of_folder(self, folder: Path) -> Settings:
        if (known := self._known.get(folder)) is None:
            above = folder.parent
            known = _settings_in(folder, self.complain) or (
                Settings() if above == folder else self._of_folder(above)
            )
            self._known[folder] = known
        return known

    def files(self, paths: Iterable[Path]) -> Iterator[Path | ProjectError]:
        """The Python files and notebooks under some paths, each once; an error in the place of what cannot be looked at.

        A path that is given is taken, whatever it is called and wherever it lies.
        """
        seen: set[str] = set()
        for given in paths:
            for found in self._under(given):
                if isinstance(found, ProjectError):
                    yield found
                elif (real := os.path.realpath(found)) not in seen:
                    seen.add(real)
                    yield found

    def _under(self, path: Path) -> Iterator[Path | ProjectError]:
        try:
            is_folder = stat.S_ISDIR(os.stat(path).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            yield ProjectError(f"{path}: no such file or folder")
        except OSError as error:
            yield ProjectError(f"{path}: cannot be read: {error.strerror}")
        else:
            yield from self._walk(path) if is_folder else (path,)

    def _walk(self, folder: Path) -> Iterator[Path | ProjectError]:
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            yield ProjectError(f"{folder}: cannot be read: {error.strerror}")
            return
        settings = self.settings(folder)
        for entry in entries:
            path = folder / entry.name
            if entry.name.startswith(".") or entry.name in EXCLUDED or settings.excludes(path):
                continue
            if entry.is_dir(follow_symlinks=False):
                # Not `Path.exists`, which raises in a folder that may not be entered.
                if not os.path.exists(path / "pyvenv.cfg"):
                    yield from self._walk(path)
            elif entry.name.endswith((".py", _NOTEBOOK)) and os.path.isfile(path):
                yield path


def _settings_in(folder: Path, complain: Callable[[str], None]) -> Settings | None:
    """The settings that stand in a folder; `gradvet.toml` goes before `pyproject.toml`."""
    for name, where in (("gradvet.toml", ()), ("pyproject.toml", ("tool", "gradvet"))):
        path = folder / name
        if not os.path.isfile(path):
            continue
        try:
            text = read(path).text
            if where and where[-1] not in text:
                continue  # not even the word: none of our business, whole or not
            table = _toml(path, text)
        except ProjectError as error:
            complain(str(error))
            continue
        for key in where:
            table = table.get(key) if isinstance(table, Mapping) else None
        if table is not None:
            return _settings(path, table, f"{path}: {f'[{chr(46).join(where)}] ' if where else ''}", complain)
    return None


def _toml(path: Path, text: str) -> Any:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ProjectError(f"{path}: not valid TOML: {error}") from error


def _settings(path: Path, table: object, where: str, complain: Callable[[str], None]) -> Settings:
    """The settings of a table; what is wrong in it counts as not being there."""
    if not isinstance(table, Mapping):
        complain(f"{where}must be a table")
        return Settings(path=path)
    for key in table:
        if key not in _KEYS:
            complain(f"{where}has no setting `{key}`{did_you_mean(key, _KEYS)}")
    names: dict[str, tuple[str, ...]] = dict.fromkeys(_KEYS, ())
    for key in _KEYS:
        value = table.get(key, [])
        if isinstance(value, list) and all(isinstance(name, str) for name in value):
            names[key] = tuple(value)
        else:
            complain(f"{where}`{key}` must be a list of strings, not `{value!r}`")
    for key in ("select", "ignore"):
        for name in names[key]:
            if (complaint := unknown_rules([name])) is not None:
                complain(f"{where}`{key}` names {complaint}")
                names[key] = tuple(other for other in names[key] if other != name)
    config = Config(frozenset(names["select"]), frozenset(names["ignore"]))
    return Settings(config, names["exclude"], path)


def unknown_rules(names: Iterable[str]) -> str | None:
    """What is wrong with some names of rules and families, or None."""
    rules = all_rules().values()
    known = sorted({rule.name for rule in rules} | {rule.family for rule in rules})
    for name in names:
        if name not in known:
            return f"`{name}`, which is neither a rule nor a family{did_you_mean(name, known)}"
    return None


def did_you_mean(word: str, words: Sequence[str]) -> str:
    """A question to end a message with; empty when nothing is near."""
    import difflib

    near = difflib.get_close_matches(word, words, 1)
    return f"; did you mean `{near[0]}`?" if near else ""
