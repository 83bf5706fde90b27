"""The texts that the client has open, kept by ourselves, and what of them is analysed together.

pygls keeps them too, but it splits lines at form feeds and it takes the ranged changes that VS Code
sends for notebook cells as whole texts, whatever was agreed on; both corrupt the text in silence.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from lsprotocol import types as lsp

from gradvet.lsp.proto import Encoding, Piece, Place, from_changes
from gradvet.lsp.uris import path_of
from gradvet.syntax.cells import CellSource
from gradvet.syntax.packages import with_slashes
from gradvet.text import Source, Span

PYTHON = "python"


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """One version of an open text. Each change makes a new one: its identity is its name."""

    uri: str
    version: int
    text: str
    language: str = PYTHON

    @property
    def path(self) -> str:
        """The file's path; for a text that is in no file, a name that tells it apart."""
        return path_of(self.uri)

    @property
    def on_disk(self) -> bool:
        """Whether the text belongs to a file, and so to a project."""
        return self.uri.startswith("file:")

    @property
    def texts(self) -> "Sequence[Document]":
        """The texts that are analysed together: of a file, it alone."""
        return (self,)

    def source(self) -> Source:
        """What is analysed."""
        return Source(self.path, self.text)

    def pieces(self) -> list[Piece]:
        """Where in the source each text stands."""
        return [Piece(self.uri, self.version, Span(0, len(self.text)))]


@dataclass(frozen=True, slots=True, eq=False)
class Notebook:
    """One version of an open notebook: its Python cells, one document in their order."""

    uri: str
    version: int
    texts: Sequence[Document]

    @property
    def path(self) -> str:
        """The notebook's path."""
        return path_of(self.uri)

    @property
    def on_disk(self) -> bool:
        """Whether the notebook is a file, and so belongs to a project."""
        return self.uri.startswith("file:")

    def source(self) -> CellSource:
        """What is analysed."""
        return CellSource(self.path, [cell.text for cell in self.texts])

    def pieces(self) -> list[Piece]:
        """Where in the source each cell stands."""
        source = self.source()
        return [
            Piece(cell.uri, cell.version, source.cell_span(number)) for number, cell in enumerate(self.texts)
        ]


Whole = Document | Notebook


class Documents:
    """The open documents by address."""

    def __init__(self, encoding: Encoding) -> None:
        """Begin with none."""
        self.encoding = encoding
        self._texts: dict[str, Document] = {}
        self._cells: dict[str, list[str]] = {}
        self._notebooks: dict[str, Notebook] = {}
        self._notebook_of: dict[str, str] = {}

    def __iter__(self) -> Iterator[Whole]:
        """The newest version of each that is analysed, in the order in which they were opened."""
        apart = (document for uri, document in self._texts.items() if uri not in self._notebook_of)
        return iter((*apart, *self._notebooks.values()))

    def texts(self) -> dict[str, str]:
        """What is open of the files of projects, by path, with `/` between the parts."""
        return {
            with_slashes(document.path): document.text
            for document in self
            if isinstance(document, Document) and document.on_disk
        }

    def whole(self, uri: str) -> str:
        """The address of what is analysed when a text is asked for: a cell's notebook, else the text itself."""
        return self._notebook_of.get(uri, uri)

    def get(self, uri: str) -> Whole | None:
        """The newest version of what is analysed under an address, or None when it is not open."""
        if uri in self._notebooks:
            return self._notebooks[uri]
        return None if uri in self._notebook_of else self._texts.get(uri)

    def text(self, uri: str) -> Document | None:
        """The newest version of one text, which may be a cell."""
        return self._texts.get(uri)

    def open(self, item: lsp.TextDocumentItem) -> None:
        """The client shows a text."""
        self._texts[item.uri] = Document(item.uri, item.version, item.text, item.language_id)

    def change(
        self,
        changed: lsp.VersionedTextDocumentIdentifier,
        changes: Iterable[lsp.TextDocumentContentChangeEvent],
    ) -> None:
        """The user edited; a change of a text that is not open is dropped."""
        document = self._texts.get(changed.uri)
        if document is not None:
            place = Place(document.source(), self.encoding, document.pieces(), document.uri)
            text = from_changes(place, changes)
            self._texts[changed.uri] = replace(document, version=changed.version, text=text)

    def close(self, uri: str) -> None:
        """The client no longer shows it."""
        self._texts.pop(uri, None)

    def open_notebook(self, notebook: lsp.NotebookDocument, texts: Iterable[lsp.TextDocumentItem]) -> None:
        """The client shows a notebook."""
        for item in texts:
            self.open(item)
        self._cells[notebook.uri] = [cell.document for cell in notebook.cells]
        self._renew(notebook.uri, notebook.version)

    def change_notebook(
        self, changed: lsp.VersionedNotebookDocumentIdentifier, cells: lsp.NotebookDocumentCellChanges | None
    ) -> list[str]:
        """Cells came, went, moved or were edited; gives the addresses of those that went."""
        order = self._cells.get(changed.uri)
        if order is None:
            return []
        gone: list[str] = []
        if cells is not None and (structure := cells.structure) is not None:
            array = structure.array
            start = min(max(array.start, 0), len(order))
            order[start : start + max(array.delete_count, 0)] = [cell.document for cell in array.cells or ()]
            gone = [closed.uri for closed in structure.did_close or ()]
            for uri in gone:
                self.close(uri)
            for item in structure.did_open or ():
                self.open(item)
        for edited in (cells and cells.text_content) or ():
            self.change(edited.document, edited.changes)
        self._renew(changed.uri, changed.version)
        return [uri for uri in gone if uri not in self._texts]

    def close_notebook(self, uri: str, cells: Iterable[str]) -> list[str]:
        """The client no longer shows a notebook; gives the addresses of its cells."""
        self._notebooks.pop(uri, None)
        gone = list(dict.fromkeys((*cells, *self._cells.pop(uri, ()))))
        for cell in gone:
            self.close(cell)
            self._notebook_of.pop(cell, None)
        return gone

    def _renew(self, uri: str, version: int) -> None:
        """A new version of a notebook, of those cells that are in Python now."""
        cells = self._cells[uri]
        for cell in [cell for cell, of in self._notebook_of.items() if of == uri]:
            del self._notebook_of[cell]
        self._notebook_of.update(dict.fromkeys(cells, uri))
        texts = [document for cell in cells if (document := self._texts.get(cell)) is not None]
        self._notebooks[uri] = Notebook(uri, version, [text for text in texts if text.language == PYTHON])
