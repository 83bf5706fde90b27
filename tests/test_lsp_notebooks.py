"""Notebooks in an editor: one document in cell order, findings and fixes in the right cell. Real server, real engine."""

import asyncio
from typing import Any

import pytest
from lsprotocol import types as lsp
from pytest_lsp import LanguageClient

from lsp_client import (
    PATIENCE,
    applied,
    at,
    capabilities,
    code_actions,
    connected,
    did_open,
    document,
    hover_text,
    pulled,
    session,
    units,
)

NOTEBOOK = "file:///w/nb.ipynb"
pytestmark = pytest.mark.asyncio


@session(params=["utf-8", "utf-16", "utf-32"])
async def pulling(request: pytest.FixtureRequest, lsp_client: LanguageClient) -> Any:
    """A client that asks for diagnostics and resolves edits."""
    can = capabilities(pull=True, lazy=True, encodings=[request.param])
    async with connected(lsp_client, can):
        yield


@session()
async def pushing(lsp_client: LanguageClient) -> Any:
    """A client that is sent diagnostics."""
    async with connected(lsp_client, capabilities()):
        yield


def cell(number: int) -> str:
    """The address of a cell."""
    return f"vscode-notebook-cell:/w/nb.ipynb#c{number}"


def item(number: int, text: str, language: str = "python") -> lsp.TextDocumentItem:
    """A cell's text as the client shows it."""
    return lsp.TextDocumentItem(uri=cell(number), language_id=language, version=1, text=text)


def open_notebook(client: Any, *texts: str) -> None:
    """Show a notebook of code cells."""
    cells = [lsp.NotebookCell(lsp.NotebookCellKind.Code, cell(number)) for number in range(len(texts))]
    client.notebook_document_did_open(
        lsp.DidOpenNotebookDocumentParams(
            notebook_document=lsp.NotebookDocument(NOTEBOOK, "jupyter-notebook", 1, cells),
            cell_text_documents=[item(number, text) for number, text in enumerate(texts)],
        )
    )


def change_notebook(client: Any, cells: lsp.NotebookDocumentCellChanges) -> None:
    """Change a notebook."""
    client.notebook_document_did_change(
        lsp.DidChangeNotebookDocumentParams(
            notebook_document=lsp.VersionedNotebookDocumentIdentifier(version=2, uri=NOTEBOOK),
            change=lsp.NotebookDocumentChangeEvent(cells=cells),
        )
    )


def edited(number: int, text: str, where: lsp.Range | None = None) -> lsp.NotebookDocumentCellContentChanges:
    """A change of a cell's text."""
    change: lsp.TextDocumentContentChangeEvent = lsp.TextDocumentContentChangeWholeDocument(text)
    if where is not None:
        change = lsp.TextDocumentContentChangePartial(where, text)
    name = lsp.VersionedTextDocumentIdentifier(version=2, uri=cell(number))
    return lsp.NotebookDocumentCellContentChanges(name, [change])


def structure(
    start: int, gone: list[int], come: list[lsp.TextDocumentItem]
) -> lsp.NotebookDocumentCellChanges:
    """Cells that go and others that come in their place."""
    cells = [lsp.NotebookCell(lsp.NotebookCellKind.Code, each.uri) for each in come]
    return lsp.NotebookDocumentCellChanges(
        structure=lsp.NotebookDocumentCellChangeStructure(
            array=lsp.NotebookCellArrayChange(start=start, delete_count=len(gone), cells=cells),
            did_open=come,
            did_close=[document(cell(number)) for number in gone],
        )
    )


async def codes(client: Any, number: int) -> list[tuple[Any, int]]:
    """The rules that speak in a cell, and the lines where they do."""
    return [(d.code, d.range.start.line) for d in (await pulled(client, uri=cell(number))).items]


SETUP = "%matplotlib inline\n!pip install it's\nimport torch\nw = torch.ones(3, requires_grad=True)"
USE = "%%time\ny = w * 2\ns = '😋漢'; y.numpy()"


async def test_cells_are_seen_as_one_program_in_their_order(pulling: Any) -> None:
    encoding = pulling.result.capabilities.position_encoding
    open_notebook(pulling, SETUP, "%%bash\nls 'x", USE)
    assert await codes(pulling, 0) == []
    assert await codes(pulling, 1) == []
    [found] = (await pulled(pulling, uri=cell(2))).items
    before = units("s = '😋漢'; ", encoding)
    assert (found.code, found.range) == ("numpy-on-grad", at(2, before, before + len("y.numpy()")))
    assert {related.location.uri for related in found.related_information} == {cell(0), cell(2)}
    told = await hover_text(pulling, 2, before, cell(2))
    assert "`y` requires grad" in told
    assert f"[line 4 of cell 1]({cell(0)})" in told

    fix, *_ = await code_actions(pulling, found.range, only=["quickfix"], uri=cell(2))
    chosen = await pulling.code_action_resolve_async(fix)
    [change] = chosen.edit.document_changes
    assert (change.text_document.uri, change.text_document.version) == (cell(2), 1)
    assert applied(USE, change.edits, encoding) == USE.replace("y.numpy", "y.detach().numpy")


