"""Notebooks in files: which cells are Python, and what a changed cell leaves of the file."""

import json
from typing import Any

import pytest

from gradvet.ipynb import NotebookError, read_notebook


def notebook(*sources: Any, **metadata: Any) -> dict[str, Any]:
    cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": source} for source in sources]
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


@pytest.mark.parametrize("indent", [1, 4, "\t", None])
@pytest.mark.parametrize("escaped", [True, False])
def test_only_the_cells_that_change_are_written(indent: Any, escaped: bool) -> None:
    content = notebook(["a = 1\n", "# 漢😋"], "b = 2\nc", [], ['"\\n"\n', "x"])
    content["metadata"]["odd"] = {"cells": [{"source": ["not this"]}], "float": 1e-05}
    before = json.dumps(content, indent=indent, ensure_ascii=escaped)
    found = read_notebook(before)
    texts = [cell.text for cell in found.cells]
    assert texts == ["a = 1\n# 漢😋", "b = 2\nc", "", '"\\n"\nx']
    assert found.edited(texts) == before
    texts[0], texts[1], texts[3] = "a = 1\n# 漢😋\nd = '\"'", "é", ""
    after = found.edited(texts)
    content["cells"][0]["source"] = ["a = 1\n", "# 漢😋\n", "d = '\"'"]
    content["cells"][1]["source"] = "é"
    content["cells"][3]["source"] = []
    assert after == json.dumps(content, indent=indent, ensure_ascii=escaped)


def test_a_line_end_at_the_end_of_a_cell_stays() -> None:
    before = json.dumps(notebook(["a\n", "b\n"]), indent=1)
    assert json.loads(read_notebook(before).edited(["a\nB\n"]))["cells"][0]["source"] == ["a\n", "B\n"]


def test_cells_count_all_and_those_in_other_languages_are_left_out() -> None:
    content = notebook("one", "two", "three")
    content["cells"].insert(0, {"cell_type": "markdown", "metadata": {}, "source": "# Hi"})
    content["cells"][2]["metadata"] = {"vscode": {"languageId": "julia"}}
    found = read_notebook(json.dumps(content))
    assert [(cell.number, cell.text) for cell in found.cells] == [(2, "one"), (4, "three")]


@pytest.mark.parametrize(
    ("metadata", "count"),
    [
        ({}, 1),
        ({"kernelspec": {"language": "python"}}, 1),
        ({"language_info": {"name": "julia"}}, 0),
        ({"kernelspec": {"language": "R"}}, 0),
        ({"kernelspec": "odd"}, 1),
    ],
)
def test_notebooks_in_other_languages_have_no_cells_for_us(metadata: Any, count: int) -> None:
    assert len(read_notebook(json.dumps(notebook("x", **metadata))).cells) == count


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "not valid JSON"),
        ("[]", "no list of cells"),
        ('{"cells": 3}', "no list of cells"),
        ('{"worksheets": []}', "nbconvert"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_no_notebook_says_so(text: str, why: str) -> None:
    with pytest.raises(NotebookError, match=why):
        read_notebook(text)


@pytest.mark.parametrize(
    "text", ["", " \n", '{"cells": []}', '{"cells": [1, null, {"cell_type": "code"}, {"source": 3}]}']
)
def test_odd_ones_have_no_cells(text: str) -> None:
    assert list(read_notebook(text).cells) == []
