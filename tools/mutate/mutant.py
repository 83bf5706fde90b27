"""One known fault in one file: the text with it, and the rows on which a finding may tell of it."""

import ast
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from gradvet.syntax.parse import Module
from gradvet.text import Edit, apply

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, slots=True)
class Mutant:
    """A file with one fault in it. It has as many rows as before, so that findings can be compared by row."""

    operator: str
    row: int
    text: str
    right: frozenset[int]


@dataclass(frozen=True, slots=True)
class Site:
    """Where an operator would act: the edits, the statement that gets the fault, the rows that speak of it."""

    statement: ast.stmt
    edits: tuple[Edit, ...]
    right: frozenset[int]


def made(operator: str, module: Module, site: Site) -> Mutant | None:
    """The mutant of a site; None when its rows would move or Python could not read it."""
    before = module.source.text
    text = apply(before, site.edits)
    if text.count("\n") != before.count("\n"):
        return None
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return None
    return Mutant(operator, site.statement.lineno, text, site.right)


def key_of(place: str, operator: str, line: str, number: int) -> str:
    """A name for a mutant that stays when lines above it come and go: `number` tells equal lines apart."""
    words = "\n".join((place, operator, line.strip(), str(number)))
    return hashlib.sha256(words.encode()).hexdigest()[:12]


# -- rows that speak of a fault


def rows(node: ast.AST) -> set[int]:
    """The rows of a statement; of a compound one, those of its head."""
    first = getattr(node, "lineno", 0)
    body = getattr(node, "body", None)
    last = getattr(node, "end_lineno", first)
    if isinstance(body, list) and body:
        last = max(first, body[0].lineno - 1)
    return set(range(first, last + 1))


def whole_rows(node: ast.AST) -> set[int]:
    """All rows of a statement, with its blocks."""
    return set(range(getattr(node, "lineno", 0), (getattr(node, "end_lineno", 0) or 0) + 1))


def around(module: Module, node: ast.AST, *kinds: type[ast.AST]) -> ast.AST | None:
    """The nearest node of some kinds that a node stands in."""
    while (above := module.parents.get(node)) is not None:
        node = above
        if isinstance(node, kinds):
            return node
    return None


def function_of(module: Module, node: ast.AST) -> ast.AST:
    """The function that a node stands in, or the module."""
    return around(module, node, ast.FunctionDef, ast.AsyncFunctionDef) or module.tree


def statements(node: ast.AST) -> Iterator[ast.stmt]:
    """All statements in a node, itself left out."""
    return (child for child in ast.walk(node) if isinstance(child, ast.stmt) and child is not node)


@dataclass(frozen=True, slots=True)
class _Said:
    """What the head of a statement mentions, and the functions and classes that it stands in."""

    node: ast.stmt
    names: frozenset[str]
    attributes: frozenset[str]
    calls: frozenset[str]
    homes: tuple[ast.AST, ...]


@lru_cache(maxsize=4)
def _said(module: Module) -> tuple[_Said, ...]:
    found = []
    for statement in statements(module.tree):
        nodes = list(_of_head(statement))
        called = [node.func for node in nodes if isinstance(node, ast.Call)]
        found.append(
            _Said(
                statement,
                frozenset(node.id for node in nodes if isinstance(node, ast.Name)),
                frozenset(node.attr for node in nodes if isinstance(node, ast.Attribute)),
                frozenset(str(getattr(node, "id", "") or getattr(node, "attr", "")) for node in called),
                tuple(_homes(module, statement)),
            )
        )
    return tuple(found)


def _homes(module: Module, node: ast.AST) -> Iterator[ast.AST]:
    while (above := module.parents.get(node)) is not None:
        node = above
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)):
            yield node


def names_bound(node: ast.AST) -> set[str]:
    """What a statement, or those in it, gives a value: names, and attributes or items by the name they end in."""
    found: set[str] = set()
    for child in ast.walk(node):
        if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
            found.add(child.id)
        elif isinstance(child, ast.Attribute) and isinstance(child.ctx, ast.Store):
            found.add(child.attr)
        elif isinstance(child, ast.Subscript) and isinstance(child.ctx, ast.Store):
            found |= _root(child)
        elif isinstance(child, ast.Call) and isinstance(child.func, ast.Attribute) and _puts(child.func.attr):
            found |= _root(child.func.value)
    return found


def _puts(method: str) -> bool:
    return method in ("append", "add", "extend", "update", "put", "insert") or method.endswith("_")


def _root(node: ast.expr) -> set[str]:
    while isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Name):
        return {node.id}
    return {node.attr} if isinstance(node, ast.Attribute) else set()


def follow(module: Module, node: ast.AST) -> frozenset[int]:
    """The rows of a statement or block, and of those that mention what it gives.

    What a function gives back is followed to the calls of it in the same file, and so on through their functions.
    """
    found: set[int] = set()
    queue, done = [node], set[ast.AST]()
    for one in queue:
        home = function_of(module, one)
        found |= (whole_rows(one) if one is node else rows(one)) | _mentions(module, home, names_bound(one))
        if _returns(home, one) and home not in done:
            done.add(home)
            queue += [said.node for said in _said(module) if getattr(home, "name", "") in said.calls]
    return frozenset(found)


def _mentions(module: Module, home: ast.AST, names: set[str]) -> set[int]:
    """The rows in which a function mentions names, or its class attributes of these names."""
    own = around(module, home, ast.ClassDef) or home
    found: set[int] = set()
    for said in _said(module):
        if own in said.homes and (names & said.attributes or (home in said.homes and names & said.names)):
            found |= rows(said.node)
    return found


def _of_head(statement: ast.stmt) -> Iterator[ast.AST]:
    """The nodes of a statement, without those of the statements in it."""
    stack: list[ast.AST] = [statement]
    while stack:
        node = stack.pop()
        yield node
        stack += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt)]


def _returns(home: ast.AST, node: ast.AST) -> bool:
    """Whether what a statement gives may be given back by its function."""
    names = names_bound(node)
    inside = set(ast.walk(node))
    for statement in (node, *statements(home)):
        if isinstance(statement, ast.Return) and statement.value is not None:
            mentioned = {n.id for n in ast.walk(statement.value) if isinstance(n, ast.Name)}
            if statement in inside or names & mentioned:
                return True
    return False


def steps_of(module: Module, node: ast.AST) -> frozenset[int]:
    """The rows of a function's training steps, and of the loops around them; a step may be divided among functions.

    So those of functions that it calls by name, and of those that call it, are among them.

    Unscaling and clipping are parts of a step: where backward and step have changed places, they stand on the wrong side.
    """
    home = function_of(module, node)
    called = {name for said in _said(module) if home in said.homes for name in said.calls & said.names}
    callers = {
        said.homes[0]
        for said in _said(module)
        if isinstance(said.homes[0], _FUNCTIONS) and getattr(home, "name", "") in said.calls
    }
    found = set(rows(node))
    for said in _said(module):
        own = home in said.homes or not callers.isdisjoint(said.homes)
        helps = isinstance(said.homes[0], _FUNCTIONS) and said.homes[0].name in called
        if (own or helps) and any(
            name in ("step", "zero_grad", "unscale_") or "backward" in name or name.startswith("clip_grad")
            for name in said.attributes | said.calls
        ):
            found |= rows(said.node)
            loop = around(module, said.node, ast.For, ast.While)
            if loop is not None and home in _homes(module, loop):
                found |= {getattr(loop, "lineno", 0)}
    return frozenset(found)
