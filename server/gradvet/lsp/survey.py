"""What is known of the workspace's files that nobody has open: opt-in, in the background, with progress."""

import asyncio
import logging
import os
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from lsprotocol import types as lsp

from gradvet.config import Config
from gradvet.lsp.result_id import NOTHING_FOUND, result_id
from gradvet.lsp.session import Session
from gradvet.lsp.settings import NOTHING, for_file
from gradvet.lsp.surveyor import Surveyor, Task
from gradvet.lsp.uris import path_of, uri_of
from gradvet.project import Project
from gradvet.syntax.packages import with_slashes

log = logging.getLogger(__name__)

_WORTH_TELLING = 5  # files; fewer are done before anybody has read of it
_PYTHON = (".py", ".ipynb")


@dataclass(frozen=True, slots=True)
class _File:
    """What was found in a file. Of one without findings hardly anything is kept."""

    name: str
    items: tuple[lsp.Diagnostic, ...]
    read_paths: frozenset[str]
    config: Config


@dataclass(frozen=True, slots=True)
class Told:
    """News of a file: what was found, under which name."""

    uri: str
    name: str
    items: tuple[lsp.Diagnostic, ...]


class Survey:
    """Looks at all files of the workspace, and then at those that something has changed for."""

    def __init__(self, session: Session) -> None:
        """Know nothing yet."""
        self._session = session
        self._surveyor = Surveyor()
        self._known: dict[str, _File] = {}
        self._stale: set[str] = set()
        self._paths: tuple[str, ...] = ()
        self._list_again = True
        self.pulled = False
        self.asked = False
        self._published: set[str] = set()
        self._busy = asyncio.Lock()
        self._news = asyncio.Event()
        self._publishing: asyncio.Task[None] | None = None
        session.on_change.append(self.changed)

    # -- what happened meanwhile

    def changed(self, paths: frozenset[str] | None = None) -> None:
        """Files have changed, by their paths; None is that anything may have, such as the settings."""
        if paths is None:
            self._list_again = True
        else:
            self._stale |= paths
            self._stale |= {path for path, known in self._known.items() if paths & known.read_paths}
            self._list_again = self._list_again or not paths <= set(self._paths)
        self._news.set()

    async def news(self) -> None:
        """Wait until something has changed."""
        await self._news.wait()

    # -- looking

    async def look(self) -> AsyncIterator[Told]:
        """Bring up to date what is known, and tell of each file as it is known; first of those that are."""
        async with self._busy:
            self._news.clear()
            before = self._paths
            listed = await self._session.work(self._listed)
            self._paths = tuple(listed)
            for path in self._stale:
                self._known.pop(path, None)
            self._stale.clear()
            for path in before:
                if path not in listed:
                    self._known.pop(path, None)
                    yield Told(uri_of(path), NOTHING_FOUND, ())
            todo = []
            for path, config in listed.items():
                known = self._known.get(path)
                if known is None or known.config != config:
                    todo.append(path)
                else:
                    yield Told(uri_of(path), known.name, known.items)
            async with self._progress(len(todo)) as progress:
                for number, path in enumerate(todo):
                    if progress.cancelled():
                        break
                    progress.report(number, path)
                    told = await self._one(path, listed[path])
                    if told is not None:
                        yield told

    async def _one(self, path: str, config: Config) -> Told | None:
        """Look at one file; None for one that is open, which is told of elsewhere.

        A notebook that is open is told of in its cells, so nothing is left to say of its file.
        """
        session = self._session
        uri = uri_of(path)
        if path in self._open():
            self._known.pop(path, None)
            return None if path.endswith(".py") else Told(uri, NOTHING_FOUND, ())
        task = Task(
            path,
            uri,
            config,
            session.documents.texts(),
            session.documents.encoding,
            session.abilities.shows,
            session.locale,
        )
        seen = await self._surveyor.look(task)
        if seen.failure:
            log.warning("%s: %s", path, seen.failure)
        known = _File(result_id(seen.items), seen.items, seen.read_paths, config)
        self._known[path] = known
        return Told(uri, known.name, known.items)

    def _open(self) -> frozenset[str]:
        return frozenset(with_slashes(whole.path) for whole in self._session.documents if whole.on_disk)

    def _listed(self) -> Mapping[str, Config]:
        """The Python files and notebooks of the workspace, each with what holds for it. For a thread."""
        session = self._session
        project = Project(session.warn)
        paths: list[str] = [*self._paths]
        if self._list_again:
            self._list_again = False
            folders = [Path(path_of(folder)) for folder in session.folders()]
            files = (path for path in project.files(folders) if isinstance(path, Path))
            paths = [with_slashes(os.path.abspath(path)) for path in files if path.suffix.lower() in _PYTHON]
        found: dict[str, Config] = {}
        for path in paths:
            editor = session.chosen(uri_of(path)).config
            config = for_file(project.settings(Path(path)), editor, Path(path))
            if config != NOTHING and os.path.isfile(path):
                found[path] = config
        return found

    @asynccontextmanager
    async def _progress(self, count: int) -> "AsyncIterator[_Progress]":
        """Shows how far it is, where the client can and it takes a while."""
        session = self._session
        progress = _Progress(session, count)
        if session.abilities.progress and count >= _WORTH_TELLING:
            await progress.begin()
        try:
            yield progress
        finally:
            progress.end()

    # -- publishing, for clients that do not ask

    def publish(self) -> "asyncio.Task[None]":
        """Send what is found from now on, and again whenever something changes."""
        if self._publishing is None or self._publishing.done():
            self._news.set()
            self._publishing = asyncio.ensure_future(self._publish_always())
        return self._publishing

    async def publish_once(self) -> tuple[int, int]:
        """Send what is found; gives how many findings there are in how many files."""
        findings = files = 0
        async for told in self.look():
            findings += len(told.items)
            files += bool(told.items)
            self._send(told)
        return findings, files

    async def _publish_always(self) -> None:
        while True:
            await self.news()
            try:
                await self.publish_once()
            except Exception:
                log.exception("the workspace could not be looked at")
                return

    def stop(self) -> None:
        """Send nothing more, and take back what was sent."""
        if self._publishing is not None:
            self._publishing.cancel()
            self._publishing = None
        for uri in sorted(self._published):
            self._send(Told(uri, NOTHING_FOUND, ()))
        self._surveyor.stop()

    def opened(self, uri: str) -> None:
        """A file was opened: what was sent of it is taken back, since it is told of elsewhere now."""
        if uri in self._published and self._session.abilities.pull:
            self._send(Told(uri, NOTHING_FOUND, ()))

    def _send(self, told: Told) -> None:
        if not told.items and told.uri not in self._published:
            return
        if told.items:
            self._published.add(told.uri)
        else:
            self._published.discard(told.uri)
        self._session.text_document_publish_diagnostics(
            lsp.PublishDiagnosticsParams(told.uri, list(told.items))
        )


