"""Which names belong to a function, class body or module; found once per node, without running it."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef | ast.Module
_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


@dataclass(slots=True)
class ScopeInfo:
    """The names of one scope. `parameters` are in order of position; `keeps_locals` when a closure may outlive it."""

    names: set[str] = field(default_factory=set)
    outer: set[str] = field(default_factory=set)
    globals: set[str] = field(default_factory=set)
    parameters: list[str] = field(default_factory=list)
    keyword_only: list[str] = field(default_factory=list)
    star: str | None = None
    stars: str | None = None
    is_generator: bool = False
    is_async: bool = False
    keeps_locals: bool = False


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes of a scope, without those of the scopes inside it."""
    stack = list(ast.iter_child_nodes(node)) if not isinstance(node, _INNER) else _body(node)
    while stack:
        child = stack.pop()
        yield child
        if isinstance(child, _INNER):
            stack.extend(getattr(child, "decorator_list", ()))
            continue
        stack.extend(ast.iter_child_nodes(child))


def _body(node: ast.AST) -> list[ast.AST]:
    body = node.body  # type: ignore[attr-defined]
    return list(body) if isinstance(body, list) else [body]


def scope_info(node: Scope) -> ScopeInfo:
    """Find the names of a scope."""
    info = ScopeInfo()
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        args = node.args
        info.parameters = [arg.arg for arg in (*args.posonlyargs, *args.args)]
        info.keyword_only = [arg.arg for arg in args.kwonlyargs]
        info.star = args.vararg.arg if args.vararg else None
        info.stars = args.kwarg.arg if args.kwarg else None
        info.names.update(info.parameters, info.keyword_only, filter(None, (info.star, info.stars)))
        info.is_async = isinstance(node, ast.AsyncFunctionDef)
    for child in _walk(node):
        match child:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                info.names.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                info.names.add(name)
                info.keeps_locals = True
            case ast.Lambda():
                info.keeps_locals = True
            case ast.alias(name=name, asname=asname):
                info.names.add(asname or name.partition(".")[0])
            case ast.ExceptHandler(name=str() as name):
                info.names.add(name)
            case ast.MatchAs(name=str() as name) | ast.MatchStar(name=str() as name):
                info.names.add(name)
            case ast.MatchMapping(rest=str() as name):
                info.names.add(name)
            case ast.Global(names=names):
                info.globals.update(names)
            case ast.Nonlocal(names=names):
                info.outer.update(names)
            case ast.Yield() | ast.YieldFrom():
                info.is_generator = True
    info.names -= info.outer | info.globals
    return info
