"""Moving statements keeps their comments, strings and layout."""

import ast
import copy
import random
import subprocess
import sys
import sysconfig
from itertools import pairwise
from pathlib import Path

import pytest

from gradvet.syntax import rewrite
from gradvet.syntax.lexical import lexemes
from gradvet.syntax.parse import Module, parse
from gradvet.text import Edit, Source, apply

HEADER = "with torch.no_grad():"


def wrapped(text: str) -> str:
    """The text with every statement that assigns to `y` put under the header; consecutive ones together."""
    module = parse(Source("x.py", text))
    assert not module.problems
    chosen = [
        node
        for node in ast.walk(module.tree)
        if isinstance(node, ast.stmt) and not hasattr(node, "body") and "y = " in module.text(node)[:4]
    ]
    return changed(module, rewrite.wrap_in_with(module, chosen, HEADER))


def changed(module: Module, edits: list[Edit]) -> str:
    """The text after some edits, none of which stands where another does; it must parse."""
    for before, after in pairwise(edits):
        assert before.span.end < after.span.start
    text = apply(module.source.text, edits)
    ast.parse(Source("x.py", text).readable)
    return text


WRAP = {
    "a statement of the module": ("y = f(x)\n", "with torch.no_grad():\n    y = f(x)\n"),
    "the last line, without an end": ("a = 1\ny = f(x)", "a = 1\nwith torch.no_grad():\n    y = f(x)"),
    "in a function": (
        "def g(x):\n    a = 1\n    # what\n    y = f(x)  # why\n    return y\n",
        "def g(x):\n    a = 1\n    # what\n    with torch.no_grad():\n        y = f(x)  # why\n    return y\n",
    ),
    "several": (
        "if a:\n    y = f(x)\n    # between\n\n    y = g(y)\n    b = 1\n",
        "if a:\n    with torch.no_grad():\n        y = f(x)\n        # between\n\n        y = g(y)\n    b = 1\n",
    ),
    "a string over several lines": (
        'def g():\n    y = f("""a\n  b\n    # c\n"""\n          , 1)\n',
        'def g():\n    with torch.no_grad():\n        y = f("""a\n  b\n    # c\n"""\n              , 1)\n',
    ),
    "a bracket over several lines": (
        "for x in z:\n    y = f(\n        x,  # one\n# two\n        1,\n    )\n",
        "for x in z:\n    with torch.no_grad():\n        y = f(\n            x,  # one\n# two\n            1,\n        )\n",
    ),
    "tabs": (
        "class A:\n\tdef g(self):\n\t\ty = f(self,\n\t\t\t1)\n\t\treturn y\n",
        "class A:\n\tdef g(self):\n\t\twith torch.no_grad():\n\t\t\ty = f(self,\n\t\t\t\t1)\n\t\treturn y\n",
    ),
    "two spaces": ("if a:\n  y = 1\n", "if a:\n  with torch.no_grad():\n    y = 1\n"),
    "two spaces elsewhere": ("if a:\n  b\ny = 1\n", "if a:\n  b\nwith torch.no_grad():\n  y = 1\n"),
    "CRLF": (
        "if a:\r\n    y = f(\r\n        1)\r\n    b\r\n",
        "if a:\r\n    with torch.no_grad():\r\n        y = f(\r\n            1)\r\n    b\r\n",
    ),
    "CR": ("if a:\r    y = 1\r", "if a:\r    with torch.no_grad():\r        y = 1\r"),
    "a byte order mark": ("\ufeffy = 1\r\n", "\ufeffwith torch.no_grad():\r\n    y = 1\r\n"),
    "wide characters": (
        "if a:\n    y = f('汉字🔥', '''🔥\n汉''')  # 🔥\n",
        "if a:\n    with torch.no_grad():\n        y = f('汉字🔥', '''🔥\n汉''')  # 🔥\n",
    ),
    "before a semicolon": ("y = 1; a = 2  # c\n", "with torch.no_grad():\n    y = 1\na = 2  # c\n"),
    "behind a semicolon": ("a = 2; y = 1  # c\n", "a = 2\nwith torch.no_grad():\n    y = 1  # c\n"),
    "between semicolons": (
        "if a:\n    b; y = 1; c;\n",
        "if a:\n    b\n    with torch.no_grad():\n        y = 1\n    c;\n",
    ),
    "behind a string over several lines": (
        "a = '''\nb'''; y = 1\n",
        "a = '''\nb'''\nwith torch.no_grad():\n    y = 1\n",
    ),
    "CRLF with a semicolon": ("a; y = 1\r\n", "a\r\nwith torch.no_grad():\r\n    y = 1\r\n"),
    "behind a colon": (
        "if a: y = 1  # c\nelse: b\n",
        "if a:\n    with torch.no_grad():\n        y = 1  # c\nelse: b\n",
    ),
    "behind a colon and a semicolon": (
        "def g():\n  for x in z: b; y = 1\n",
        "def g():\n  for x in z:\n    b\n    with torch.no_grad():\n      y = 1\n",
    ),
    "behind an else": (
        "if a: b\nelif c: b\nelse: y = 1\n",
        "if a: b\nelif c: b\nelse:\n    with torch.no_grad():\n        y = 1\n",
    ),
    "behind an elif": (
        "def g():\n    if a:\n        b\n    elif c: y = 1\n    return b\n",
        "def g():\n    if a:\n        b\n    elif c:\n        with torch.no_grad():\n            y = 1\n    return b\n",
    ),
    "behind an except": (
        "try: b\nexcept E: y = 1\nfinally: b\n",
        "try: b\nexcept E:\n    with torch.no_grad():\n        y = 1\nfinally: b\n",
    ),
    "in a finally": (
        "try:\n    b\nfinally:\n    # c\n    y = 1\n",
        "try:\n    b\nfinally:\n    # c\n    with torch.no_grad():\n        y = 1\n",
    ),
    "behind a case": (
        "match a:\n    case 1: y = 1\n    case _: b\n",
        "match a:\n    case 1:\n        with torch.no_grad():\n            y = 1\n    case _: b\n",
    ),
    "in an async with": (
        "async def g():\n    async with a as b:\n        y = await f(b)\n",
        "async def g():\n    async with a as b:\n        with torch.no_grad():\n            y = await f(b)\n",
    ),
    "in a nested function": (
        "def g():\n    @h\n    def k():\n        y = 1\n        return y\n    return k\n",
        "def g():\n    @h\n    def k():\n        with torch.no_grad():\n            y = 1\n        return y\n    return k\n",
    ),
    "a backslash": (
        "if a:\n    y = 1 + \\\n        2\n    b\n",
        "if a:\n    with torch.no_grad():\n        y = 1 + \\\n        2\n    b\n",
    ),
}


