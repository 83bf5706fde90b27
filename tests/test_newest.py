"""How work on a document is shared: once for one text, one at a time, none for a text in passing."""

import asyncio
import threading
from collections.abc import Callable
from functools import partial

import pytest
from lsprotocol import types as lsp

from fake_analysis import analyze_lost
from gradvet.analysis import Analysis, analyze
from gradvet.lsp.documents import Document, Documents, Whole
from gradvet.lsp.newest import Newest
from gradvet.lsp.proto import Encoding
from gradvet.stopping import Stopped, stoppable
from gradvet.text import Source
from lsp_client import URI

pytestmark = pytest.mark.asyncio


class Bench:
    """Documents, an analyzer that waits for leave, and a record of what it was given."""

    def __init__(self, settle: float = 0.0) -> None:
        self.documents = Documents(Encoding())
        self.newest = Newest(self.documents, lambda document: partial(self.analyze, document), settle)
        self.leave = threading.Event()
        self.begun: list[str] = []
        self.at_once = 0
        self.most_at_once = 0

    def analyze(self, document: Whole) -> Analysis:
        """Note what is asked for, and wait for leave."""
        assert isinstance(document, Document)
        self.begun.append(document.text)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        assert self.leave.wait(10)
        self.at_once -= 1
        return analyze_lost(Source(document.path, document.text))

    def open(self, text: str, uri: str = URI) -> None:
        """Show a text."""
        self.documents.open(lsp.TextDocumentItem(uri, "python", 1, text))

    def edit(self, text: str, version: int = 2) -> None:
        """Put another text in its place."""
        changes = [lsp.TextDocumentContentChangeWholeDocument(text)]
        self.documents.change(lsp.VersionedTextDocumentIdentifier(version, URI), changes)

    def ask(self, uri: str = URI) -> "asyncio.Task[tuple[Whole, Analysis] | None]":
        """Ask for the analysis, as a request does."""
        return asyncio.ensure_future(self.newest.analysis(uri))


