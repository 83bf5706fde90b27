"""How messages come in: pygls's protocol without its copies of the texts, and input that cannot hurt."""

from typing import Any, BinaryIO

from lsprotocol import types as lsp
from pygls.protocol import LanguageServerProtocol

MOST_BYTES = 256 * 1024 * 1024
"""A message that says to be longer is none: it is read over."""
_LONGEST_HEADER = 64 * 1024
_CHUNK = 1024 * 1024
_OURS = (
    lsp.TEXT_DOCUMENT_DID_OPEN,
    lsp.TEXT_DOCUMENT_DID_CHANGE,
    lsp.TEXT_DOCUMENT_DID_CLOSE,
    lsp.NOTEBOOK_DOCUMENT_DID_OPEN,
    lsp.NOTEBOOK_DOCUMENT_DID_CHANGE,
    lsp.NOTEBOOK_DOCUMENT_DID_CLOSE,
)


class Protocol(LanguageServerProtocol):
    """pygls's protocol; texts go to our handlers alone, which keep them."""

    def __init__(self, server: Any, converter: Any) -> None:
        """Leave out what pygls does about texts: each would be held twice, and its copies go wrong."""
        super().__init__(server, converter)
        for method in _OURS:
            self.fm.builtin_features.pop(method, None)

    @property
    def said_goodbye(self) -> bool:
        """Whether the client has asked for the end."""
        return bool(self._shutdown)

    def sweep(self) -> None:
        """Drop what pygls holds of notifications that are over: 2 kB for every key, for ever."""
        futures = self._request_futures
        for key in [key for key, future in futures.items() if future.done()]:
            del futures[key]


class Input:
    """Standard input, read with bounds."""

    def __init__(self, stream: BinaryIO) -> None:
        """Read from a stream of bytes."""
        self._stream = stream

    def readline(self) -> bytes:
        """A header line, or as much of one as a header may be long."""
        return self._stream.readline(_LONGEST_HEADER)

    def read(self, size: int) -> bytes:
        """A message; what is too long is read over, and an empty one stands for it."""
        if size <= MOST_BYTES:
            return self._stream.read(size)
        while size > 0 and (chunk := self._stream.read(min(size, _CHUNK))):
            size -= len(chunk)
        return b"null" if size <= 0 else b""
