"""Edits inside an expression keep its brackets, comments and layout."""

import ast
import copy
import random
import sysconfig
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest

from gradvet.syntax import edits
from gradvet.syntax.lexical import lexemes
from gradvet.syntax.parse import Module, parse
from gradvet.text import Edit, Source, apply


def module_of(text: str) -> Module:
    """A text that has no problems."""
    module = parse(Source("x.py", text))
    assert not module.problems
    return module


def node_of(module: Module, text: str, kind: type[ast.expr] = ast.expr) -> ast.expr:
    """The first expression that is written like this."""
    nodes = (node for node in ast.walk(module.tree) if isinstance(node, kind))
    return next(node for node in nodes if module.text(node) == text)


def result(module: Module, found: Iterable[Edit]) -> str:
    """The text after the edits, which must parse."""
    text = apply(module.source.text, found)
    ast.parse(text)
    return text


AFTER = [
    ("x = loss", "loss", "x = loss.detach()"),
    ("x = a.b", "a.b", "x = a.b.detach()"),
    ("x = f(a)[0]", "f(a)[0]", "x = f(a)[0].detach()"),
    ("x = a + b", "a + b", "x = (a + b).detach()"),
    ("x = (a + b)", "a + b", "x = (a + b).detach()"),
    ("x = ( (a + b) )", "a + b", "x = ( (a + b) ).detach()"),
    ("x = (a)", "a", "x = (a.detach())"),
    ("x = (a) + b", "a", "x = (a.detach()) + b"),
    ("x = a + (b * c)", "b * c", "x = a + (b * c).detach()"),
    ("x = (a + b) * c", "a + b", "x = (a + b).detach() * c"),
    ("x = -y", "-y", "x = (-y).detach()"),
    ("x = not y", "not y", "x = (not y).detach()"),
    ("x = y if c else z", "y if c else z", "x = (y if c else z).detach()"),
    ("x = lambda: y", "lambda: y", "x = (lambda: y).detach()"),
    ("async def f():\n    x = await y", "await y", "async def f():\n    x = (await y).detach()"),
    ("x = a < b", "a < b", "x = (a < b).detach()"),
    ("x = a and b", "a and b", "x = (a and b).detach()"),
    ("f(y := a)", "y := a", "f((y := a).detach())"),
    ("x = 5", "5", "x = (5).detach()"),
    ("x = 5.0", "5.0", "x = 5.0.detach()"),
    ("x = True", "True", "x = True.detach()"),
    ("x = 'a' 'b'", "'a' 'b'", "x = 'a' 'b'.detach()"),
    ("x = [1, 2]", "[1, 2]", "x = [1, 2].detach()"),
    ("x = (1, 2)", "(1, 2)", "x = (1, 2).detach()"),
    ("x = 1, 2", "1, 2", "x = (1, 2).detach()"),
    ("x = (1), (2)", "(1), (2)", "x = ((1), (2)).detach()"),
    ("x = (i for i in y)", "(i for i in y)", "x = (i for i in y).detach()"),
    ("f(i for i in y)", "(i for i in y)", "f((i for i in y).detach())"),
    ("f(a + b)", "a + b", "f((a + b).detach())"),
    ("f((a + b))", "a + b", "f((a + b).detach())"),
    ("f((a + b), c)", "a + b", "f((a + b).detach(), c)"),
    ("f((a + b),)", "a + b", "f((a + b).detach(),)"),
    ("f(k=(a + b))", "a + b", "f(k=(a + b).detach())"),
    ("f(k=a + b)", "a + b", "f(k=(a + b).detach())"),
    ("f(*a + b)", "*a + b", "f(*(a + b).detach())"),
    ("class A(b or c): pass", "b or c", "class A((b or c).detach()): pass"),
    ("class A((b or c)): pass", "b or c", "class A((b or c).detach()): pass"),
    ("x[a + b]", "a + b", "x[(a + b).detach()]"),
    ("x = (  # why\n    a\n    + b  # )\n)", "a\n    + b", "x = (  # why\n    a\n    + b  # )\n).detach()"),
    ("f(\n    a\n    + b  # sum\n)", "a\n    + b", "f(\n    (a\n    + b).detach()  # sum\n)"),
    (
        "x = (\n    net(a)\n    .cpu()  # move\n)",
        "net(a)\n    .cpu()",
        "x = (\n    net(a)\n    .cpu().detach()  # move\n)",
    ),
    ("x = a + \\\n    b", "a + \\\n    b", "x = (a + \\\n    b).detach()"),
    (
        "s = '汉字🔥'; x = 损失 + 🔥".replace("🔥", "b", 2)[:-1] + "b",
        "损失 + b",
        "s = '汉字b'; x = (损失 + b).detach()",
    ),
    ("s = '(🔥'; x = a + b; t = ')'", "a + b", "s = '(🔥'; x = (a + b).detach(); t = ')'"),
    ("print(f'{(a + b)} 🔥 {c}')", "c", "print(f'{(a + b)} 🔥 {c.detach()}')"),
    ("\ufeffx = a + b\r\n", "a + b", "\ufeffx = (a + b).detach()\r\n"),
]


