"""Any text gives a tree; what will not parse is a problem, and hides only itself."""

import ast
import random
import sysconfig
import tokenize
from pathlib import Path

import pytest

from gradvet.syntax.heal import MAX_BROKEN
from gradvet.syntax.parse import Module, parse
from gradvet.text import Source


def read(text: str) -> Module:
    """The module of a text, with the positions in it checked."""
    module = parse(Source("x.py", text))
    assert len(text) == len(module.healed)
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Name) and "'" not in (whole := module.text(module.statement(node))):
            assert node.id == module.text(node), whole
    for problem in module.problems:
        assert 0 <= problem.span.start < problem.span.end <= max(1, len(text))
    return module


def functions(tree: ast.AST) -> list[str]:
    """The names of all functions in a tree."""
    return [node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]


def lines_of(module: Module) -> list[int]:
    """The rows of the problems."""
    return [module.source.row_column(problem.span.start)[0] for problem in module.problems]


def test_a_text_that_parses_has_no_problems() -> None:
    """And its tree is Python's own."""
    text = "import torch\n\n\ndef f(x):\n    return x\n"
    module = read(text)
    assert () == module.problems
    assert ast.dump(ast.parse(text)) == ast.dump(module.tree)


BROKEN = {
    "one statement of a function": (
        "def f(x):\n    a = 1\n    b = (\n    return a\n\ndef g():\n    pass\n",
        ["f", "g"],
        [3],
    ),
    "the only statement of a function": ("def f(x):\n    b = (\n\ndef g():\n    pass\n", ["f", "g"], [2]),
    "the only statement, of one character": ("def f(x):\n    (\n\ndef g():\n    pass\n", ["f", "g"], [2]),
    "a header": ("def f(x\n    return x\n\ndef g():\n    pass\n", ["g"], [1]),
    "a header without a body": ("def f(x):\n\ndef g():\n    pass\n", ["g"], [1]),
    "a statement of a loop in a method": (
        (
            "class A:\n    def f(self):\n        for x in y:\n            x.\n            z = 1\n"
            "    async def g(self): pass\n"
        ),
        ["f", "g"],
        [4],
    ),
    "a clause's body": (
        (
            "def f():\n    try:\n        a = 1\n    except E as e:\n        b = = 2\n    else:\n        c = 3\n"
            "    finally:\n        d = 4\n    if a:\n        e = 5\n    elif b:\n        f = ]\n    else:\n        g = 6\n"
        ),
        ["f"],
        [5, 13],
    ),
    "a case's body": (
        "def f(x):\n    match x:\n        case 1:\n            a = \n        case _: pass\n",
        ["f"],
        [4],
    ),
    "a decorator": ("@a(\ndef f(): pass\n\n@b\ndef g(): pass\n", ["g"], [1]),
    "under a decorator": ("@a(\n    1,\n)\ndef f():\n    x = )\n    y = 2\n", ["f"], [5]),
    "a string without an end": ("x = 'abc\n\ndef f():\n    '''Doc.'''\n", ["f"], [1]),
    "a long string without an end": ('x = \'\'\'abc\n\ndef f():\n    """Doc."""\n', ["f"], [1]),
    "after a string with lines at the margin": (
        "def f():\n    x = '''\nnot code\n  else: ( \n'''\n    y = (\n    return x\n\ndef g(): pass\n",
        ["f", "g"],
        [6],
    ),
    "an indented first line": ("  x = 1\ndef f(): pass\n", ["f"], [1]),
    "an indentation that comes from nowhere": (
        "def f():\n    a = 1\n        b = 2\n    return a\n",
        ["f"],
        [3],
    ),
    "an indentation that leads to nowhere": (
        "def f():\n        a = 1\n    b = 2\ndef g(): pass\n",
        ["f", "g"],
        [3],
    ),
    "tabs and spaces mixed": ("def f():\n\tif x:\n\t\ta = (\n\t\tb = 1\n\treturn b\n", ["f"], [3]),
    "statements joined by a backslash": ("def f():\n    a = 1 + \\\n    else 2\n    return a\n", ["f"], [3]),
    "a multi-line header": (
        "class A(\n    B,\n):\n    def f(\n        self,\n    ) -> int:\n        x = (\n        y\n",
        ["f"],
        [7],
    ),
    "Python 2": ("def f():\n    print 'x'\n    exec 'y'\n\ndef g(): pass\n", ["f", "g"], [2, 3]),
    "beside wide characters": ("def f():\n    s = '汉字🔥'; loss = net(s)\n    t = '🔥' +\n", ["f"], [3]),
    "CRLF": ("def f():\r\n    x = (\r\n    y = 1\r\n\r\ndef g(): pass\r\n", ["f", "g"], [2]),
    "CR": ("def f():\r    x = (\r    y = 1\r\rdef g(): pass\r", ["f", "g"], [2]),
    "a null byte": ("def f():\n    x = '\0'\n    return x\n", ["f"], [2]),
    "a byte order mark": ("\ufeffdef f(): pass\nx = (\n", ["f"], [2]),
    "a byte order mark in the middle": ("def f(): pass\n\ufeffx = 1\ny = 2\n", ["f"], [2]),
    "a digit too many": ("def f(): pass\nx = " + "1" * 5000 + "\n", ["f"], [2]),
    "brackets too deep": ("def f(): pass\nx = " + "(" * 300 + ")" * 300 + "\n", ["f"], [2]),
    "operators too deep": ("def f(): pass\nx = " + "-" * 100_000 + "1\n", ["f"], [2]),
    "merge marks": (
        "def f():\n<<<<<<< HEAD\n    x = 1\n=======\n    x = 2\n>>>>>>> b\n    y = 3\n\ndef g(): pass\n",
        ["g"],
        None,
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_block_hides_only_itself(case: str) -> None:
    """The functions around it are there, and the problem stands on its line."""
    text, names, rows = BROKEN[case]
    module = read(text)
    assert names == functions(module.tree)
    if rows is None:
        assert module.problems
    else:
        assert rows == lines_of(module)


def test_a_problem_says_what_and_where() -> None:
    """The message is Python's, with the line numbers of the whole file; the span is the one it names."""
    module = read("def f():\n    a = '汉'\n    b = foo(a, [1, 2)\n")
    (problem,) = module.problems
    assert "closing parenthesis ')' does not match opening parenthesis '['" in problem.message
    assert ")" == module.source[problem.span]

    (problem,) = read("def f():\n    a = '汉'\n    if a:\n    return 1\n").problems
    assert "expected an indented block after 'if' statement on line 3" in problem.message


def test_deep_operators_do_not_end_the_run() -> None:
    """Whether Python reads such a chain depends on its version; the rest of the file is read in any case."""
    module = read("def f(): pass\nx = " + "+".join(["1"] * 30_000) + "\ny = " + "not " * 5000 + "1\n")
    assert ["f"] == functions(module.tree)


def test_deep_blocks_do_not_end_the_run() -> None:
    """Python allows a hundred levels of indentation."""
    text = "def f(): pass\n" + "".join(" " * level + "if 1:\n" for level in range(3000))
    assert ["f"] == functions(read(text).tree)


def test_what_is_no_python_at_all_is_given_up_early() -> None:
    """A text of broken lines gives no more problems than a person could want to see."""
    module = read("x = (\n" * 5000)
    assert MAX_BROKEN + 1 == len(module.problems)


STDLIB = Path(sysconfig.get_path("stdlib"))
FILES = [
    path
    for name in ("asyncio", "email", "json", "unittest", "logging", ".")
    for path in sorted((STDLIB / name).glob("*.py"))
]


def whole(path: Path) -> str:
    """A file's text as Python reads it."""
    with tokenize.open(path) as file:
        return file.read()


def cut(text: str, rng: random.Random) -> str:
    """The text with the end of a random line cut off at a random column."""
    lines = text.split("\n")
    row = rng.randrange(len(lines))
    lines[row] = lines[row][: rng.randint(0, len(lines[row]))]
    return "\n".join(lines)


def test_a_cut_line_leaves_nearly_all_functions() -> None:
    """As while typing: one random line of a random file ends at a random column."""
    rng = random.Random(20)  # noqa: S311  not for secrets
    there = left = healed = 0
    for _ in range(150):
        text = whole(rng.choice(FILES))
        module = read(cut(text, rng))
        if module.problems:
            healed += 1
            there += len(functions(ast.parse(text)))
            left += len(functions(module.tree))
    assert healed > 30
    assert left > 0.9 * there


def mangled(text: str, rng: random.Random) -> str:
    """The text with several random things done to it."""
    for _ in range(rng.randint(1, 8)):
        at = rng.randint(0, len(text))
        insert = rng.choice(
            [
                "",
                '"""',
                "'",
                "(",
                ")",
                "\n",
                "\\",
                ":",
                "\0",
                "{",
                "\t",
                "\f",
                "\ufeff",
                "🔥",
                "\ud800",
                "    ",
            ]
        )
        text = text[:at] + insert + text[at + rng.choice([0, 1, 5, 60]) :]
    return text


def test_no_text_makes_it_raise() -> None:
    """Whatever is typed, pasted or deleted: a tree of the right positions comes out."""
    rng = random.Random(21)  # noqa: S311  not for secrets
    for _ in range(150):
        text = whole(rng.choice(FILES))
        start = rng.randrange(max(1, len(text) - 6000))
        read(mangled(text[start : start + 6000], rng))
