"""The texts that the client has open, kept by ourselves.

pygls keeps them too, but it splits lines at form feeds and it takes the ranged changes that VS Code
sends for notebook cells as whole texts, whatever was agreed on; both corrupt the text in silence.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from lsprotocol import types as lsp

from gradvet.lsp.proto import Encoding, Place, from_changes
from gradvet.syntax.packages import with_slashes
from gradvet.text import Source


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """One version of an open text. Each change makes a new one: its identity is its name."""

    uri: str
    version: int
    text: str

    @property
    def path(self) -> str:
        """The file's path; for a text that is in no file, a name that tells it apart."""
        return path_of(self.uri)

    @property
    def on_disk(self) -> bool:
        """Whether the text belongs to a file, and so to a project."""
        return self.uri.startswith("file:")


def path_of(uri: str) -> str:
    """The path of the file at an address; for what is no file, a name that tells it apart."""
    parts = urlsplit(uri)
    if parts.scheme != "file":
        return unquote(uri)
    path = url2pathname(parts.path)
    return f"//{parts.netloc}{path}" if parts.netloc else path


class Documents:
    """The open documents by address."""

    def __init__(self, encoding: Encoding) -> None:
        """Begin with none."""
        self.encoding = encoding
        self._open: dict[str, Document] = {}

    def __iter__(self) -> Iterator[Document]:
        """The newest version of each, in the order in which they were opened."""
        return iter(tuple(self._open.values()))

    def texts(self) -> dict[str, str]:
        """What is open of the files of projects, by path, with `/` between the parts."""
        return {with_slashes(document.path): document.text for document in self if document.on_disk}

    def get(self, uri: str) -> Document | None:
        """The newest version, or None when it is not open."""
        return self._open.get(uri)

    def open(self, item: lsp.TextDocumentItem) -> None:
        """The client shows a text, or a cell of a notebook."""
        self._open[item.uri] = Document(item.uri, item.version, item.text)

    def change(
        self,
        changed: lsp.VersionedTextDocumentIdentifier,
        changes: Iterable[lsp.TextDocumentContentChangeEvent],
    ) -> None:
        """The user edited; a change of a text that is not open is dropped."""
        document = self._open.get(changed.uri)
        if document is not None:
            place = Place(document.uri, Source(document.path, document.text), self.encoding)
            text = from_changes(place, changes)
            self._open[changed.uri] = replace(document, version=changed.version, text=text)

    def close(self, uri: str) -> None:
        """The client no longer shows it."""
        self._open.pop(uri, None)