async def test_an_edit_in_one_cell_changes_what_is_said_in_another(pulling: Any) -> None:
    open_notebook(pulling, SETUP, USE)
    assert await codes(pulling, 1) == [("numpy-on-grad", 2)]
    stale, *_ = await code_actions(pulling, at(2, 0, 99), only=["quickfix"], uri=cell(1))
    # as VS Code sends it: a range, although the server asked for whole texts
    change_notebook(
        pulling, lsp.NotebookDocumentCellChanges(text_content=[edited(0, "False", at(3, 32, 36))])
    )
    assert await codes(pulling, 1) == []
    assert (await pulling.code_action_resolve_async(stale)).edit is None  # made for another text


async def test_cells_come_and_go_and_change_their_places(pulling: Any) -> None:
    open_notebook(pulling, USE, SETUP)
    assert await codes(pulling, 0) == []  # it runs before there is a `w`
    change_notebook(pulling, structure(0, [0], []))
    change_notebook(pulling, structure(1, [], [item(7, USE)]))
    assert await codes(pulling, 7) == [("numpy-on-grad", 2)]
    assert await codes(pulling, 0) == []


async def test_a_cell_that_changes_its_language_is_left_out(pulling: Any) -> None:
    open_notebook(pulling, SETUP, USE)
    assert len(await codes(pulling, 1)) == 1
    change_notebook(pulling, structure(0, [0], [item(0, SETUP, "markdown")]))
    assert await codes(pulling, 1) == []
    change_notebook(pulling, structure(0, [0], [item(0, SETUP)]))
    assert len(await codes(pulling, 1)) == 1


async def test_a_broken_cell_hides_only_itself(pulling: Any) -> None:
    open_notebook(pulling, SETUP, "s = '''open\nprint(", USE)
    assert await codes(pulling, 2) == [("numpy-on-grad", 2)]


async def test_all_safe_fixes_of_a_notebook_at_once(pulling: Any) -> None:
    encoding = pulling.result.capabilities.position_encoding
    open_notebook(pulling, SETUP + "\nz = w + 1\nz.numpy()", USE)
    kind = "notebook.source.fixAll.gradvet"
    for asked in ("notebook.source.fixAll", kind):
        [action] = await code_actions(pulling, at(0, 0, 0), only=[asked], uri=cell(0))
        assert action.kind == kind
    chosen = await pulling.code_action_resolve_async(action)
    changed = {change.text_document.uri: change.edits for change in chosen.edit.document_changes}
    assert set(changed) == {cell(0), cell(1)}
    assert applied(USE, changed[cell(1)], encoding) == USE.replace("y.numpy", "y.detach().numpy")
    # a client that saves asks each cell for this one: the same edits would be made many times
    assert await code_actions(pulling, at(0, 0, 0), only=["source.fixAll"], uri=cell(0)) == ()


async def test_diagnostics_are_pushed_for_each_cell_and_taken_back(pushing: Any) -> None:
    open_notebook(pushing, SETUP, USE)
    assert [d.code for d in await _until(pushing, 1, 1)] == ["numpy-on-grad"]
    change_notebook(pushing, structure(1, [1], []))
    assert await _until(pushing, 1, 0) == []
    change_notebook(pushing, structure(1, [], [item(5, USE)]))
    assert len(await _until(pushing, 5, 1)) == 1
    pushing.notebook_document_did_close(
        lsp.DidCloseNotebookDocumentParams(lsp.NotebookDocumentIdentifier(NOTEBOOK), [document(cell(0))])
    )
    assert await _until(pushing, 5, 0) == []


async def _until(client: Any, number: int, count: int) -> list[Any]:
    """The diagnostics of a cell, as soon as there are so many."""
    while len(client.diagnostics.get(cell(number), [0] * 99)) != count:
        wait = client.wait_for_notification(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        await asyncio.wait_for(wait, PATIENCE)
    return list(client.diagnostics[cell(number)])


async def test_hostile_changes_of_notebooks_are_survived(pulling: Any) -> None:
    change_notebook(pulling, structure(99, [3], [item(4, "x")]))  # not open
    open_notebook(pulling, SETUP)
    change_notebook(pulling, structure(2**31 - 1, [3, 4], [item(4, USE)]))
    change_notebook(pulling, lsp.NotebookDocumentCellChanges(text_content=[edited(9, "nowhere")]))
    change_notebook(pulling, structure(0, [], [item(6, "", "klingon")]))
    assert await codes(pulling, 4) == [("numpy-on-grad", 2)]
    did_open(pulling, SETUP + "\n(w * 2).numpy()", "file:///w/a.py")
    assert len((await pulled(pulling, uri="file:///w/a.py")).items) == 1
