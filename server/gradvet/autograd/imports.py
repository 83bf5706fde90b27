"""Imports of the project's own modules: each is run once in the same machine, with globals of its own."""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache

from gradvet.autograd.domain import GRAD
from gradvet.autograd.externals import HANDLERS, INTO_NUMPY
from gradvet.autograd.frameworks import FRAMEWORKS, MODULE_MAKERS
from gradvet.autograd.machine import MODE, MOST_STEPS, Frame, Machine, OutOfSteps
from gradvet.autograd.names import globals_of
from gradvet.autograd.store import Delta
from gradvet.autograd.values import Const, External, OwnModule, Sequence, Tuple, Value, const
from gradvet.syntax.packages import Packages, Read, is_package, with_slashes, within
from gradvet.syntax.parse import Module, parse
from gradvet.text import Source

MOST_MODULES = 100
MOST_CHARACTERS = 2_000_000
MOST_STEPS_OF_IMPORTS = 12_000
MOST_IMPORTS_DEEP = 24
MOST_PARSED = 160


@lru_cache(maxsize=MOST_PARSED)
def _parsed(path: str, text: str) -> Module:
    """The tree of a module that is only imported. Runs share it and none changes it."""
    return parse(Source(path, text))


@cache
def well_known() -> frozenset[str]:
    """The packages of which the machine knows what they do, or that come with Python: nobody's own modules."""
    names = (*HANDLERS, *INTO_NUMPY, *MODULE_MAKERS, *FRAMEWORKS)
    # `test` is Python's own tests, which nobody imports; a `test.py` of a project is imported.
    return frozenset({name.partition(".")[0] for name in names} | sys.stdlib_module_names) - {"test"}


def texts_imported(module: Module, read: Read) -> Iterator[str]:
    """The texts of the project's modules that a module itself imports."""
    packages = Packages(read)
    for node in ast.walk(module.tree):
        for name, level, taken in _asked(node):
            place = _place(packages, with_slashes(module.source.path), name, level, taken)
            file = None if place is None else packages.file(place)
            files = [packages.file(within(place, one)) for one in taken] if place is not None else []
            yield from (packages.text(path) or "" for path in (file, *files) if path is not None)


def _asked(node: ast.AST) -> list[tuple[str, int, tuple[str, ...]]]:
    """The modules that an import names, each with its dots and what is taken from it."""
    match node:
        case ast.Import(names=names):
            return [(alias.name, 0, ()) for alias in names]
        case ast.ImportFrom(module=module, level=level, names=names):
            return [(module or "", level, tuple(alias.name for alias in names if alias.name != "*"))]
    return []


def _place(
    packages: Packages, importer: str, name: str, level: int, taken: tuple[str, ...] = ()
) -> str | None:
    if not level and (not name or name.partition(".")[0] in well_known()):
        return None
    return packages.place(importer, name, level, taken)


@dataclass(slots=True)
class _File:
    """A module that was run, or is being run as long as there is no `delta`: what its body left in the store."""

    module: Module
    value: OwnModule
    delta: Delta | None = None


