"""`inner` gives what stands in a node, as `ast.iter_child_nodes` does, but for operators and contexts."""

import ast
import sys
from pathlib import Path

import pytest

from gradvet.syntax.tree import inner, walk

SHARED = (ast.expr_context, ast.operator, ast.boolop, ast.unaryop, ast.cmpop, ast.type_ignore)
RARE = {
    "gaps": "f(*c, b=1, **a)\nd = {**e, 1: 2, **g}\ndef h(a, /, b=1, *c, d, e=2, **f): ...\nlambda *, x, y=1: x\n",
    "names": "import a.b as c, d\nfrom . import e as f\ndef g():\n    global h, i\n    def j():\n        nonlocal k\n    k = 1\n",
    "match": (
        "match a:\n    case {'k': v, **rest}: ...\n    case C(x, y=z) | [1, *_]: ...\n"
        "    case None | True: ...\n    case (1 | 2) as n if n: ...\n    case _: ...\n"
    ),
    "handlers": "try:\n    pass\nexcept (A, B) as e:\n    raise C from e\nelse:\n    pass\nfinally:\n    pass\n",
    "strings": 'f"{a!r:>{b}} {{c}} {d=}"\n',
    "async": "async def f():\n    async with a as b, c: ...\n    async for x in y: yield x\n    return [await z async for z in w if z]\n",
    "slices": "a[1:2, ..., ::b] = c[d]\ndel e[f], g.h\nx: int = 1\nx += y if z else (w := v)\nassert a, b\nnot -a < b <= c and d\n",
}
if sys.version_info >= (3, 12):
    RARE["types"] = "type A[T: int, *Ts, **P] = list[T]\ndef f[T](x: T) -> T: ...\nclass C[T](B): ...\n"


def checked(tree: ast.Module) -> int:
    """Hold every node of a tree against `ast`'s own; the number of nodes."""
    nodes = list(ast.walk(tree))
    for node in nodes:
        assert inner(node) == [n for n in ast.iter_child_nodes(node) if not isinstance(n, SHARED)], ast.dump(
            node
        )
    return len(nodes)


@pytest.mark.parametrize("kind", RARE)
def test_every_kind_of_node(kind: str) -> None:
    """Kinds whose fields hold words, gaps or both."""
    assert checked(ast.parse(RARE[kind])) > 5


def test_real_code() -> None:
    """Whole files."""
    here = Path(__file__).parents[1]
    files = [*(here / "server").rglob("*.py"), *(here / "tests").glob("*.py")]
    assert sum(checked(ast.parse(path.read_text(encoding="utf-8"))) for path in files) > 100_000


def test_walk_meets_each_once() -> None:
    """All nodes but those that are shared."""
    tree = ast.parse("".join(RARE.values()))
    wanted = [node for node in ast.walk(tree) if not isinstance(node, SHARED)]
    met = list(walk(tree))
    assert len(met) == len(wanted)
    assert set(met) == set(wanted)
