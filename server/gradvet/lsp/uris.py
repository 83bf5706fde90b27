"""Addresses of files and their paths. `urllib.request` does the same, but takes 60 ms to import: only Windows needs it."""

import os
from urllib.parse import quote, unquote, urlsplit


def path_of(uri: str) -> str:
    """The path of the file at an address; for what is no file, a name that tells it apart."""
    try:
        parts = urlsplit(uri)
    except ValueError:  # an address that is none
        return uri
    if parts.scheme != "file":
        return unquote(uri)
    path = _from_url(parts.path)
    return f"//{parts.netloc}{path}" if parts.netloc else path


def uri_of(path: str) -> str:
    """The address of a file."""
    return f"file:{_to_url(path)}" if path.startswith("//") else f"file://{_to_url(path)}"


def _from_url(path: str) -> str:
    if os.name == "nt":
        from urllib.request import url2pathname

        return url2pathname(path)
    return unquote(path)


def _to_url(path: str) -> str:
    if os.name == "nt":
        from urllib.request import pathname2url

        return pathname2url(path).removeprefix("//")
    return quote(path)
