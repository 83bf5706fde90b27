"""Imports of the project's own modules: each is run once in the same machine, with globals of its own.

What the analysed module imports is run where it is imported. What those modules import in turn is run
when one of its names is used: most of a project is never needed, and circles do no harm.
"""

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache

from gradvet.autograd.knowledge.frameworks import FRAMEWORKS, MODULE_MAKERS
from gradvet.autograd.library.externals import HANDLERS, INTO_NUMPY
from gradvet.autograd.machine import (
    MODE,
    MOST_RUNS_OF_ONE_FUNCTION,
    MOST_STEPS,
    Frame,
    Machine,
    OutOfSteps,
)
from gradvet.autograd.memory.store import Delta
from gradvet.autograd.memory.values import (
    Const,
    External,
    Function,
    Later,
    OwnModule,
    Sequence,
    Tuple,
    Value,
    atoms,
    const,
    join_all,
)
from gradvet.autograd.python.names import globals_of
from gradvet.syntax.packages import Packages, Read, is_package, with_slashes, within
from gradvet.syntax.parse import Module, parse
from gradvet.syntax.tree import on_rows
from gradvet.text import Source

MOST_MODULES = 100
MOST_CHARACTERS = 2_000_000
MOST_CALLS = 600
MOST_CALLS_OF_A_PART = 100
MOST_CALLS_OF_A_BODY = 60
MOST_DIRECT_CALLS = 150
"""How many calls that the analysed module makes itself are followed although those before have taken all there were."""
MOST_CALLS_OF_A_DIRECT_ONE = 5
MOST_STEPS_OF_IMPORTS = 6_000
MOST_IMPORTS_DEEP = 20
MOST_PARSED = 160
_IMPORT = re.compile(r"\bimport\b")


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
    path = with_slashes(module.source.path)
    for node in on_rows(module.tree, module.rows(_IMPORT)):
        for name, taken in _asked(node):
            place = _place(packages, path, name, taken)
            if place is None:
                continue
            files = (packages.file(place), *(packages.file(within(place, one)) for one in taken))
            yield from (packages.text(file) or "" for file in files if file is not None)


def _asked(node: ast.AST) -> list[tuple[str, tuple[str, ...]]]:
    """The modules that an import names, dots and all, each with what is taken from it."""
    match node:
        case ast.Import(names=names):
            return [(alias.name, ()) for alias in names]
        case ast.ImportFrom(names=names):
            return [(named_by(node), tuple(alias.name for alias in names if alias.name != "*"))]
    return []


def named_by(node: ast.ImportFrom) -> str:
    """The module in `from ..module import name`, with its dots."""
    return "." * node.level + (node.module or "")


