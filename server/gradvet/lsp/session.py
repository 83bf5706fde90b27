"""One client's session: what it can do, what it chose, its open texts and the newest analysis of each."""

import asyncio
import functools
import hashlib
import logging
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar, cast

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

from gradvet.analysis import Analysis, analyze
from gradvet.config import Config
from gradvet.lsp import proto
from gradvet.lsp.abilities import Abilities
from gradvet.lsp.documents import Document, Documents, path_of
from gradvet.lsp.newest import Newest
from gradvet.lsp.settings import Chosen, for_file
from gradvet.project import Project, ProjectError, reader
from gradvet.syntax.packages import Read, with_slashes
from gradvet.text import Source

log = logging.getLogger(__name__)

# Seconds without an edit before files that import the edited one are analysed: they are not what the user looks at.
PEACE = 0.4

Handler = TypeVar("Handler", bound=Callable[..., Coroutine[Any, Any, Any]])


class Session(LanguageServer):
    """The server's whole state. All of it can be rebuilt from what the client sends."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Begin with a client that can do nothing; `begin` follows with the real one."""
        super().__init__(*args, **kwargs)
        self.begin(Abilities(), proto.Encoding(), Chosen())

    def begin(self, abilities: Abilities, encoding: proto.Encoding, settings: Chosen) -> None:
        """Start afresh for the client that has just introduced itself."""
        self.abilities = abilities
        self.settings = settings
        self.documents = Documents(encoding)
        self.newest = Newest(self.documents, self._prepare)
        self._project = Project()
        self._configs: dict[str, Config] = {}
        self._pushes: dict[str, asyncio.Task[None]] = {}
        self._warned: set[str] = set()
        self._touched: set[str] = set()
        self._looking: asyncio.Task[None] | None = None

    def _prepare(self, document: Document) -> Callable[[], Analysis]:
        config = self._configs[document.uri] = self._config(document)
        source = Source(document.path, document.text)
        return functools.partial(analyze, source, config, self._reader(document))

    def again(self, document: Document, source: Source) -> Analysis:
        """Analyse a text that might take the place of the document's, with the same settings. For threads."""
        return analyze(source, self._configs[document.uri], self._reader(document))

    def _reader(self, document: Document) -> Read | None:
        """Gives the modules that a file imports as they are in the editor, or else on the disk."""
        return reader(Path(document.path), self.documents.texts()) if document.on_disk else None

    def _config(self, document: Document) -> Config:
        """The editor's settings, and for a file those of its project."""
        if not document.on_disk:
            return self.settings.config
        path = Path(document.path)
        try:
            return for_file(self._project.settings(path), self.settings.config, path)
        except ProjectError as error:
            self.warn(str(error))
            return self.settings.config

    def warn(self, message: str) -> None:
        """Tell the user about something that only they can put right, once."""
        log.warning(message)
        if message not in self._warned:
            self._warned.add(message)
            self.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Warning, f"Gradvet: {message}"))

    def place(self, document: Document, analysis: Analysis) -> proto.Place:
        """Where the analysis's offsets lie for this client."""
        return proto.Place(document.uri, analysis.source, self.documents.encoding)

    def diagnostics(self, document: Document, analysis: Analysis) -> list[lsp.Diagnostic]:
        """What the client is told of a document.

        Syntax problems are not among them: every editor has a Python checker that shows them, a file
        that is being typed is broken most of the time, and Gradvet judges what still parses.
        """
        place, can = self.place(document, analysis), self.abilities
        return [
            proto.to_diagnostic(place, diagnostic, related=can.related, links=can.links)
            for diagnostic in analysis.diagnostics
        ]

    def push(self, uri: str) -> None:
        """Send a document's diagnostics when they are known, to a client that does not ask for them."""
        self._stop_push(uri)
        if not self.abilities.pull:
            self._pushes[uri] = asyncio.ensure_future(self._publish(uri))

    def touched(self, *uris: str) -> None:
        """Files may have changed that others import: look again at those, as soon as there is peace."""
        self._touched.update(with_slashes(path_of(uri)) for uri in uris)
        if self._looking is not None:
            self._looking.cancel()
        self._looking = asyncio.ensure_future(self._look_again())

    async def _look_again(self) -> None:
        await asyncio.sleep(PEACE)
        stale = []
        for document in self.documents:
            analysis = await self.newest.finished(document.uri)
            if analysis is not None and not self._touched.isdisjoint(analysis.read_paths):
                stale.append(document)
        self._touched.clear()
        self._renew(stale)

    def _renew(self, documents: list[Document]) -> None:
        """Analyse these anew, and let the client know."""
        for document in documents:
            self.newest.forget(document.uri)
            self.push(document.uri)
        if documents and self.abilities.refresh:
            self.workspace_diagnostic_refresh(None)

    def closed(self, uri: str) -> None:
        """Forget a document, and let a client that was sent its diagnostics forget them too."""
        self._stop_push(uri)
        self.documents.close(uri)
        self.touched(uri)
        self._configs.pop(uri, None)
        self.newest.forget(uri)
        if not self.abilities.pull:
            self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri=uri, diagnostics=[]))

    def refresh(self) -> None:
        """Settings may have changed: what was said under others no longer holds."""
        self._project = Project()
        self._renew([document for document in self.documents if self._changed(document)])

    def _changed(self, document: Document) -> bool:
        return self._configs.get(document.uri) not in (None, self._config(document))

    def sweep(self) -> None:
        """Drop what pygls holds of notifications that are over: 2 kB for every key, for ever."""
        futures = getattr(self.protocol, "_request_futures", {})
        for key in [key for key, future in futures.items() if future.done()]:
            del futures[key]

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Log it. The user is in the middle of something; a pop-up helps nobody."""
        log.error("%s: %s", getattr(source, "__name__", source), error, exc_info=error)

    def _stop_push(self, uri: str) -> None:
        if (task := self._pushes.pop(uri, None)) is not None:
            task.cancel()

    async def _publish(self, uri: str) -> None:
        try:
            if (known := await self.newest.analysis(uri)) is not None:
                document, analysis = known
                items = self.diagnostics(document, analysis)
                self.text_document_publish_diagnostics(
                    lsp.PublishDiagnosticsParams(uri=uri, diagnostics=items, version=document.version)
                )
        except Exception:
            log.exception("the diagnostics of %s could not be sent", uri)


def result_id(items: list[lsp.Diagnostic]) -> str:
    """A name for these very diagnostics: the same ones have the same name, so nothing need be remembered."""
    return hashlib.blake2b(repr(items).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def answers(empty: Callable[[], Any]) -> Callable[[Handler], Handler]:
    """Make a request's handler that fails log its failure and give the empty answer."""

    def decorate(handler: Handler) -> Handler:
        @functools.wraps(handler)
        async def safe(ls: Session, params: Any) -> Any:
            try:
                return await handler(ls, params)
            except Exception:
                log.exception("%s failed", handler.__name__)
                return empty()

        return cast("Handler", safe)

    return decorate
