"""One client's session: what it can do, what it chose, its open texts and the newest analysis of each."""

import asyncio
import functools
import logging
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, cast

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

from gradvet.analysis import Analysis, Draft, analyze
from gradvet.config import Config
from gradvet.lsp import proto
from gradvet.lsp.abilities import Abilities
from gradvet.lsp.documents import Documents, Whole
from gradvet.lsp.kept import Kept
from gradvet.lsp.newest import Newest
from gradvet.lsp.settings import Chosen, for_file
from gradvet.lsp.uris import path_of
from gradvet.lsp.wire import Protocol
from gradvet.project import Project, reader
from gradvet.syntax.packages import Read, with_slashes
from gradvet.text import Source
from gradvet.words import Words, words_for

log = logging.getLogger(__name__)

# Seconds without an edit before files that import the edited one are analysed: they are not what the user looks at.
PEACE = 0.4
_ANALYSERS = 2  # one for what the user edits, one for what follows from that
_HELPERS = 2  # for hovers and the like, which must not wait for an analysis of another file

Handler = TypeVar("Handler", bound=Callable[..., Coroutine[Any, Any, Any]])
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Known:
    """A document, its analysis, and where its offsets lie for this client."""

    document: Whole
    analysis: Analysis
    place: proto.Place


class Session(LanguageServer):
    """The server's whole state. All of it can be rebuilt from what the client sends."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Begin with a client that can do nothing; `begin` follows with the real one."""
        super().__init__(*args, protocol_cls=Protocol, **kwargs)
        self.analysers = ThreadPoolExecutor(_ANALYSERS, "gradvet-analysis")
        self.helpers = ThreadPoolExecutor(_HELPERS, "gradvet-view")
        self.begin(Abilities(), proto.Encoding(), Chosen())

    def begin(self, abilities: Abilities, encoding: proto.Encoding, settings: Chosen) -> None:
        """Start afresh for the client that has just introduced itself."""
        self.abilities = abilities
        self.locale: str | None = None
        self.settings = settings
        self.of_folders: Mapping[str, Chosen] = {}
        self.documents = Documents(encoding)
        self.newest = Newest(self.documents, self._prepare, executor=self.analysers)
        self.on_change: list[Callable[[frozenset[str] | None], None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._project = Project(self.warn)
        self._kept = Kept()
        self._configs: dict[str, Config] = {}
        self._drafts: dict[str, Draft] = {}
        self._pushes: dict[str, asyncio.Task[None]] = {}
        self._pushed: dict[str, tuple[str, ...]] = {}
        self._warned: set[str] = set()
        self._touched: set[str] = set()
        self._looking: asyncio.Task[None] | None = None
        self.parent: asyncio.Task[None] | None = None
        self.survey: Any = None

    @property
    def words(self) -> Words:
        """The language that this client's user reads."""
        return words_for(self.locale)

    @property
    def said_goodbye(self) -> bool:
        """Whether the client has asked for the end."""
        return cast("Protocol", self.protocol).said_goodbye

    def sweep(self) -> None:
        """Drop what is held of notifications that are over."""
        cast("Protocol", self.protocol).sweep()

    def listens(self) -> None:
        """Remember the event loop, for what threads have to tell."""
        self._loop = asyncio.get_running_loop()

    async def work(self, work: Callable[..., Result], *args: Any) -> Result:
        """Do something in a thread: the event loop is for messages."""
        return await asyncio.get_running_loop().run_in_executor(self.helpers, functools.partial(work, *args))

    async def known(self, uri: str) -> Known | None:
        """What is known of a text as it then stands; None when it is not open or could not be analysed."""
        found = await self.newest.analysis(self.documents.whole(uri))
        return None if found is None else Known(*found, self.place(*found, uri))

    def place(self, document: Whole, analysis: Analysis, uri: str) -> proto.Place:
        """Where the analysis's offsets lie for this client, with positions in one of the texts."""
        return proto.Place(analysis.source, self.documents.encoding, document.pieces(), uri)

    def _prepare(self, document: Whole) -> Callable[[], Analysis]:
        def work() -> Analysis:
            config = self._configs[document.uri] = self.config(document)
            source = document.source()
            key = (source.path, "\0".join(source[text] for text in source.texts), config)
            since = self._kept.changes
            if (known := self._kept.get(key)) is not None:
                return known
            draft = self._drafts.setdefault(document.uri, Draft())
            before = draft.module
            try:
                analysis = analyze(source, config, self.reader(document), draft)
            finally:
                if draft.moved:
                    self._kept.outdated(before)
            # without word of changes on the disk, nobody knows whether what it rests on is still the same;
            # and what stands for a statement that does not parse may be another one the next time
            fixed = self.abilities.watch_files or not analysis.read_paths
            if fixed and not analysis.module.former:
                self._kept.put(key, analysis, since)
            return analysis

        return work

    def again(self, document: Whole, source: Source) -> Analysis:
        """Analyse a text that might take the place of the document's, with the same settings. For threads."""
        return analyze(source, self._configs.get(document.uri, Config()), self.reader(document))

    def reader(self, document: Whole) -> Read | None:
        """Gives the modules that a file imports as they are in the editor, or else on the disk."""
        return reader(Path(document.path), self.documents.texts()) if document.on_disk else None

    def chosen(self, uri: str) -> Chosen:
        """The editor's settings for a text: those of the workspace's folder that it is in, else those of all."""
        whole = self.documents.whole(uri)
        folders = [folder for folder in self.of_folders if whole.startswith(f"{folder.rstrip('/')}/")]
        return self.of_folders[max(folders, key=len)] if folders else self.settings

    def config(self, document: Whole) -> Config:
        """The editor's settings, and for a file those of its project. For threads."""
        editor = self.chosen(document.uri).config
        if not document.on_disk:
            return editor
        path = Path(document.path)
        return for_file(self._project.settings(path), editor, path)

    def warn(self, message: str) -> None:
        """Tell the user about something that only they can put right, once. May be called in any thread."""
        log.warning(message)
        if message in self._warned:
            return
        self._warned.add(message)
        told = lsp.ShowMessageParams(lsp.MessageType.Warning, f"Gradvet: {self.words.say(message)}")
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self.window_show_message, told)

    def diagnostics(self, known: Known) -> list[lsp.Diagnostic]:
        """What the client is told of one text.

        Syntax problems are not among them: every editor has a Python checker that shows them, a file
        that is being typed is broken most of the time, and Gradvet judges what still parses.
        """
        return [
            proto.to_diagnostic(known.place, diagnostic, self.words, can=self.abilities.shows)
            for diagnostic in known.analysis.diagnostics
            if known.place.holds(diagnostic.span)
        ]

    def push(self, uri: str) -> None:
        """Send the diagnostics of a text, or of its notebook, when they are known, to a client that does not ask."""
        whole = self.documents.whole(uri)
        self._stop_push(whole)
        if not self.abilities.pull:
            self._pushes[whole] = asyncio.ensure_future(self._publish(whole))

    def touched(self, *uris: str) -> None:
        """Texts may have changed that others rest on: look again at those, as soon as there is peace."""
        self._touched.update(uris)
        paths = [with_slashes(path_of(uri)) for uri in uris if uri.startswith("file:")]
        self._kept.changed(paths)
        for name in [name for name, draft in self._drafts.items() if not draft.read_paths.isdisjoint(paths)]:
            del self._drafts[name]
        if self._looking is not None:
            self._looking.cancel()
        self._looking = asyncio.ensure_future(self._look_again())

    async def _look_again(self) -> None:
        await asyncio.sleep(PEACE)
        paths = {with_slashes(path_of(uri)) for uri in self._touched if uri.startswith("file:")}
        cells = any(self.documents.whole(uri) != uri for uri in self._touched)
        stale = []
        for document in self.documents:
            analysis = await self.newest.finished(document.uri)
            if analysis is not None and not paths.isdisjoint(analysis.read_paths):
                stale.append(document)
        self._touched.clear()
        self.renew(stale)
        if cells and not stale and self.abilities.refresh:  # other cells may say something else now
            self.workspace_diagnostic_refresh(None)
        self._changed(frozenset(paths))

    def renew(self, documents: list[Whole]) -> None:
        """Analyse these anew, and let the client know."""
        for document in documents:
            self.newest.forget(document.uri)
            self._drafts.pop(document.uri, None)
            self.push(document.uri)
        if not documents:
            return
        can = self.abilities
        if can.refresh:
            self.workspace_diagnostic_refresh(None)
        if can.refresh_hints:
            self.workspace_inlay_hint_refresh(None)
        if can.refresh_lenses:
            self.workspace_code_lens_refresh(None)
        if can.refresh_tokens:
            self.workspace_semantic_tokens_refresh(None)

    def _changed(self, paths: frozenset[str] | None) -> None:
        """Something changed by which files that are not open may be judged anew: some texts, or the settings."""
        for listener in self.on_change:
            listener(paths)

    def folders(self) -> list[str]:
        """The addresses of the workspace's folders."""
        folders = list(self.workspace.folders)
        root = self.workspace.root_uri
        return folders or ([root] if root else [])

    def closed(self, *uris: str, whole: str | None = None) -> None:
        """Forget texts, or a notebook, and let a client that was sent their diagnostics forget them too."""
        name = whole or next(iter(uris), "")
        self._stop_push(name)
        self._configs.pop(name, None)
        self._drafts.pop(name, None)
        self.newest.forget(name)
        self.touched(*uris)
        if not self.abilities.pull:
            for uri in {*uris, *self._pushed.pop(name, ())}:
                self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri=uri, diagnostics=[]))

    async def refresh(self) -> None:
        """Settings may have changed: what was said under others no longer holds."""
        self._project = Project(self.warn)
        stale = []
        for document in self.documents:
            before = self._configs.get(document.uri)
            if before is not None and before != await self.work(self.config, document):
                stale.append(document)
        self.renew(stale)
        self._changed(None)

    def take_settings(self, settings: Chosen, of_folders: Mapping[str, Chosen]) -> bool:
        """Take new settings of the editor; gives whether they are new."""
        every = (settings, *of_folders.values())
        for complaint in dict.fromkeys(complaint for one in every for complaint in one.complaints):
            self.warn(complaint)
        new = (settings, of_folders) != (self.settings, self.of_folders)
        self.settings, self.of_folders = settings, of_folders
        return new

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Log it. The user is in the middle of something; a pop-up helps nobody."""
        log.error("%s: %s", getattr(source, "__name__", source), error, exc_info=error)

    def _stop_push(self, uri: str) -> None:
        if (task := self._pushes.pop(uri, None)) is not None:
            task.cancel()

    async def _publish(self, whole: str) -> None:
        """Send the diagnostics of each text of a document, and take back those of texts that are gone."""
        try:
            found = await self.newest.analysis(whole)
            if found is None:
                return
            document, analysis = found
            known = Known(document, analysis, self.place(document, analysis, whole))
            sent = []
            for text in document.texts:
                there = replace(known, place=replace(known.place, uri=text.uri))
                items = await self.work(self.diagnostics, there)
                sent.append(lsp.PublishDiagnosticsParams(text.uri, items, text.version))
            if self.documents.get(whole) is not document:
                return
            told = tuple(text.uri for text in document.texts)
            gone = set(self._pushed.get(whole, ())) - set(told)
            self._pushed[whole] = told
            for params in (*sent, *(lsp.PublishDiagnosticsParams(uri, []) for uri in sorted(gone))):
                self.text_document_publish_diagnostics(params)
        except Exception:
            log.exception("the diagnostics of %s could not be sent", whole)


def answers(empty: Callable[[], Any]) -> Callable[[Handler], Handler]:
    """Make a request's handler that fails log its failure and give the empty answer."""

    def decorate(handler: Handler) -> Handler:
        @functools.wraps(handler)
        async def safe(ls: Session, *params: Any) -> Any:
            try:
                return await handler(ls, *params)
            except Exception:
                log.exception("%s failed", handler.__name__)
                return empty()

        return cast("Handler", safe)

    return decorate
