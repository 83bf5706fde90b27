"""Names of diagnostics, by which a client says which it has."""

import hashlib
from collections.abc import Sequence

from lsprotocol import types as lsp


def result_id(items: Sequence[lsp.Diagnostic]) -> str:
    """A name for these very diagnostics: the same ones have the same name, so nothing need be remembered."""
    return hashlib.blake2b(repr(list(items)).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


NOTHING_FOUND = result_id([])