class Imports:
    """The project's modules that a run has come to."""

    def __init__(self, main: Module, scope: int, read: Read) -> None:
        """Begin with the one that is analysed; `read` gives the texts of the others."""
        self._packages = Packages(read)
        path = with_slashes(main.source.path)
        own = OwnModule(scope, "__main__", path.rpartition("/")[0] if is_package(path) else None)
        self._files = {path: _File(main, own)}
        self._folders: dict[str, OwnModule] = {}
        self._paths = {scope: path}
        self._depth = 0
        self._characters = 0
        self._steps = 0

    @property
    def others(self) -> list[Module]:
        """The modules that were imported, in the order in which they were met."""
        return [file.module for file in self._files.values()][1:]

    def holds(self, node: ast.AST) -> bool:
        """Whether a node is one of the module that is analysed."""
        return next(iter(self._files.values())).module.holds(node)

    # -- what the statements bind

    def module(self, m: Machine, name: str, *, first: bool) -> Value | None:
        """What `import a.b` binds, the `first` package, or `import a.b as c`, the module; None if it is not our own."""
        place = _place(self._packages, self._importer(m), name, 0)
        if place is None:
            return None
        parts = name.split(".")
        top = place.removesuffix("/".join(parts))
        found: Value | None = None
        for at in range(1 if first else len(parts), len(parts) + 1):
            value = self._at(m, top + "/".join(parts[:at]), ".".join(parts[:at]))
            found = value if found is None else found
        return found

    def taken(self, m: Machine, node: ast.ImportFrom) -> OwnModule | None:
        """The module that names are taken from; None if it is not our own."""
        [(name, level, taken)] = _asked(node)
        place = _place(self._packages, self._importer(m), name, level, taken)
        return None if place is None else self._at(m, place, "." * level + name)

    def member(self, m: Machine, module: OwnModule, name: str) -> Value:
        """What `from module import name` binds: what has that name in it, or else a module of the package."""
        value = m.cells.get((module.scope, name))
        if value is None and module.place is not None:
            place = within(module.place, name)
            if self._packages.file(place) is not None:
                value = self._at(m, place, f"{module.name}.{name}")
        return value if value is not None else External(f"{module.name}.{name}")

    def attribute(self, m: Machine, module: OwnModule, name: str) -> Value:
        """What `module.name` gives: of the modules in a package, only those that somebody has imported."""
        value = m.cells.get((module.scope, name))
        if value is None and module.place is not None:
            place = within(module.place, name)
            if self._packages.file(place) in self._files:
                value = self._at(m, place, f"{module.name}.{name}")
        return value if value is not None else External(f"{module.name}.{name}")

    def star(self, m: Machine, module: OwnModule) -> None:
        """`from module import *`."""
        frame = m.frames[-1]
        for name in self._public(m, module):
            frame.info.names.add(name)
            m.store.set((frame.scope, name), self.member(m, module, name))
        known = module.scope in self._paths
        passed_on = m.star_imports.get(module.scope, ()) if known else (module.name,)
        m.star_imports.setdefault(globals_of(m, frame.scope), []).extend(passed_on)

    def _public(self, m: Machine, module: OwnModule) -> list[str]:
        """The names that a star takes: those in `__all__`, or else all that do not begin with an underscore."""
        listed = m.cells.get((module.scope, "__all__"))
        content = m.cells.get(getattr(listed, "address", -1), listed)
        items = content.items if type(content) in (Sequence, Tuple) else None
        if items is not None and all(type(item) is Const and item.kind == "str" for item in items):
            return [item.value for item in items]
        path = self._paths.get(module.scope)
        names = m.info(self._files[path].module.tree).names if path is not None else set()
        return sorted(name for name in names if name[:1] != "_" and (module.scope, name) in m.cells)

    # -- running modules

    def _importer(self, m: Machine) -> str:
        return self._paths[globals_of(m, m.frames[-1].scope)]

    def _at(self, m: Machine, place: str, name: str) -> OwnModule | None:
        """The module at a place; its body has run then, unless it is just being run."""
        path = self._packages.file(place)
        if path is None:
            return self._folder(m, place, name)
        file = self._files.get(path)
        if file is None:
            text = self._packages.text(path) or ""
            if self._full(m, text):
                return None
            value = OwnModule(m.number(), name, place if is_package(path) else None)
            file = self._files[path] = _File(_parsed(path, text), value)
            self._paths[value.scope] = path
            self._run(m, file)
        elif file.delta is not None and (file.value.scope, "__name__") not in m.cells:
            # It was run on a branch that has been left; the same body would leave the same.
            for key, content in file.delta.items():
                if content is not None and key not in m.cells:
                    m.store.set(key, content)
        return file.value

    def _folder(self, m: Machine, place: str, name: str) -> OwnModule:
        """A package without a file of its own."""
        if place not in self._folders:
            self._folders[place] = OwnModule(m.number(), name, place)
        return self._folders[place]

    def _full(self, m: Machine, text: str) -> bool:
        """Whether a bound is reached, so that one more module would be too many."""
        self._characters += len(text)
        if (
            len(self._files) <= MOST_MODULES
            and self._depth < MOST_IMPORTS_DEEP
            and self._characters <= MOST_CHARACTERS
            and (self._depth or self._steps < MOST_STEPS_OF_IMPORTS)
        ):
            return False
        self._characters -= len(text)
        m.limit("not all of the project's modules that are imported were followed: there are too many")
        return True

    def _run(self, m: Machine, file: _File) -> None:
        """Run the body of a module as if nothing else were under way."""
        tree, scope = file.module.tree, file.value.scope
        before = m.frames, m.loops, m.calls, m.alone, m.raised, m.cut_short
        modes, mode, limits, steps = len(m.mode_nodes), m.mode, dict(m.limits), m.steps
        mark = m.store.mark()
        info = m.info(tree)
        info.keeps_locals = True
        m.scope_parents[scope] = 0
        m.store.set((scope, "__name__"), const(file.value.name))
        m.frames, m.loops, m.calls = [Frame(tree, info, scope, m.number(), mark)], [], []
        m.alone = m.raised = False
        if not self._depth:
            m.steps = MOST_STEPS - MOST_STEPS_OF_IMPORTS + self._steps
        self._depth += 1
        try:
            m.block(tree.body)
        except (OutOfSteps, RecursionError):
            m.limits = limits
            m.limit(f"what `{file.value.name}` does when it is imported was not followed to its end")
            m.store.set(MODE, mode or GRAD)
            del m.mode_nodes[modes:]
        finally:
            self._depth -= 1
            if not self._depth:
                self._steps = m.steps - MOST_STEPS + MOST_STEPS_OF_IMPORTS
                m.steps = steps
            m.frames, m.loops, m.calls, m.alone, m.raised, m.cut_short = before
        file.delta = m.store.delta(mark)