def _place(packages: Packages, importer: str, name: str, taken: tuple[str, ...]) -> str | None:
    """Where the module lies that `importer` means by a name; None if it is not one of the project."""
    if name.partition(".")[0] in well_known():
        return None
    bare = name.lstrip(".")
    return packages.place(importer, bare, len(name) - len(bare), taken)


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
        self._main = main
        path = with_slashes(main.source.path)
        own = OwnModule(scope, "__main__", path.rpartition("/")[0] if is_package(path) else None)
        self._files = {path: _File(main, own)}
        self._folders: dict[str, OwnModule] = {}
        self._sought: set[tuple[int, str]] = set()
        self._paths = {scope: path}
        self._depth = 0
        self._characters = 0
        self._steps = 0
        self._calls = 0
        self._until = MOST_CALLS
        self._last = 0
        self._direct = 0
        self._followed: set[int] = set()

    @property
    def others(self) -> list[Module]:
        """The modules that were imported, in the order in which they were met."""
        return [file.module for file in self._files.values() if file.module is not self._main]

    def holds(self, node: ast.AST) -> bool:
        """Whether a node is one of the module that is analysed."""
        return self._main.holds(node)

    def mention(self, word: str) -> bool:
        """Whether a word stands in one of them."""
        return any(word in module.healed for module in self.others)

    def begin(self) -> None:
        """Begin a part that is run by itself: where nothing is known, calls into other modules tell less and less."""
        self._last = self._last or self._calls + MOST_CALLS
        self._until = min(self._calls + MOST_CALLS_OF_A_PART, self._last)

    def follows(self, m: Machine, function: Function, place: ast.AST) -> bool:
        """Whether a call at a place is followed; of functions of other modules, only so many are.

        A call that a loop comes to again counts once.
        """
        if globals_of(m, function.scope) == m.global_scope:
            return True
        context = m.context(place)
        if self._calls >= self._until and context not in self._followed and self._is_direct(place):
            self._until = self._calls + MOST_CALLS_OF_A_DIRECT_ONE
        if context not in self._followed and self._calls < self._until:
            self._followed.add(context)
            self._calls += 1
        if context in self._followed and m.runs.get(function.node, 0) < MOST_RUNS_OF_ONE_FUNCTION:
            return True
        m.limit("not all calls of functions of other modules were followed: there are too many")
        return False

    def _is_direct(self, place: ast.AST) -> bool:
        """Whether it is the analysed module that calls, and has not done so too often."""
        direct = self._direct < MOST_DIRECT_CALLS and self.holds(place)
        self._direct += direct
        return direct

    # -- what names are bound to

    def imported(self, m: Machine, module: str, name: str = "", *, first: bool = False) -> Value:
        """What an import binds in the module that is being run."""
        scope = globals_of(m, m.frames[-1].scope)
        later = Later(self._paths[scope], module, name, first)
        if module.partition(".")[0] in well_known():
            return _outside(later)
        return self._found(m, later) if scope == m.global_scope else later

    def settled(self, m: Machine, scope: int, name: str, value: Value) -> Value:
        """The value of a name that was imported and not yet looked for."""
        self._sought.add((scope, name))
        try:
            found = [self._found(m, atom) if type(atom) is Later else atom for atom in atoms(value)]
        finally:
            self._sought.discard((scope, name))
        joined = join_all(found)
        if not any(type(atom) is External for atom in found):  # else it may be there the next time
            m.store.set((scope, name), joined)
        return joined

    def member(self, m: Machine, module: OwnModule, name: str) -> Value:
        """What has a name in a module, or else a module of that name in a package."""
        value = m.cells.get((module.scope, name))
        if value is not None and not is_open(value):
            return value
        if value is not None and (module.scope, name) not in self._sought:
            return self.settled(m, module.scope, name, value)
        value = None
        if module.place is not None:
            place = within(module.place, name)
            if self._packages.file(place) is not None:
                value = self._at(m, place, f"{module.name}.{name}")
        return value if value is not None else External(f"{module.name}.{name}")

    def star(self, m: Machine, name: str) -> None:
        """`from name import *`, in the module that is being run."""
        frame = m.frames[-1]
        scope = globals_of(m, frame.scope)
        place = _place(self._packages, self._paths[scope], name, ())
        module = None if place is None else self._at(m, place, name)
        passed_on: list[str] = [name]
        if module is not None and module.scope in self._paths:
            passed_on = m.star_imports.get(module.scope, [])
            for public in self._public(m, module):
                frame.info.names.add(public)
                value = m.cells.get((module.scope, public))
                value = value if value is not None else self.member(m, module, public)
                m.store.set((frame.scope, public), value)
        m.star_imports.setdefault(scope, []).extend(passed_on)

    def _public(self, m: Machine, module: OwnModule) -> list[str]:
        """The names that a star takes: those in `__all__`, or else all that do not begin with an underscore."""
        listed = m.cells.get((module.scope, "__all__"))
        content = m.cells.get(getattr(listed, "address", -1), listed)
        items = content.items if isinstance(content, (Sequence, Tuple)) else None
        if items is not None and all(type(item) is Const and item.kind == "str" for item in items):
            return [item.value for item in items]
        names = m.info(self._files[self._paths[module.scope]].module.tree).names
        return sorted(name for name in names if name[:1] != "_" and (module.scope, name) in m.cells)

    # -- finding and running modules

    def _found(self, m: Machine, later: Later) -> Value:
        """What an import gives, now that it is needed."""
        taken = (later.name,) if later.name else ()
        place = _place(self._packages, later.importer, later.module, taken)
        if place is None:
            return _outside(later)
        name = later.module
        if later.first:
            name, _, inner = name.partition(".")
            place = place.removesuffix(f"/{inner.replace('.', '/')}") if inner else place
        module = self._at(m, place, name)
        if module is None:
            return _outside(later)
        return self.member(m, module, later.name) if later.name else module

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

    @property
    def is_running(self) -> bool:
        """Whether the body of another module is under way."""
        return self._depth > 0

    def _full(self, m: Machine, text: str) -> bool:
        """Whether a bound is reached, so that one more module would be too many."""
        if (
            len(self._files) <= MOST_MODULES
            and self._depth < MOST_IMPORTS_DEEP
            and self._characters + len(text) <= MOST_CHARACTERS
            and self._steps < MOST_STEPS_OF_IMPORTS
        ):
            self._characters += len(text)
            return False
        m.limit("not all of the project's modules that are imported were followed: there are too many")
        return True

    def _run(self, m: Machine, file: _File) -> None:
        """Run the body of a module as if nothing else were under way."""
        tree, scope = file.module.tree, file.value.scope
        before, put_back = (m.frames, m.loops, m.calls, m.cut_short, m.graph_unseen), m.under_way()
        modes, mode, limits, steps = len(m.mode_nodes), m.mode, dict(m.limits), m.steps
        calls, until = self._calls, self._until
        self._until = calls + MOST_CALLS_OF_A_BODY
        mark = m.store.mark()
        info = m.info(tree)
        info.keeps_locals = True
        info.names.add("__name__")
        m.scope_parents[scope] = 0
        m.store.set((scope, "__name__"), const(file.value.name))
        m.frames, m.loops, m.calls = [Frame(tree, info, scope, m.number(), mark)], [], []
        m.alone = m.raised = False
        last, m.last_step = m.last_step, MOST_STEPS
        m.steps = MOST_STEPS - MOST_STEPS_OF_IMPORTS + self._steps
        self._depth += 1
        try:
            m.block(tree.body)
        except (OutOfSteps, RecursionError):
            m.limits = limits
            m.limit(f"what `{file.value.name}` does when it is imported was not followed to its end")
            m.store.set(MODE, mode)
            del m.mode_nodes[modes:]
        finally:
            self._depth -= 1
            self._calls, self._until = calls, until
            self._steps = m.steps - MOST_STEPS + MOST_STEPS_OF_IMPORTS
            m.frames, m.loops, m.calls, m.cut_short, m.graph_unseen = before
            put_back()
            m.steps = self._steps + MOST_STEPS - MOST_STEPS_OF_IMPORTS if self._depth else steps
            m.last_step = last
        file.delta = m.store.delta(mark)


def is_open(value: Value) -> bool:
    """Whether a value, or an alternative of it, is yet to be looked for."""
    return any(type(atom) is Later for atom in atoms(value))


def _outside(later: Later) -> External:
    """What an import gives that is of another package."""
    name = later.module.partition(".")[0] if later.first else later.module
    return External(f"{name}.{later.name}" if later.name else name)
