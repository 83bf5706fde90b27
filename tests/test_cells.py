"""A notebook's cells as one source: magics are masked in place, edits stay in their cells, rows are the cell's."""

import ast

import pytest

from gradvet.syntax.cells import CellSource, masked
from gradvet.syntax.parse import parse
from gradvet.text import Edit, Span


@pytest.mark.parametrize(
    ("cell", "left"),
    [
        ("%matplotlib inline\nx = 1\n!ls it's", "x = 1"),
        ("if a:\n    !ls\n    y = 2", "if a:\n    0\n    y = 2"),
        ("files = !ls it's \"a\nz = 3", "files = _\nz = 3"),
        ("%time y = f(x)", "y = f(x)"),
        ("%timeit -n 3 f(x)\nz = 1", "z = 1"),
        ("y = %time f(x)", "y = f(x)"),
        ("%%time\nloss = f(x)", "loss = f(x)"),
        ("%%capture out\nloss = f(x)", "loss = f(x)"),
        ("%%bash\nls 'x\nif", ""),
        ("  %%html\n<b>", ""),
        ("tensor?\nx = 1", "x = 1"),
        ("?torch.nn\nx = 1", "x = 1"),
        ("torch.nn.Linear??", ""),
        ("!pip install a \\\n  b 'c\ny = 1", "y = 1"),
        # Python, although it looks alike
        ("s = '''\n%no\n!no\n'''", "s = '''\n%no\n!no\n'''"),
        ("f(a\n% b,\n!= c)" if False else "f(a\n% b)", "f(a % b)"),
        ("x %= 3\nx = a % b", "x %= 3\nx = a % b"),
        ("x = y != z", "x = y != z"),
        ("# why?\nx = 1", "x = 1"),
        ("x = 'why?'", "x = 'why?'"),
        ("x = 1; \\\n  y = 2", "x = 1; y = 2"),
    ],
)
def test_what_only_ipython_understands_is_masked_in_place(cell: str, left: str) -> None:
    after = masked(cell)
    assert len(after) == len(cell)
    assert [at for at, c in enumerate(after) if c in "\r\n"] == [
        at for at, c in enumerate(cell) if c in "\r\n"
    ]

    def dump(text: str) -> str:
        tree = ast.parse(text)
        tree.body = [
            node for node in tree.body if not (isinstance(node, ast.Expr) and ast.unparse(node) == "0")
        ]
        return ast.dump(tree)

    assert dump(after) == dump(left)


def test_a_cell_that_does_not_parse_hides_only_itself() -> None:
    cells = ["import torch", "s = '''never closed\nx = 1", "print(y", "漢 = torch.ones(3)"]
    module = parse(CellSource("nb.ipynb", cells))
    assert {ast.unparse(node) for node in module.tree.body} >= {"import torch", "漢 = torch.ones(3)"}
    assert [module.source.spot(problem.span.start)[0] for problem in module.problems] == ["cell 2", "cell 3"]


def test_rows_and_columns_are_those_of_the_cell() -> None:
    source = CellSource("nb.ipynb", ["a = 1\nb = 2", "", "😋 = 3\r\nd"], ["cell 2", "cell 3", "cell 5"])
    assert source.spot(source.text.index("b")) == ("cell 2", 2, 1)
    assert source.spot(source.text.index("3")) == ("cell 5", 1, 5)
    assert source.spot(source.text.index("d")) == ("cell 5", 2, 1)
    assert source.row_words(2) == "line 2 of cell 2"
    assert source.row_words(5) == "line 2 of cell 5"
    assert [source[text] for text in source.texts] == list(source.cells)


def test_edits_stay_in_their_cells() -> None:
    source = CellSource("nb.ipynb", ["a = 1\nb = 2", "c = 3"])
    whole = len("a = 1\n")
    line = Span(whole, whole + len("b = 2\n"))  # with the line end that is in no cell
    assert source.edited([Edit(line, "B = 2\n")]).cells == ("a = 1\nB = 2", "c = 3")
    assert source.edited([Edit(line, "")]).cells == ("a = 1", "c = 3")
    at = source.text.index("c")
    assert source.edited([Edit(Span(at, at), "import torch\n")]).cells[1] == "import torch\nc = 3"
    with pytest.raises(ValueError, match="several cells"):
        source.edited([Edit(Span(0, at + 1), "")])


def test_a_notebook_without_cells() -> None:
    source = CellSource("nb.ipynb", [])
    assert (source.text, source.texts, source.spot(0)) == ("", (), ("", 1, 1))
    assert parse(source).problems == ()
    assert source.edited([]).cells == ()