@pytest.mark.parametrize("case", WRAP)
def test_statements_go_under_a_header(case: str) -> None:
    """Whatever the layout around them."""
    text, expected = WRAP[case]
    assert expected == wrapped(text)


def test_a_block_goes_under_a_header_whole() -> None:
    """With its decorators, comments, and what hangs below."""
    module = parse(
        Source(
            "x.py", "def g():\n    @h\n    # c\n    def k():\n        return 1  # d\n    # e\n    return k\n"
        )
    )
    (inner,) = (
        node for node in ast.walk(module.tree) if isinstance(node, ast.FunctionDef) and node.name == "k"
    )
    expected = (
        "def g():\n    with torch.no_grad():\n        @h\n        # c\n        def k():\n            return 1  # d\n"
        "    # e\n    return k\n"
    )
    assert expected == changed(module, rewrite.wrap_in_with(module, inner, HEADER))


def test_a_statement_with_a_broken_part_is_left_alone() -> None:
    """The tree knows nothing of what does not parse, so nothing may be moved there."""
    module = parse(Source("x.py", "for x in y:\n    a = (\n    b = 1\nc = 2\n"))
    loop, last = module.tree.body
    assert [] == rewrite.wrap_in_with(module, loop, HEADER)
    assert [] != rewrite.wrap_in_with(module, last, HEADER)


def under_header(tree: ast.Module, statement: ast.stmt) -> ast.AST:
    """A copy of the tree with the statement in a `with`."""
    (header,) = ast.parse(f"{HEADER} pass").body
    assert isinstance(header, ast.With)
    header.body = [copy.deepcopy(statement)]
    return copy.deepcopy(tree, {id(statement): header})


STDLIB = Path(sysconfig.get_path("stdlib"))
FILES = [
    path
    for name in ("asyncio", "email", "json", "unittest", ".")
    for path in sorted((STDLIB / name).glob("*.py"))
    if 5_000 < path.stat().st_size < 30_000
]


def test_wrapping_changes_nothing_else_anywhere() -> None:
    """For random statements of real files, the tree is the old one but for the header; every comment is there."""
    rng = random.Random(40)  # noqa: S311  not for secrets
    done = 0
    for path in rng.sample(FILES, 20):
        text = path.read_text(encoding="utf-8")
        module = parse(Source(str(path), text))
        statements = [
            node
            for node in ast.walk(module.tree)
            if isinstance(node, ast.stmt)
            and not isinstance(module.parents[node], (ast.Module, ast.ClassDef))
            and not module.bare.startswith("elif", module.source.span(node).start)
        ]
        for statement in rng.sample(statements, min(8, len(statements))):
            new = changed(module, rewrite.wrap_in_with(module, statement, HEADER))
            assert ast.dump(under_header(module.tree, statement)) == ast.dump(ast.parse(new)), module.text(
                statement
            )
            assert said(text) == said(new)
            done += 1
    assert done > 120


def said(text: str) -> list[str]:
    """The comments and strings of a text, in order."""
    return [text[lexeme.span.start : lexeme.span.end] for lexeme in lexemes(text)]


