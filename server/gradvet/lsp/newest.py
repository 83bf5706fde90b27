"""The newest analysis of each open document: made once, in a thread, shared by all who ask."""

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass

from gradvet.analysis import Analysis
from gradvet.lsp.documents import Documents, Whole
from gradvet.stopping import Stopped, stop_if_asked, stoppable

log = logging.getLogger(__name__)

# Seconds without an edit before work begins: keys come 30 to 200 ms apart, and nobody notices 50.
SETTLE = 0.05


Prepare = Callable[[Whole], Callable[[], Analysis]]


@dataclass(frozen=True, slots=True)
class _Work:
    document: Whole
    task: "asyncio.Task[Analysis | None]"
    stop: threading.Event


class Newest:
    """Analyses on demand. Per document one runs at a time, and none begins while edits still come in.

    One that is under way when a newer text is asked for is stopped.
    """

    def __init__(
        self, documents: Documents, prepare: Prepare, settle: float = SETTLE, executor: Executor | None = None
    ) -> None:
        """Take the texts from `documents`. What `prepare` returns is called in a thread of the executor."""
        self._documents = documents
        self._prepare = prepare
        self._settle = settle
        self._executor = executor
        self._work: dict[str, _Work] = {}

    async def analysis(self, uri: str) -> tuple[Whole, Analysis] | None:
        """The analysis of the document as it then stands; None when it was closed or could not be analysed.

        Cancelling the caller does not stop work that others wait for, and waiting costs nothing:
        thirty callers during one burst of typing share the one analysis that follows it.
        """
        while (document := self._documents.get(uri)) is not None:
            work = self._work.get(uri)
            if work is None:
                self._begin(document)
            elif work.document is document:
                analysis = await asyncio.shield(work.task)
                if self._work.get(uri) is work and self._documents.get(uri) is document:
                    return None if analysis is None else (document, analysis)
            elif not work.task.done():
                work.stop.set()  # nobody is told of a text that is gone
                await asyncio.wait({work.task})
            else:
                await asyncio.sleep(self._settle)
                if self._work.get(uri) is work and self._documents.get(uri) is document:
                    self._begin(document)
        return None

    async def finished(self, uri: str) -> Analysis | None:
        """The last analysis that was begun, when it is done; none is begun for this."""
        work = self._work.get(uri)
        return None if work is None else await asyncio.shield(work.task)

    def busy(self) -> bool:
        """Whether an analysis is under way."""
        return any(not work.task.done() for work in self._work.values())

    def forget(self, uri: str | None = None) -> None:
        """Drop what is known of one document, or of all: its text or the settings are no longer the same."""
        for name in [*self._work] if uri is None else [uri]:
            if (work := self._work.pop(name, None)) is not None:
                work.stop.set()

    def _begin(self, document: Whole) -> None:
        stop = threading.Event()
        self._work[document.uri] = _Work(document, asyncio.create_task(self._analyzed(document, stop)), stop)

    async def _analyzed(self, document: Whole, stop: threading.Event) -> Analysis | None:
        """The analysis, or None: one file that breaks the engine must not take the server along."""

        def work() -> Analysis | None:
            try:
                with stoppable(stop.is_set):
                    stop_if_asked()
                    return self._prepare(document)()
            except Stopped:
                return None

        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor, work)
        except Exception:
            log.exception("the analysis of %s failed", document.uri)
            return None
