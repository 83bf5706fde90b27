"""A process of its own that looks at files which nobody has open: it must not slow down what the user does."""

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsprotocol import types as lsp

from gradvet.config import Config
from gradvet.lsp import proto
from gradvet.text import Source, Span
from gradvet.views.words import placed, row_words
from gradvet.words import words_for

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from gradvet.analysis import Diagnostic
    from gradvet.ipynb import Notebook
    from gradvet.syntax.cells import CellSource

log = logging.getLogger(__name__)

_LONGEST = 120.0  # seconds for one file, after which the process is taken to hang
_MODEST = 10  # how much the process gives way to others


@dataclass(frozen=True, slots=True)
class Task:
    """A file to look at, with the texts that are open in the editor and not yet on the disk."""

    path: str
    uri: str
    config: Config
    open_texts: Mapping[str, str]
    encoding: proto.Encoding
    shows: proto.Shows
    locale: str | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """What was found in a file, and the files that it rests on; `failure` is why nothing could be."""

    items: tuple[lsp.Diagnostic, ...] = ()
    read_paths: frozenset[str] = frozenset()
    failure: str = ""


class Surveyor:
    """Starts the process when it is first needed, and again when a file has ended it."""

    def __init__(self) -> None:
        """Nothing is started yet."""
        self._waiter = ThreadPoolExecutor(1, "gradvet-survey")
        self._process: Any = None
        self._connection: Connection | None = None

    async def look(self, task: Task) -> Seen:
        """Look at a file. One that ends the process is told of, and the next gets a new one."""
        return await asyncio.get_running_loop().run_in_executor(self._waiter, self._look, task)

    def _look(self, task: Task) -> Seen:
        try:
            connection = self._connection or self._start()
            connection.send(task)
            if connection.poll(_LONGEST):
                seen: Seen = connection.recv()
                return seen
        except (EOFError, OSError):
            pass
        self.stop()
        return Seen(failure="checking it ended the process, or took too long")

    def _start(self) -> "Connection":
        import multiprocessing

        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs,), daemon=True, name="gradvet-survey")
        self._process.start()
        theirs.close()  # so that the end of the process is the end of the connection
        return self._connection

    def stop(self) -> None:
        """End the process, at once."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process.close()
        if self._connection is not None:
            self._connection.close()
        self._process = self._connection = None


def serve(connection: "Connection") -> None:
    """Look at one file after another until the server is gone. This runs in the process."""
    sys.stdout = sys.stderr  # standard output is the server's
    with contextlib.suppress(AttributeError, OSError):
        os.nice(_MODEST)
    try:
        while True:
            connection.send(seen(connection.recv()))
    except (EOFError, OSError, KeyboardInterrupt):
        pass


def seen(task: Task) -> Seen:
    """What is found in a file."""
    from gradvet.analysis import analyze
    from gradvet.project import NotebookFile, ProjectError, read, reader

    path = Path(task.path)
    try:
        file = read(path)
        source: Source = file.source()
        analysis = analyze(source, task.config, reader(path, task.open_texts))
    except ProjectError as error:
        return Seen(failure=str(error))
    except Exception as error:
        log.exception("%s could not be checked", path)
        return Seen(failure=repr(error))
    told = analysis.diagnostics
    if isinstance(file, NotebookFile):
        told = tuple(_in_file(file.notebook, file.source(), found) for found in told)
        source = Source(source.path, file.text)
    whole = proto.Piece(task.uri, 0, Span(0, len(source.text)))
    place = proto.Place(source, task.encoding, [whole], task.uri)
    words = words_for(task.locale)
    items = (proto.to_diagnostic(place, found, words, can=task.shows) for found in told)
    return Seen(tuple(items), analysis.read_paths)


def _in_file(notebook: "Notebook", source: "CellSource", found: "Diagnostic") -> "Diagnostic":
    """A diagnostic of a notebook with places in its file, since cells have addresses only where they are open.

    The message says which cell is meant: whoever opens the notebook does not see its file.
    """

    def offset(at: int) -> int:
        cell = source.cell_at(at)
        return notebook.offset(cell, at - source.starts[cell])

    def there(span: Span) -> Span:
        return Span(offset(span.start), offset(span.end))

    words = row_words(source, found.span)
    notes = tuple(
        note
        if note.span is None
        else replace(note, text=placed(note.text, row_words(source, note.span)), span=there(note.span))
        for note in found.notes
    )
    return replace(found, message=placed(found.message, words), span=there(found.span), notes=notes)
