"""What an expression such as `F.relu` or `no_grad` names, going by the imports of a module."""

import ast
from collections.abc import Mapping

from gradvet.syntax.tree import Kept, statements


def imported_names(tree: ast.Module) -> Mapping[str, str]:
    """What each name that an import binds, anywhere in a module, stands for: `nn` for `torch.nn`."""
    known = _IMPORTED.at(tree)
    return _IMPORTED.keep(tree, _imported_in(tree)) if known is None else known


_IMPORTED = Kept[Mapping[str, str]]("imported names")


def _imported_in(tree: ast.Module) -> Mapping[str, str]:
    names: dict[str, str] = {}
    for node in statements(tree):
        match node:
            case ast.Import(names=aliases):
                for alias in aliases:
                    top = alias.name.partition(".")[0]
                    names[alias.asname or top] = alias.name if alias.asname else top
            case ast.ImportFrom(module=str(module), names=aliases, level=0):
                names |= {alias.asname or alias.name: f"{module}.{alias.name}" for alias in aliases}
    return names


def qualified(node: ast.AST, names: Mapping[str, str]) -> str:
    """The whole name of a dotted expression; empty when no import leads there."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in names:
        return ""
    return ".".join((names[node.id], *reversed(parts)))
