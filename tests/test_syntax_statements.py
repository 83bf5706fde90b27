"""Statements that are added beside others, or moved: whole lines, with their comments, and nothing else."""

import ast

import pytest

from gradvet.syntax.parse import Module, parse
from gradvet.syntax.statements import insert, move
from gradvet.text import Source, apply


def parsed(text: str) -> Module:
    """A text as a module."""
    return parse(Source("test.py", text))


def call(module: Module, name: str) -> ast.Call:
    """The one call of a function of this name."""
    (found,) = [
        node
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
    ]
    return found


@pytest.mark.parametrize(
    ("text", "after", "made"),
    [
        ("a()\nb()\n", False, "a()\nnew()\nb()\n"),
        ("a()\nb()\n", True, "a()\nb()\nnew()\n"),
        ("a()\nb()", True, "a()\nb()\nnew()\n"),
        ("if x:\n    b()  # why\n    c()\n", True, "if x:\n    b()  # why\n    new()\n    c()\n"),
        ("if x:\n\tb(\n\t\t1,\n\t)\n", True, "if x:\n\tb(\n\t\t1,\n\t)\n\tnew()\n"),
        ("a()\r\nb()\r\n", False, "a()\r\nnew()\r\nb()\r\n"),
        ("a(); b()\n", False, None),
        ("if x: b()\n", True, None),
        ("é = '👍'\nb()\n", False, "é = '👍'\nnew()\nb()\n"),
    ],
)
def test_a_statement_is_added(text: str, after: bool, made: str | None) -> None:
    """It gets the margin and the line end of the one beside it; where that shares its line, nothing is done."""
    module = parsed(text)
    edits = insert(module, call(module, "b"), "new()", after=after)
    assert (apply(text, edits) if edits else None) == made


@pytest.mark.parametrize(
    ("text", "after", "made"),
    [
        ("a()\nm()  # moves\nb()\n", True, "a()\nb()\nm()  # moves\n"),
        ("b()\na()\nm()\n", False, "m()\nb()\na()\n"),
        ("b()\na()\nm()", False, "m()\nb()\na()\n"),
        (
            "for i in x:\n    m(\n        i,\n    )\n    b()\n",
            True,
            "for i in x:\n    b()\n    m(\n        i,\n    )\n",
        ),
        ("m()\nb()", True, "b()\nm()\n"),
        ("if x:\n    m()\nb()\n", False, None),
        ("if x:\n    m()\nelse:\n    b()\n", False, None),
        ("m(b())\n", False, None),
        ("m(); a()\nb()\n", True, None),
    ],
)
def test_a_statement_is_moved(text: str, after: bool, made: str | None) -> None:
    """Only inside one block, and only when both have their lines for themselves."""
    module = parsed(text)
    edits = move(module, call(module, "m"), call(module, "b"), after=after)
    assert (apply(text, edits) if edits else None) == made
