"""A session in which files import one another: what is not yet saved counts, and importers are looked at again."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types as lsp
from pytest_lsp import LanguageClient

from gradvet.lsp.session import PEACE
from lsp_client import (
    PATIENCE,
    capabilities,
    connected,
    did_change,
    did_open,
    document,
    hover_text,
    pulled,
    session,
)

pytestmark = pytest.mark.asyncio

TRAIN = """\
import torch
from meters import Meter

model, meter = torch.nn.Linear(4, 1), Meter()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    loss = model(torch.randn(8, 4)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    "😋漢é"; meter.add(loss)
"""
LEAKY = "class Meter:\n    total = 0.0\n\n    def add(self, value):\n        self.total += value\n"
CAREFUL = LEAKY.replace("+= value", "+= value.detach()  # 😋")
LEAK = ["graph-retained"]


@session()
async def client(lsp_client: LanguageClient) -> Any:
    """A client that is sent diagnostics."""
    async with connected(lsp_client, capabilities()):
        yield


@session()
async def pulling(lsp_client: LanguageClient) -> Any:
    """A client that asks for diagnostics, and can be told to ask again."""
    async with connected(lsp_client, capabilities(pull=True, refresh=True)):
        yield


class Folder:
    """A project on the disk."""

    def __init__(self, path: Path) -> None:
        (path / "meters.py").write_text(LEAKY, encoding="utf-8")
        self.meters, self.train = ((path / name).as_uri() for name in ("meters.py", "train 漢.py"))
        self.path = path


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """A meter on the disk, and a script that only the editor has."""
    return Folder(tmp_path)


async def told(client: Any, uri: str, codes: list[str]) -> None:
    """Wait until the client has been sent just these findings of a document."""

    async def wait() -> None:
        while uri not in client.diagnostics or [d.code for d in client.diagnostics[uri]] != codes:
            await client.wait_for_notification(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)

    await asyncio.wait_for(wait(), PATIENCE)


async def refreshed(client: Any, times: int) -> None:
    """Wait until the client was told so many times to ask again."""

    async def wait() -> None:
        while client.diagnostic_refresh_count < times:  # noqa: ASYNC110  the client counts them without a word
            await asyncio.sleep(0.02)

    await asyncio.wait_for(wait(), PATIENCE)


async def test_an_importer_follows_what_it_imports(client: Any, folder: Folder) -> None:
    """What is on the disk, then what the editor has, then the disk again."""
    did_open(client, TRAIN, folder.train)
    await told(client, folder.train, LEAK)
    did_open(client, LEAKY, folder.meters)
    did_change(client, CAREFUL, 2, folder.meters)
    await told(client, folder.train, [])
    did_change(client, LEAKY, 3, folder.meters)
    await told(client, folder.train, LEAK)
    did_change(client, CAREFUL, 4, folder.meters)
    await told(client, folder.train, [])
    client.text_document_did_close(lsp.DidCloseTextDocumentParams(document(folder.meters)))
    await told(client, folder.train, LEAK)


async def test_a_change_on_the_disk_is_followed(client: Any, folder: Folder) -> None:
    """Another program may write files too; a client that watches them says so."""
    did_open(client, TRAIN, folder.train)
    await told(client, folder.train, LEAK)
    (folder.path / "meters.py").write_text(CAREFUL, encoding="utf-8")
    change = lsp.FileEvent(folder.meters, lsp.FileChangeType.Changed)
    client.workspace_did_change_watched_files(lsp.DidChangeWatchedFilesParams([change]))
    await told(client, folder.train, [])


async def test_a_module_that_comes_to_be_is_found(client: Any, folder: Folder) -> None:
    """That it was missing is remembered."""
    did_open(client, TRAIN.replace("meters", "totals"), folder.train)
    await told(client, folder.train, [])
    did_open(client, LEAKY, (folder.path / "totals.py").as_uri())
    await told(client, folder.train, LEAK)


async def test_a_client_that_asks_is_told_to_ask_again(pulling: Any, folder: Folder) -> None:
    """But not for a file that nobody imports."""
    assert pulling.result.capabilities.diagnostic_provider.inter_file_dependencies
    did_open(pulling, TRAIN, folder.train)
    assert LEAK == [d.code for d in (await pulled(pulling, uri=folder.train)).items]
    did_open(pulling, CAREFUL, folder.meters)
    await refreshed(pulling, 1)
    assert [] == list((await pulled(pulling, uri=folder.train)).items)

    did_open(pulling, LEAKY, (folder.path / "other.py").as_uri())
    await asyncio.sleep(3 * PEACE)  # a refresh would have come by then
    assert 1 == pulling.diagnostic_refresh_count
    did_change(pulling, LEAKY, 2, folder.meters)
    await refreshed(pulling, 2)
    assert LEAK == [d.code for d in (await pulled(pulling, uri=folder.train)).items]


async def test_a_hover_names_the_other_file(pulling: Any, folder: Folder) -> None:
    """Its lines are not lines of this one."""
    net = "import torch\n\ndef make():\n    return torch.nn.Linear(4, 1)\n"
    (folder.path / "net.py").write_text(net, encoding="utf-8")
    text = TRAIN.replace("torch.nn.Linear(4, 1)", "make()").replace(
        "import torch\n", "import torch\nfrom net import make\n"
    )
    did_open(pulling, text, folder.train)
    row = text.splitlines().index("    loss = model(torch.randn(8, 4)).pow(2).mean()")
    assert "line 4 of net.py" in await hover_text(pulling, row, 11, folder.train)