async def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds, but not for ever."""

    async def wait() -> None:
        while not holds():  # noqa: ASYNC110  what is waited for happens in a thread
            await asyncio.sleep(0)

    await asyncio.wait_for(wait(), 10)


async def test_all_who_ask_share_one_analysis() -> None:
    bench = Bench()
    bench.open("lost()")
    asked = [bench.ask() for _ in range(5)]
    bench.leave.set()
    answers = await asyncio.gather(*asked)
    assert bench.begun == ["lost()"]
    assert len({id(answer[1]) for answer in answers if answer}) == 1
    again = await bench.ask()
    assert again == answers[0]
    assert bench.begun == ["lost()"]


async def test_texts_in_passing_are_skipped_and_only_one_analysis_runs_at_a_time() -> None:
    bench = Bench()
    bench.open("0")
    asked = [bench.ask()]
    await until(lambda: bench.begun == ["0"])
    for version in range(1, 6):
        bench.edit(str(version), version)
        asked.append(bench.ask())
        await asyncio.sleep(0)
    bench.leave.set()
    answers = await asyncio.gather(*asked)
    assert bench.begun == ["0", "5"]
    assert bench.most_at_once == 1
    assert {answer[0].texts[0].text for answer in answers if answer} == {
        "5"
    }  # nobody is told of a text that is gone


async def test_work_waits_until_the_edits_settle() -> None:
    bench = Bench(settle=0.2)
    bench.leave.set()
    bench.open("0")
    await bench.ask()
    bench.edit("1")
    first = bench.ask()
    await asyncio.sleep(0.05)
    bench.edit("2", 3)
    answer = await first
    assert answer is not None
    assert answer[0].texts[0].text == "2"
    assert bench.begun == ["0", "2"]


async def test_one_who_gives_up_does_not_stop_the_others() -> None:
    bench = Bench()
    bench.open("lost()")
    impatient, patient = bench.ask(), bench.ask()
    await until(lambda: bool(bench.begun))
    impatient.cancel()
    bench.leave.set()
    assert await patient is not None
    assert impatient.cancelled()
    assert bench.begun == ["lost()"]


async def test_work_that_nobody_waits_for_any_more_is_kept_for_the_next() -> None:
    bench = Bench()
    bench.open("lost()")
    asked = bench.ask()
    await until(lambda: bool(bench.begun))
    asked.cancel()
    bench.leave.set()
    assert await bench.ask() is not None
    assert bench.begun == ["lost()"]


async def test_a_document_that_is_closed_meanwhile_has_no_answer() -> None:
    bench = Bench()
    bench.open("lost()")
    asked = bench.ask()
    await until(lambda: bool(bench.begun))
    bench.documents.close(URI)
    bench.newest.forget(URI)
    bench.leave.set()
    assert await asked is None
    assert await bench.ask("file:///never/opened.py") is None


async def test_after_new_settings_the_same_text_is_looked_at_again() -> None:
    bench = Bench()
    bench.open("lost()")
    asked = bench.ask()
    await until(lambda: bool(bench.begun))
    bench.newest.forget()
    bench.leave.set()
    assert await asked is not None
    assert bench.begun == ["lost()", "lost()"]


async def test_documents_do_not_wait_for_each_other() -> None:
    bench = Bench()
    bench.open("a", "file:///a.py")
    bench.open("b", "file:///b.py")
    asked = [bench.ask("file:///a.py"), bench.ask("file:///b.py")]
    await until(lambda: sorted(bench.begun) == ["a", "b"])
    bench.leave.set()
    assert all(await asyncio.gather(*asked))


async def test_a_text_that_fails_fails_once(caplog: pytest.LogCaptureFixture) -> None:
    documents = Documents(Encoding())
    tried: list[str] = []

    def fail(document: Whole) -> Analysis:
        tried.extend(text.text for text in document.texts)
        raise RecursionError

    newest = Newest(documents, lambda document: partial(fail, document))
    documents.open(lsp.TextDocumentItem(URI, "python", 1, "x"))
    assert await newest.analysis(URI) is None
    assert await newest.analysis(URI) is None
    assert tried == ["x"]
    assert "the analysis of file:///w/train.py failed" in caplog.text


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///w/a%20b/%E6%BC%A2.py", "/w/a b/漢.py"),
        ("untitled:Untitled-1", "untitled:Untitled-1"),
        ("vscode-notebook-cell:/w/nb.ipynb#c%201", "vscode-notebook-cell:/w/nb.ipynb#c 1"),
    ],
)
async def test_the_path_of_a_document(uri: str, path: str) -> None:
    document = Document(uri, 1, "")
    assert document.path == path
    assert document.on_disk == uri.startswith("file:")


async def test_work_on_a_text_that_is_gone_is_stopped() -> None:
    """And what is asked for then begins at once."""
    text = "import torch\nx = torch.ones(3)\n" + "".join(
        f"def f{n}(x):\n    return x * {n}\n" for n in range(3000)
    )
    text += "".join(f"x = f{n}(x)\n" for n in range(3000))
    documents = Documents(Encoding())
    begun = threading.Event()

    def prepared(document: Whole) -> Callable[[], Analysis]:
        def work() -> Analysis:
            begun.set()
            return analyze(document.source())

        return work

    newest = Newest(documents, prepared, 0.0)
    documents.open(lsp.TextDocumentItem(URI, "python", 1, text))
    first = asyncio.ensure_future(newest.analysis(URI))
    await until(begun.is_set)
    await asyncio.sleep(0.05)
    change = lsp.TextDocumentContentChangeWholeDocument("x = 1\n")
    documents.change(lsp.VersionedTextDocumentIdentifier(2, URI), [change])
    second = await newest.analysis(URI)
    assert second is not None
    assert second[1].source.text == "x = 1\n"
    known = await first
    assert known is not None
    assert known[1] is second[1]


async def test_a_run_ends_when_it_is_asked_to() -> None:
    steps: list[int] = []

    def asked() -> bool:
        steps.append(1)
        return len(steps) > 2

    text = "import torch\nx = torch.ones(3)\n" + "x = x + 1\n" * 1000
    with pytest.raises(Stopped), stoppable(asked):
        analyze(Source("a.py", text))
    assert len(steps) == 3
    assert len(analyze(Source("a.py", text)).facts.states) > 1000
