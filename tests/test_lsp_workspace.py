"""The whole workspace's diagnostics: opt-in, in a process of their own, asked for or sent, kept up to date."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types as lsp
from pytest_lsp import LanguageClient

from lsp_client import (
    PATIENCE,
    capabilities,
    connected,
    did_open,
    pulled,
    session,
    until,
)

pytestmark = pytest.mark.asyncio

LEAK = """\
import torch
w = torch.ones(3, requires_grad=True)
'😋漢'; (w * 2).numpy()
"""
CLEAN = LEAK.replace("2)", "2).detach()")
NOTEBOOK = json.dumps(
    {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {},
        "cells": [
            {"cell_type": "markdown", "metadata": {}, "source": "# \U0001f60b"},
            {"cell_type": "code", "metadata": {}, "outputs": [], "source": LEAK.splitlines(keepends=True)},
        ],
    },
    indent=1,
)
FILES = {
    "a.py": LEAK,
    "pack/__init__.py": "",
    "pack/b.py": LEAK,
    "clean.py": CLEAN,
    "nb.ipynb": NOTEBOOK,
    "uses.py": "from clean import w\n(w * 2).numpy()\n",
    "venv/pyvenv.cfg": "",
    "venv/c.py": LEAK,
    "pyproject.toml": '[tool.gradvet]\nexclude = ["old"]\n',
    "old/d.py": LEAK,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A workspace with faults in it."""
    for name, text in FILES.items():
        path = tmp_path / "ws 漢" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path / "ws 漢"


def opened(folder: Path) -> list[lsp.WorkspaceFolder]:
    """The folder as the client names it."""
    return [lsp.WorkspaceFolder(folder.as_uri(), "ws")]


@session()
async def pulling(lsp_client: LanguageClient, folder: Path) -> Any:
    """A client that asks for the whole workspace."""
    options = {"workspaceDiagnostics": True}
    async with connected(lsp_client, capabilities(pull=True, refresh=True), options, opened(folder)):
        yield


@session()
async def pushing(lsp_client: LanguageClient, folder: Path) -> Any:
    """A client that is sent diagnostics, and whose user wants those of all files."""
    async with connected(lsp_client, capabilities(), {"workspaceDiagnostics": True}, opened(folder)):
        yield


@session()
async def asking(lsp_client: LanguageClient, folder: Path) -> Any:
    """A client whose user has not chosen it."""
    async with connected(lsp_client, capabilities(pull=True), None, opened(folder)):
        yield


async def report(client: Any, previous: dict[str, str]) -> dict[str, Any]:
    """What is new in the workspace, by address."""
    has = [lsp.PreviousResultId(uri, value) for uri, value in previous.items()]
    params = lsp.WorkspaceDiagnosticParams(previous_result_ids=has)
    answer = await asyncio.wait_for(client.workspace_diagnostic_async(params), PATIENCE)
    return {item.uri: item for item in answer.items}


def changed(client: Any, path: Path, kind: lsp.FileChangeType = lsp.FileChangeType.Changed) -> None:
    """Tell of a change on the disk."""
    event = lsp.FileEvent(path.as_uri(), kind)
    client.workspace_did_change_watched_files(lsp.DidChangeWatchedFilesParams([event]))


async def test_a_client_asks_and_is_answered_only_when_there_is_news(pulling: Any, folder: Path) -> None:
    assert pulling.result.capabilities.diagnostic_provider.workspace_diagnostics
    did_open(pulling, LEAK, (folder / "a.py").as_uri())  # told of by itself
    first = await report(pulling, {})
    assert {uri.rpartition("/")[2] for uri in first} == {"b.py", "uses.py", "nb.ipynb"}
    [found] = first[(folder / "pack" / "b.py").as_uri()].items
    assert (found.code, found.range.start) == ("numpy-on-grad", lsp.Position(2, 7))
    previous = {uri: item.result_id for uri, item in first.items()}

    waiting = asyncio.ensure_future(report(pulling, previous))
    await asyncio.sleep(1)
    assert not waiting.done()
    clean = folder / "clean.py"
    clean.write_text(CLEAN.replace("requires_grad=True", "requires_grad=False"), encoding="utf-8")
    changed(pulling, clean)
    news = await waiting
    assert {uri.rpartition("/")[2]: list(item.items) for uri, item in news.items()} == {"uses.py": []}


async def test_they_are_sent_and_taken_back(pushing: Any, folder: Path) -> None:
    uri = (folder / "pack" / "b.py").as_uri()
    await until(lambda: len(pushing.diagnostics.get(uri, ())) == 1)
    await until(lambda: len(pushing.diagnostics.get((folder / "uses.py").as_uri(), ())) == 1)
    assert not any("venv" in other or "old" in other for other in pushing.diagnostics)
    (folder / "pack" / "b.py").unlink()
    changed(pushing, folder / "pack" / "b.py", lsp.FileChangeType.Deleted)
    await until(lambda: not pushing.diagnostics[uri])
    new = folder / "new.py"
    new.write_text(LEAK, encoding="utf-8")
    changed(pushing, new, lsp.FileChangeType.Created)
    await until(lambda: len(pushing.diagnostics.get(new.as_uri(), ())) == 1)


async def test_a_command_looks_at_all_once(asking: Any, folder: Path) -> None:
    assert not asking.result.capabilities.diagnostic_provider.workspace_diagnostics
    params = lsp.ExecuteCommandParams("gradvet.server.checkWorkspace")
    answer = await asyncio.wait_for(asking.workspace_execute_command_async(params), PATIENCE)
    assert "4" in str(answer)
    uri = (folder / "a.py").as_uri()
    assert len(asking.diagnostics[uri]) == 1
    assert any("4 findings in 4 files" in message.message for message in asking.messages)
    [token] = asking.progress_reports
    kinds = [update.kind for update in asking.progress_reports[token]]
    assert (kinds[0], kinds[-1]) == ("begin", "end")
    did_open(asking, LEAK, uri)
    assert len((await pulled(asking, uri=uri)).items) == 1
    await until(lambda: not asking.diagnostics[uri])  # it is told of twice otherwise


async def test_a_notebook_is_told_of_where_its_lines_stand_in_its_file(pulling: Any, folder: Path) -> None:
    """Its cells have no addresses as long as it is not open; the message says which of them is meant."""
    uri = (folder / "nb.ipynb").as_uri()
    first = await report(pulling, {})
    [found] = first[uri].items
    line = NOTEBOOK.split("\n")[found.range.start.line]
    told = line[found.range.start.character : found.range.end.character]
    assert (found.code, told) == ("numpy-on-grad", "(w * 2).numpy()")
    assert "(line 3 of cell 2)" in found.message

    cell = lsp.NotebookCell(lsp.NotebookCellKind.Code, "vscode-notebook-cell:/nb.ipynb#c1")
    pulling.notebook_document_did_open(
        lsp.DidOpenNotebookDocumentParams(
            notebook_document=lsp.NotebookDocument(uri, "jupyter-notebook", 1, [cell]),
            cell_text_documents=[lsp.TextDocumentItem(cell.document, "python", 1, LEAK)],
        )
    )
    news = await report(pulling, {uri: item.result_id for uri, item in first.items()})
    assert list(news[uri].items) == []  # from now on, its cells are asked for
