"""Whether two trees say the same program."""

import ast


def same_program(old: ast.AST, new: ast.AST) -> bool:
    """Whether two trees are of the same program, wherever they stand and whatever is said of it in docstrings."""
    if type(old) is not type(new):
        return False
    if _is_docstring(old) and _is_docstring(new):
        return True
    for name in old._fields:
        a, b = getattr(old, name, None), getattr(new, name, None)
        if isinstance(a, ast.AST):
            if not isinstance(b, ast.AST) or not same_program(a, b):
                return False
        elif isinstance(a, list):
            if not same_part(a, b):
                return False
        elif type(a) is not type(b) or (a != b and a is not b) or repr(a) != repr(b):
            return False
    return True


def same_part(old: object, new: object) -> bool:
    """Whether two parts of nodes say the same: nodes, lists of them, or words."""
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(same_part, old, new))
    if isinstance(old, ast.AST) and isinstance(new, ast.AST):
        return same_program(old, new)
    return old == new


def _is_docstring(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
