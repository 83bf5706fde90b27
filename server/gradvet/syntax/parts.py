"""The parts of a module that have nothing to do with one another: each runs as if it were the whole."""

import ast
import re
from collections.abc import Iterable, Iterator, Sequence

from gradvet.syntax.parse import Module, lines
from gradvet.syntax.tree import walk

LEAST_LINES = 100
"""Of one part: smaller ones are not worth a run of their own."""
MOST_PARTS = 48
_ANY_NAME = {
    word: re.compile(rf"{word}[ \t]*\(")
    for word in ("globals", "locals", "vars", "exec", "eval", "__import__")
} | {"sys.modules": re.compile(r"sys\.modules")}
_LONGER = re.compile(r"[\w.]")
"""What reaches names without saying them, unless a longer name ends in it: `model.eval()`."""


class _Between(dict[int, str]):
    """Each character that is in no name, as a space; found out when it first comes."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        self[code] = character if character == "_" or character.isalnum() else " "
        return self[code]


_BETWEEN_WORDS = _Between()
_LONG = (ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith)
_DEFINITION = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)

Statements = tuple[ast.stmt, ...]


def parts(module: Module) -> tuple[Statements, ...]:
    """Divide the statements of a module, those that all parts need among each; one part where it hangs together.

    Two statements hang together when one says a name that the other defines: a function, a class, or anything
    that may be changed later. What may reach a name without saying it keeps all together.
    """
    body = module.tree.body
    whole = (tuple(body),)
    if module.lines < 2 * LEAST_LINES or _reaches_any_name(module.words):
        return whole
    if any(isinstance(statement, _LONG) for statement in body):
        return whole
    of_all = {id(statement) for statement in body if _is_for_all(statement)}
    left = [statement for statement in body if id(statement) not in of_all]
    groups = _bundles(_connected(module, left), max(LEAST_LINES, module.lines // MOST_PARTS))
    if len(groups) < 2:  # noqa: PLR2004
        return whole
    return tuple(
        tuple(statement for statement in body if id(statement) in of_all or id(statement) in group)
        for group in groups
    )


def _reaches_any_name(text: str) -> bool:
    """Whether a text may use a name that it does not say."""
    return any(
        _LONGER.match(text, one.start() - 1) is None or one.start() == 0
        for word, found in _ANY_NAME.items()
        if word in text  # which is quick, and mostly all
        for one in found.finditer(text)
    )


def _is_for_all(statement: ast.stmt) -> bool:
    """Whether a statement gives names that nobody changes: imports and constants, perhaps under a condition."""
    match statement:
        case ast.Import() | ast.ImportFrom() | ast.Pass() | ast.Expr(value=ast.Constant()):
            return True
        case ast.Assign(targets=[ast.Name(id="__all__")]):
            return True
        case ast.Assign(targets=[ast.Name()], value=value) | ast.AnnAssign(target=ast.Name(), value=value):
            return value is None or _is_constant(value)
        case ast.If(body=body, orelse=other):
            return all(map(_is_for_all, (*body, *other)))
        case ast.Try(body=body, handlers=handlers, orelse=other, finalbody=last):
            inner = (part for handler in handlers for part in handler.body)
            return all(map(_is_for_all, (*body, *inner, *other, *last)))
    return False


def _is_constant(value: ast.expr) -> bool:
    """Whether a value can never change; what is told the module's own name, a logger, keeps no tensor."""
    match value:
        case ast.Constant():
            return True
        case ast.Tuple(elts=elements):
            return all(map(_is_constant, elements))
        case ast.UnaryOp(operand=operand):
            return _is_constant(operand)
        case ast.BinOp(left=left, right=right):
            return _is_constant(left) and _is_constant(right)
        case ast.Call(args=[ast.Name(id="__name__")], keywords=[]):
            return True
    return False


def _connected(module: Module, statements: Sequence[ast.stmt]) -> list[list[ast.stmt]]:
    """The statements in groups that say each other's names, in the order of their first ones."""
    defining: dict[str, list[int]] = {}
    for at, statement in enumerate(statements):
        for name in _defined(statement):
            defining.setdefault(name, []).append(at)
    group_of = list(range(len(statements)))

    def group(at: int) -> int:
        while group_of[at] != at:
            group_of[at] = at = group_of[group_of[at]]
        return at

    for at, statement in enumerate(statements):
        for name in said(module, statement).intersection(defining):
            for other in defining[name]:
                first, second = sorted((group(at), group(other)))
                group_of[second] = first
    found: dict[int, list[ast.stmt]] = {}
    for at, statement in enumerate(statements):
        found.setdefault(group(at), []).append(statement)
    return list(found.values())


def said(module: Module, statement: ast.stmt) -> frozenset[str]:
    """All names in the text of a statement, those in its strings and comments among them."""
    span = module.source.span(statement)
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    start = min([span.start, *(module.source.span(one).start for one in decorators)])
    text = module.healed[start : span.end]
    if module.former:
        inside = [one for one in walk(statement) if one in module.former]
        text = " ".join((text, *map(ast.unparse, inside)))
    return frozenset(text.translate(_BETWEEN_WORDS).split())


def _defined(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement of a module defines there."""
    if isinstance(statement, _DEFINITION):
        yield statement.name
        return
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, _DEFINITION):
            yield node.name
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).partition(".")[0]


def _bundles(groups: Iterable[list[ast.stmt]], least: int) -> list[set[int]]:
    """Groups put together until each has so many lines, by the identities of their statements."""
    bundles: list[set[int]] = []
    size = least
    for group in groups:
        if size >= least:
            bundles.append(set())
            size = 0
        bundles[-1].update(map(id, group))
        size += sum(map(lines, group))
    if size < least and len(bundles) > 1:
        last = bundles.pop()
        bundles[-1] |= last
    return bundles
