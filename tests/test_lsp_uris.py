"""Addresses of files and their paths."""

import os

import pytest

from gradvet.lsp.uris import path_of, uri_of


@pytest.mark.skipif(os.name == "nt", reason="paths are others there")
@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("/w/a.py", "file:///w/a.py"),
        ("/w/a b/漢😋#.py", "file:///w/a%20b/%E6%BC%A2%F0%9F%98%8B%23.py"),
        ("//host/share/a.py", "file://host/share/a.py"),
    ],
)
def test_a_path_comes_back_from_its_address(path: str, uri: str) -> None:
    assert uri_of(path) == uri
    assert path_of(uri) == path


@pytest.mark.parametrize(
    "uri", ["untitled:Untitled-1", "http://[bad", "", "vscode-notebook-cell:/w/n.ipynb#c"]
)
def test_what_is_no_file_keeps_its_name(uri: str) -> None:
    assert path_of(uri) == uri
