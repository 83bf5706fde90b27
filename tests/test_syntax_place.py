"""Where to point for a node: at all of an expression, but only at the head of a block."""

import ast

import pytest

from gradvet.syntax.parse import parse
from gradvet.syntax.place import first_row, place
from gradvet.text import Source

PLACES = [
    (ast.Call, "x = f(a,\n  b)", "f(a,\n  b)"),
    (ast.FunctionDef, "@a\n@b\ndef  f(x: int) -> str:\n    return x", "def  f"),
    (ast.AsyncFunctionDef, "async def f(): pass", "async def f"),
    (ast.ClassDef, "class 汉(A):\n    pass", "class 汉"),
    (ast.For, "for x in (\n    y\n):  # c: d\n    pass", "for x in (\n    y\n)"),
    (ast.While, "while x: pass", "while x"),
    (ast.If, "if {'a': 1}[x[1:2]]:\n    pass\nelse:\n    pass", "if {'a': 1}[x[1:2]]"),
    (ast.With, "with a as b, (lambda: c): pass", "with a as b, (lambda: c)"),
    (ast.Try, "try:\n    x\nfinally:\n    y", "try"),
    (ast.ExceptHandler, "try:\n    x\nexcept (A, B) as e:\n    y", "except (A, B) as e"),
    (ast.Return, "def f(): return  1", "return  1"),
    (ast.withitem, "with a as b: pass", "a"),
    (ast.comprehension, "[x for y in z]", "y"),
    (ast.arguments, "def f(): pass", "def f"),
    (ast.arguments, "def f(a: int): pass", "a: int"),
    (ast.Add, "x = a + b", "a + b"),
    (ast.Module, "import a  \nb", "import a"),
]


@pytest.mark.parametrize(("kind", "text", "expected"), PLACES)
def test_every_node_has_a_place(kind: type[ast.AST], text: str, expected: str) -> None:
    """Also those to which `ast` gives no position."""
    module = parse(Source("x.py", f"s = '🔥(:'; {text}" if "\n" not in text and kind is ast.Call else text))
    node = next(node for node in ast.walk(module.tree) if isinstance(node, kind))
    assert expected == module.source[place(module, node)]


def test_a_match_has_a_place() -> None:
    """Its head, not its cases."""
    module = parse(Source("x.py", "match a:\n    case {'b': 1}:\n        pass\n"))
    assert "match a" == module.source[place(module, module.tree.body[0])]


def test_a_statement_begins_with_its_decorators() -> None:
    """However many lines they take."""
    module = parse(Source("x.py", "x\n@a(\n  1\n)\n@b\ndef f(): pass\n"))
    assert [1, 2] == [first_row(node) for node in module.tree.body]
