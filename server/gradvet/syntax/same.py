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
            if not isinstance(b, list) or len(a) != len(b) or not all(map(_same_part, a, b)):
                return False
        elif type(a) is not type(b) or (a != b and a is not b) or repr(a) != repr(b):
            return False
    return True


def _same_part(a: object, b: object) -> bool:
    return same_program(a, b) if isinstance(a, ast.AST) and isinstance(b, ast.AST) else a == b


def _is_docstring(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