@pytest.mark.parametrize(("text", "node", "expected"), AFTER)
def test_a_trailer_goes_after_an_expression(text: str, node: str, expected: str) -> None:
    """In brackets where the expression needs them, and in those it has."""
    module = module_of(text)
    assert expected == apply(text, edits.after(module, node_of(module, node), ".detach()"))


REPLACE = [
    ("x = w.data * 2", "w.data", "w.detach()", "x = w.detach() * 2"),
    ("x = a * 2", "a", "b + c", "x = (b + c) * 2"),
    ("x = (a) * 2", "a", "b + c", "x = (b + c) * 2"),
    ("x = a", "a", "b + c", "x = b + c"),
    ("f(a)", "a", "b if c else d", "f(b if c else d)"),
    ("a.b()", "a", "-c", "(-c).b()"),
    ("a.b()", "a", "1", "(1).b()"),
    ("a[0]", "a", "b or c", "(b or c)[0]"),
    ("a(0)", "a", "lambda x: x", "(lambda x: x)(0)"),
    ("f(i for i in y)", "(i for i in y)", "[i]", "f([i])"),
    ("x = -a", "a", "b, c", "x = -(b, c)"),
    ("x = (a + b) * c", "a + b", "d", "x = (d) * c"),
    ("f(a, k=b)", "b", "y := 1", "f(a, k=(y := 1))"),
    ("[a for a in b]", "b", "c if d else e", "[a for a in (c if d else e)]"),
]


@pytest.mark.parametrize(("text", "node", "new", "expected"), REPLACE)
def test_an_expression_is_replaced(text: str, node: str, new: str, expected: str) -> None:
    """The brackets around it stay, and new ones come where the new expression needs them."""
    module = module_of(text)
    target = node_of(module, node)
    assert expected == result(module, edits.replace(module, target, new))


UNWRAP = [
    ("x = float(loss)", "float(loss)", "loss", "x = loss"),
    ("x = 2 * float(a + b)", "float(a + b)", "a + b", "x = 2 * (a + b)"),
    ("x = float(a + b)", "float(a + b)", "a + b", "x = a + b"),
    ("x = float(\n    a\n    + b\n)", "float(\n    a\n    + b\n)", "a\n    + b", "x = (a\n    + b)"),
    ("x = float((a + b))", "float((a + b))", "a + b", "x = (a + b)"),
    ("x = list(i for i in y)", "list(i for i in y)", "(i for i in y)", "x = (i for i in y)"),
]


@pytest.mark.parametrize(("text", "outer", "inner", "expected"), UNWRAP)
def test_a_wrapper_is_taken_off(text: str, outer: str, inner: str, expected: str) -> None:
    """What was inside keeps its meaning."""
    module = module_of(text)
    found = edits.unwrap(module, node_of(module, outer), node_of(module, inner))
    assert expected == result(module, found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = loss.item()", "x = loss"),
        ("x = (a + b).item()", "x = (a + b)"),
        ("x = (\n    f(a)\n    # the number\n    .item()\n)", "x = (\n    f(a)\n)"),
    ],
)
def test_a_method_call_is_dropped(text: str, expected: str) -> None:
    """Its receiver is left as it was."""
    module = module_of(text)
    calls = (node for node in ast.walk(module.tree) if isinstance(node, ast.Call))
    (call,) = (node for node in calls if isinstance(node.func, ast.Attribute) and node.func.attr == "item")
    assert expected == result(module, edits.drop_call(module, call))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("y = x.numpy()", "y = x.detach().numpy()"),
        ("y = x.float().cpu().numpy()", "y = x.float().detach().cpu().numpy()"),
        ("y = (a + b).cpu().numpy()", "y = (a + b).detach().cpu().numpy()"),
        (
            "y = (\n    x\n    .cpu()  # move\n    .numpy()\n)",
            "y = (\n    x.detach()\n    .cpu()  # move\n    .numpy()\n)",
        ),
    ],
)
def test_a_trailer_goes_into_a_chain(text: str, expected: str) -> None:
    """Before the calls that it must come before."""
    module = module_of(text)
    call = next(node for node in ast.walk(module.tree) if isinstance(node, ast.Call))
    assert expected == result(module, edits.insert_in_chain(module, call, ".detach()", {"cpu", "numpy"}))