DECORATE = [
    ("def f(): pass\n", "@torch.no_grad()\ndef f(): pass\n"),
    (
        "class A:\n    @property\n    # c\n    def f(self):\n        return 1\n",
        "class A:\n    @property\n    @torch.no_grad()\n    # c\n    def f(self):\n        return 1\n",
    ),
    (
        "class A:\r\n\t@staticmethod\r\n\tasync def f(\r\n\t\ta,\r\n\t):\r\n\t\tpass\r\n",
        "class A:\r\n\t@staticmethod\r\n\t@torch.no_grad()\r\n\tasync def f(\r\n\t\ta,\r\n\t):\r\n\t\tpass\r\n",
    ),
    ("# c\ndef f():\n  '''🔥\n'''", "# c\n@torch.no_grad()\ndef f():\n  '''🔥\n'''"),
]


@pytest.mark.parametrize(("text", "expected"), DECORATE)
def test_a_decorator_goes_nearest_to_the_function(text: str, expected: str) -> None:
    """A property or a static method cannot be decorated any more."""
    module = parse(Source("x.py", text))
    (node,) = (
        node for node in ast.walk(module.tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    )
    assert expected == changed(module, rewrite.add_decorator(module, node, "@torch.no_grad()"))


IMPORT = {
    "before other imports": ("import os\n", "import torch\nimport os\n"),
    "before code": ("x = 1\n", "import torch\n\nx = 1\n"),
    "into nothing": ("", "import torch\n"),
    "under comments": (
        "#!/usr/bin/python\n# License\n\nimport os\n",
        "#!/usr/bin/python\n# License\n\nimport torch\nimport os\n",
    ),
    "under only comments": ("# License", "# License\nimport torch\n"),
    "under the docstring": ('"""Doc."""\n\nimport os\n', '"""Doc."""\n\nimport torch\nimport os\n'),
    "under only a docstring": ('"""Doc\nmore."""  # c', '"""Doc\nmore."""  # c\nimport torch\n'),
    "under the future": (
        '"""Doc."""\nfrom __future__ import annotations\nfrom __future__ import division\nimport os\n',
        '"""Doc."""\nfrom __future__ import annotations\nfrom __future__ import division\nimport torch\nimport os\n',
    ),
    "behind a semicolon": ('"""Doc."""; x = 1\n', '"""Doc."""; import torch; x = 1\n'),
    "before a decorator": ("@a\ndef f(): pass\n", "import torch\n\n@a\ndef f(): pass\n"),
    "CRLF": ("import os\r\n", "import torch\r\nimport os\r\n"),
    "a byte order mark": ("\ufeffimport os\n", "\ufeffimport torch\nimport os\n"),
    "there already": ("import os\nimport torch\n", None),
    "there with another": ("import os, torch as t, torch\n", None),
    "there as a package": ("import torch.nn\n", None),
    "there if it can be": ("try:\n    import torch\nexcept ImportError:\n    torch = None\n", None),
    "under another name": ("import torch as th\n", "import torch\nimport torch as th\n"),
    "only for types": (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch\n",
        "import torch\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch\n",
    ),
    "only in a function": ("def f():\n    import torch\n", "import torch\n\ndef f():\n    import torch\n"),
}


@pytest.mark.parametrize("case", IMPORT)
def test_an_import_is_added_once(case: str) -> None:
    """At the top, but after what must stand before it."""
    text, expected = IMPORT[case]
    module = parse(Source("x.py", text))
    assert (text if expected is None else expected) == changed(module, rewrite.add_import(module, "torch"))


NAMES = [
    ("import torch\n", "torch.no_grad", "torch.no_grad"),
    ("import torch as th\n", "torch.no_grad", "th.no_grad"),
    ("import torch\nfrom torch import no_grad\n", "torch.no_grad", "no_grad"),
    ("from torch import no_grad as quiet\n", "torch.no_grad", "quiet"),
    ("import torch, torch.nn as nn\n", "torch.nn.Linear", "nn.Linear"),
    ("import torch\nfrom torch.nn import functional as F\n", "torch.nn.functional.relu", "F.relu"),
    ("import torch.nn.functional as F\nimport torch\n", "torch.no_grad", "torch.no_grad"),
    ("import torch.utils.data\n", "torch.no_grad", "torch.no_grad"),
    ("import torchvision, torch\n", "torch.no_grad", "torch.no_grad"),
    ("import torch\nfrom torch import nn\ndef f(nn): pass\n", "torch.nn.Linear", "torch.nn.Linear"),
]


@pytest.mark.parametrize(("text", "qualified", "spelling"), NAMES)
def test_a_name_is_spelled_as_the_file_does(text: str, qualified: str, spelling: str) -> None:
    """By the import that leads furthest, unless its name means something else as well."""
    assert (spelling, []) == rewrite.torch_name(parse(Source("x.py", text)), qualified)


@pytest.mark.parametrize(
    "text", ["x = 1\n", "from torch import *\n", "import torch.nn as nn\n", "def f():\n    import torch\n"]
)
def test_a_name_without_an_import_gets_one(text: str) -> None:
    """Then it is spelled in full."""
    module = parse(Source("x.py", text))
    spelling, edits = rewrite.torch_name(module, "torch.no_grad")
    assert "torch.no_grad" == spelling
    assert changed(module, edits).startswith("import torch\n")


def test_libcst_is_not_imported_before_it_is_needed() -> None:
    """It takes longer to import than all the rest."""
    code = "import sys; import gradvet.syntax.rewrite; assert 'libcst' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
