"""Which names belong to a function, class body or module; found once per node, without running it."""

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gradvet.syntax.tree import Kept, inner

Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef | ast.Module
_INNER = frozenset({ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda})


@dataclass(slots=True)
class ScopeInfo:
    """The names of one scope.

    `parameters` are in order of position; `keeps_locals` when a closure may outlive it; `loads` and
    `attributes` are the names and attributes that the scope itself mentions, `given` the attributes that it gives
    to its first parameter.
    """

    names: set[str] = field(default_factory=set)
    outer: set[str] = field(default_factory=set)
    globals: set[str] = field(default_factory=set)
    parameters: list[str] = field(default_factory=list)
    keyword_only: list[str] = field(default_factory=list)
    star: str | None = None
    stars: str | None = None
    is_generator: bool = False
    loads: set[str] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)
    given: set[str] = field(default_factory=set)
    keeps_locals: bool = False


_FOUND = Kept[ScopeInfo]("scope info")
"""Trees of modules that are only imported live longer than a run, and so does what was found in them."""


def scope_info(node: Scope) -> ScopeInfo:
    """The names of a scope. Those of a module are for one run alone: it adds what a star imports."""
    if isinstance(node, ast.Module):
        return _names_of(node)
    info = _FOUND.at(node)
    return _FOUND.keep(node, _names_of(node)) if info is None else info


_COMPREHENDED = Kept[tuple[frozenset[str], bool]]("comprehended")


def comprehended(node: ast.AST, generators: list[ast.comprehension]) -> tuple[frozenset[str], bool]:
    """The names that a comprehension binds, and whether a function made in it may outlive it."""
    known = _COMPREHENDED.at(node)
    if known is None:
        targets = [part for generator in generators for part in ast.walk(generator.target)]
        names = frozenset(part.id for part in targets if isinstance(part, ast.Name))
        keeps_locals = any(isinstance(part, ast.Lambda) for part in ast.walk(node))
        known = _COMPREHENDED.keep(node, (names, keeps_locals))
    return known


_IN_ORDER = Kept[bool]("yields in order")
_LEAVING = (ast.Break, ast.Continue, ast.Return, ast.Raise)
_YIELDS = (ast.Yield, ast.YieldFrom)


def yields_in_order(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a generator comes by each of its `yield`s, however often the loops around are run."""
    known = _IN_ORDER.at(node)
    return _IN_ORDER.keep(node, _in_order(node.body)) if known is None else known


def _in_order(body: list[ast.stmt]) -> bool:
    for statement in body:
        match statement:
            case ast.For(body=inner, orelse=[]) | ast.With(body=inner):
                if not _in_order(inner):
                    return False
            case ast.Expr(value) | ast.Assign(value=value) if isinstance(value, _YIELDS):
                continue
            case ast.FunctionDef() | ast.ClassDef():
                continue
            case _:
                if any(isinstance(part, (*_LEAVING, *_YIELDS)) for part in ast.walk(statement)):
                    return False
    return True


def _names_of(node: Scope) -> ScopeInfo:
    """Find the names of a scope, in one walk that does not enter the scopes inside it."""
    info = ScopeInfo()
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        args = node.args
        info.parameters = [arg.arg for arg in (*args.posonlyargs, *args.args)]
        info.keyword_only = [arg.arg for arg in args.kwonlyargs]
        info.star = args.vararg.arg if args.vararg else None
        info.stars = args.kwarg.arg if args.kwarg else None
        info.names.update(info.parameters, info.keyword_only, filter(None, (info.star, info.stars)))
    body = node.body
    stack: list[Any] = list(body) if isinstance(body, list) else [body]
    # Nearly all nodes are of the first four kinds, and what stands in them is put down here without asking.
    loads, attributes, names = info.loads, info.attributes, info.names
    first = info.parameters[0] if info.parameters else ""
    while stack:
        child: Any = stack.pop()
        kind = type(child)
        if kind is ast.Name:
            (loads if type(child.ctx) is ast.Load else names).add(child.id)
            continue
        if kind is ast.Constant:
            continue
        if kind is ast.Attribute:
            attributes.add(child.attr)
            held = child.value
            stack.append(held)
            if type(child.ctx) is ast.Store and type(held) is ast.Name and held.id == first:
                info.given.add(child.attr)
            continue
        if kind is ast.Call:
            stack.append(child.func)
            stack += child.args
            for keyword in child.keywords:
                stack.append(keyword.value)
            continue
        look = _LOOKS.get(kind)
        if look is not None:
            look(info, child)
        if kind in _LEAVES:
            continue
        if kind in _INNER:
            stack.extend(getattr(child, "decorator_list", ()))
            continue
        stack += inner(child)
    info.names -= info.outer | info.globals
    return info


def _definition(info: ScopeInfo, node: Any) -> None:
    info.names.add(node.name)
    info.keeps_locals = True


def _closure(info: ScopeInfo, node: Any) -> None:
    info.keeps_locals = True


def _alias(info: ScopeInfo, node: Any) -> None:
    info.names.add(node.asname or node.name.partition(".")[0])


def _named(info: ScopeInfo, node: Any) -> None:
    if node.name:
        info.names.add(node.name)


def _rest(info: ScopeInfo, node: Any) -> None:
    if node.rest:
        info.names.add(node.rest)


def _global(info: ScopeInfo, node: Any) -> None:
    info.globals.update(node.names)


def _nonlocal(info: ScopeInfo, node: Any) -> None:
    info.outer.update(node.names)


def _yields(info: ScopeInfo, node: Any) -> None:
    info.is_generator = True


_LOOKS: dict[type, Callable[[ScopeInfo, Any], None]] = {
    ast.FunctionDef: _definition,
    ast.AsyncFunctionDef: _definition,
    ast.ClassDef: _definition,
    ast.Lambda: _closure,
    ast.alias: _alias,
    ast.ExceptHandler: _named,
    ast.MatchAs: _named,
    ast.MatchStar: _named,
    ast.MatchMapping: _rest,
    ast.Global: _global,
    ast.Nonlocal: _nonlocal,
    ast.Yield: _yields,
    ast.YieldFrom: _yields,
}
_LEAVES = frozenset({ast.alias, ast.Global, ast.Nonlocal, ast.Pass})
