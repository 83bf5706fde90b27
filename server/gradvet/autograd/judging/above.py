"""What a node stands in: its statement, its function."""

import ast

from gradvet.syntax.parents import Parents

DEFINED = (ast.FunctionDef, ast.AsyncFunctionDef)
ANY_FUNCTION = (*DEFINED, ast.Lambda)


def statement_of(node: ast.AST, parents: Parents) -> ast.AST:
    """The innermost statement that holds a node, or is it; where there is none, the outermost node."""
    while not isinstance(node, ast.stmt) and node in parents:
        node = parents[node]
    return node


def function_of(
    node: ast.AST, parents: Parents, kinds: tuple[type[ast.AST], ...] = DEFINED
) -> ast.AST | None:
    """The innermost function of these kinds that a node stands in; None outside of all."""
    while node in parents:
        node = parents[node]
        if isinstance(node, kinds):
            return node
    return None
