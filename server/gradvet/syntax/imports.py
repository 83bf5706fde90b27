"""How a file spells a qualified name, and the import that it needs for that."""

import ast
from collections.abc import Iterator, Sequence

from gradvet.syntax.parse import Module
from gradvet.syntax.place import first_row
from gradvet.text import Edit, Span


def torch_name(module: Module, qualified: str) -> tuple[str, list[Edit]]:
    """How this file spells `torch.no_grad`, and the edits that make the spelling work.

    `th.no_grad` after `import torch as th`, `no_grad` after `from torch import no_grad`; where no
    import leads there, the qualified name itself and an `import torch`.
    """
    leading = [
        (len(imported), name + qualified[len(imported) :])
        for imported, name in _imported(module.tree.body)
        if f"{qualified}.".startswith(f"{imported}.")
    ]
    taken = _bound_otherwise(module.tree) if leading else set()
    usable = [(length, spelling) for length, spelling in leading if spelling.partition(".")[0] not in taken]
    if usable:
        return max(usable, key=lambda pair: pair[0])[1], []
    return qualified, add_import(module, qualified.partition(".")[0])


def add_import(module: Module, name: str) -> list[Edit]:
    """Add `import name` before the first statement that may need it; nothing when it is there."""
    if (name, name) in _imported(module.tree.body):
        return []
    source = module.source
    newline = source.line_end
    body = module.tree.body
    index = 0
    while index < len(body) and (_is_docstring(body, index) or _is_future(body[index])):
        index += 1
    if index == len(body):
        end = source.span(body[-1]).end if body else len(source.text)
        at = next((start for start in source.line_starts if start >= end), len(source.text))
        lead = newline if at > 0 and source.text[at - 1] not in "\r\n" else ""
        return [Edit(Span(at, at), f"{lead}import {name}{newline}")]
    row = first_row(body[index])
    line = source.line_starts[row - 1]
    start = len(module.bare) - len(module.bare[line:].lstrip())
    if row == body[index].lineno and start < (own := source.span(body[index]).start):
        return [Edit(Span(own, own), f"import {name}; ")]  # behind another statement
    gap = "" if isinstance(body[index], (ast.Import, ast.ImportFrom)) else newline
    return [Edit(Span(start, start), f"import {name}{newline}{gap}")]


def _imported(body: Sequence[ast.stmt]) -> Iterator[tuple[str, str]]:
    """What the imports of a module bind: the qualified name, and the name that stands for it."""
    for statement in body:
        match statement:
            case ast.Import(names=names):
                for alias in names:
                    top = alias.name.partition(".")[0]
                    yield (alias.name, alias.asname) if alias.asname else (top, top)
            case ast.ImportFrom(module=str(source), names=names, level=0):
                yield from ((f"{source}.{alias.name}", alias.asname or alias.name) for alias in names)
            case ast.If(
                test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING"), orelse=otherwise
            ):
                yield from _imported(otherwise)
            case ast.If(body=inside, orelse=otherwise) | ast.Try(body=inside, orelse=otherwise):
                yield from _imported([*inside, *otherwise])
            case ast.With(body=inside):
                yield from _imported(inside)


def _bound_otherwise(tree: ast.AST) -> set[str]:
    """The names that something else than an import binds, anywhere in the file."""
    bound = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                bound.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                bound.add(name)
    return bound


def _is_docstring(body: Sequence[ast.stmt], index: int) -> bool:
    return index == 0 and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)


def _is_future(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