REMOVE = [
    ("f(k=1)", "f()"),
    ("f(a, k=1)", "f(a)"),
    ("f(k=1, a=2)", "f(a=2)"),
    ("f(a, k=(1), b=2)", "f(a, b=2)"),
    ("f(a, k=1,)", "f(a, )"),
    ("f(\n    a,\n    k=1,\n)", "f(\n    a,\n)"),
    ("f(\r\n    k=1,\r\n    b=2,\r\n)", "f(\r\n    b=2,\r\n)"),
    ("f(\n    a,\n    k=1\n)", "f(\n    a\n)"),
    ("f(\n    a,  # first\n    k=1\n)", "f(\n    a  # first\n)"),
    ("f(\n    a,\n    k=1,  # second\n)", "f(\n    a,\n      # second\n)"),
    ("f(a, k=1,\n  b=2)", "f(a,\n  b=2)"),
    ("f(a, k={'k': 1, 'l': g(k=2)})", "f(a)"),
    ("f(a, b=2)", "f(a, b=2)"),
]


@pytest.mark.parametrize(("text", "expected"), REMOVE)
def test_a_keyword_is_removed_from_a_call(text: str, expected: str) -> None:
    """With one comma, and with its line when it stood there alone; comments stay."""
    module = module_of(text)
    call = next(node for node in ast.walk(module.tree) if isinstance(node, ast.Call))
    assert expected == result(module, edits.remove_call_keyword(module, call, "k"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f()", "f(k=1)"),
        ("f(a)", "f(a, k=1)"),
        ("f((a))", "f((a), k=1)"),
        ("f(a,)", "f(a, k=1,)"),
        ("f(*a, **b)", "f(*a, **b, k=1)"),
        ("f(i for i in y)", "f((i for i in y), k=1)"),
        ("f(\n    a,  # first\n)", "f(\n    a, k=1,  # first\n)"),
        ("f(\n    a  # first, (\n)", "f(\n    a, k=1  # first, (\n)"),
    ],
)
def test_a_keyword_is_added_to_a_call(text: str, expected: str) -> None:
    """After the last argument, before what is said of it."""
    module = module_of(text)
    call = next(node for node in ast.walk(module.tree) if isinstance(node, ast.Call))
    assert expected == result(module, edits.add_call_keyword(module, call, "k=1"))


STDLIB = Path(sysconfig.get_path("stdlib"))
FILES = [
    path
    for name in ("asyncio", "email", "json", "unittest", ".")
    for path in sorted((STDLIB / name).glob("*.py"))
    if 5_000 < path.stat().st_size < 40_000
]


def replaced(tree: ast.AST, old: ast.AST, make: Callable[[ast.AST], ast.AST]) -> ast.AST:
    """A copy of the tree in which one node is another."""
    memo: dict[int, object] = {id(old): make(old)}
    return copy.deepcopy(tree, memo)


def comments(text: str) -> Sequence[str]:
    """The comments of a text, in order."""
    return [text[lexeme.span.start : lexeme.span.end] for lexeme in lexemes(text) if lexeme.comment]


def detached(node: ast.AST) -> ast.AST:
    """What `node.detach()` parses to."""
    assert isinstance(node, ast.expr)
    return ast.Call(ast.Attribute(copy.deepcopy(node), "detach", ast.Load()), [], [])


def test_a_trailer_changes_nothing_else_anywhere() -> None:
    """For random expressions of real files, the tree is the old one but for the call; every comment is there."""
    rng = random.Random(30)  # noqa: S311  not for secrets
    done = 0
    for path in rng.sample(FILES, 25):
        module = module_of(path.read_text(encoding="utf-8"))
        inside_strings = {
            node
            for string in ast.walk(module.tree)
            if isinstance(string, ast.JoinedStr)
            for node in ast.walk(string)
        }
        nodes = [
            node
            for node in ast.walk(module.tree)
            if isinstance(node, ast.expr)
            and isinstance(getattr(node, "ctx", None) or ast.Load(), ast.Load)
            and not isinstance(node, (ast.Starred, ast.Slice))
            and not any(isinstance(child, ast.Slice) for child in ast.iter_child_nodes(node))
            and not isinstance(module.parents[node], (ast.match_case, ast.pattern))
            and node not in inside_strings
        ]
        for node in rng.sample(nodes, min(12, len(nodes))):
            text = apply(module.source.text, edits.after(module, node, ".detach()"))
            expected = replaced(module.tree, node, detached)
            assert ast.dump(expected) == ast.dump(ast.parse(text)), f"{path}: {module.text(node)}"
            assert comments(module.source.text) == comments(text)
            done += 1
    assert done > 150