class _Progress:
    """A bar that the user may cancel; nothing where it was not begun."""

    def __init__(self, session: Session, count: int) -> None:
        self._session = session
        self._count = count
        self._token: str | None = None

    async def begin(self) -> None:
        token = f"gradvet-{uuid.uuid4()}"
        try:
            await self._session.work_done_progress.create_async(token)
        except Exception:
            log.exception("the client shows no progress")
            return
        self._token = token
        begin = lsp.WorkDoneProgressBegin(
            title=f"Gradvet: {self._session.words.say('checking the workspace')}",
            cancellable=True,
            percentage=0,
        )
        self._session.work_done_progress.begin(token, begin)

    def report(self, done: int, path: str) -> None:
        if self._token is not None:
            message = f"{done + 1}/{self._count} {path.rpartition('/')[2]}"
            report = lsp.WorkDoneProgressReport(message=message, percentage=100 * done // self._count)
            self._session.work_done_progress.report(self._token, report)

    def cancelled(self) -> bool:
        future = self._session.work_done_progress.tokens.get(self._token or "")
        return future is not None and future.cancelled()

    def end(self) -> None:
        if self._token is not None:
            self._session.work_done_progress.end(self._token, lsp.WorkDoneProgressEnd())
            self._session.work_done_progress.tokens.pop(self._token, None)
