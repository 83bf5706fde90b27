"""Broken and hostile messages, and editors that vanish: the server goes on, or ends as it should."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import IO, Any

import pytest

COMMAND = [sys.executable, "-m", "gradvet", "server"]
LEAK = "import torch\nw = torch.ones(3, requires_grad=True)\n(w * 2).numpy()\n"
URI = "file:///w/a.py"
PATIENCE = 60


class Raw:
    """A server, and a client that sends whatever bytes it likes."""

    def __init__(self, process_id: int | None = None) -> None:
        """Start it and say hello."""
        self.process = subprocess.Popen(
            COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.number = 0
        about: dict[str, Any] = {
            "processId": process_id,
            "rootUri": None,
            "capabilities": {"textDocument": {"diagnostic": {}}},
        }
        self.ask("initialize", about)
        self.tell("initialized", {})

    def send(self, sent: bytes) -> None:
        """Send bytes."""
        pipe: IO[bytes] = self.process.stdin  # type: ignore[assignment]
        pipe.write(sent)
        pipe.flush()

    def frame(self, body: bytes) -> None:
        """Send a message of some bytes."""
        self.send(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def tell(self, method: str, params: Any, **more: Any) -> None:
        """Send a message."""
        self.frame(json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **more}).encode())

    def ask(self, method: str, params: Any) -> dict[str, Any]:
        """Send a request, and wait for the answer to it."""
        self.number += 1
        self.tell(method, params, id=f"ours-{self.number}")
        guard = threading.Timer(PATIENCE, self.process.kill)
        guard.start()
        try:
            while True:
                message = self._message()
                if message.get("id") == f"ours-{self.number}":
                    return message
        finally:
            guard.cancel()

    def _message(self) -> dict[str, Any]:
        pipe: IO[bytes] = self.process.stdout  # type: ignore[assignment]
        length = 0
        while (line := pipe.readline()) not in (b"\r\n", b""):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        assert length, "the server has ended"
        message: dict[str, Any] = json.loads(pipe.read(length))
        return message

    def still_works(self) -> bool:
        """Whether it still judges a file."""
        self.number += 1
        uri = f"file:///w/check_{self.number}.py"
        item = {"uri": uri, "languageId": "python", "version": 1, "text": LEAK}
        self.tell("textDocument/didOpen", {"textDocument": item})
        answer = self.ask("textDocument/diagnostic", {"textDocument": {"uri": uri}})
        return [found["code"] for found in answer["result"]["items"]] == ["numpy-on-grad"]


@pytest.fixture(scope="module")
def raw() -> Iterator[Raw]:
    """One server for all of them: what one message breaks, the next would show."""
    server = Raw()
    yield server
    server.process.kill()
    server.process.communicate()


BODIES = [
    b"{",
    b"null",
    b"[]",
    b"3",
    b'"text"',
    b"\xff\xfe\x00",
    b"[" * 100_000,
    b'{"a": ' * 5_000,
    b"{}",
    b'{"jsonrpc": "1.0", "method": "x"}',
    b'{"jsonrpc": "2.0"}',
    b'{"jsonrpc": "2.0", "id": 1}',
    b'{"jsonrpc": "2.0", "id": null, "method": "textDocument/hover"}',
    b'{"jsonrpc": "2.0", "id": [1], "method": "textDocument/hover", "params": {}}',
    b'{"jsonrpc": "2.0", "id": 7, "method": "no/such", "params": {}}',
    b'{"jsonrpc": "2.0", "method": "no/such"}',
    b'{"jsonrpc": "2.0", "method": 3}',
    b'{"jsonrpc": "2.0", "id": 8, "result": {}}',
    b'{"jsonrpc": "2.0", "id": 9, "error": {"code": 1, "message": "x"}}',
    b'{"jsonrpc": "2.0", "id": 10, "error": "x"}',
    b'{"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 99}}',
    b'{"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {}}',
    b'{"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {}}',
    b'{"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": null}',
    b'{"jsonrpc": "2.0", "method": "textDocument/didChange", "params": {"textDocument": {"uri": "file:///no", "version": 1}, "contentChanges": [{"text": "x"}]}}',
    b'{"jsonrpc": "2.0", "method": "textDocument/didChange", "params": {"textDocument": {"uri": "file:///w/a.py", "version": -1}, "contentChanges": [{"range": {"start": {"line": 9999, "character": 9999}, "end": {"line": 0, "character": 0}}, "text": "x"}]}}',
    b'{"jsonrpc": "2.0", "method": "textDocument/didClose", "params": {"textDocument": {"uri": "file:///never"}}}',
    b'{"jsonrpc": "2.0", "id": 11, "method": "textDocument/hover", "params": {"textDocument": {"uri": "http://[bad"}, "position": {"line": -5, "character": -5}}}',
    b'{"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": {"uri": "http://[bad", "languageId": "python", "version": 1, "text": "import torch"}}}',
    b'{"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": {"uri": "", "languageId": "python", "version": 1, "text": "import torch"}}}',
    b'{"jsonrpc": "2.0", "id": 12, "method": "codeAction/resolve", "params": {"title": "x", "data": {"uri": 3}}}',
    b'{"jsonrpc": "2.0", "id": 13, "method": "codeAction/resolve", "params": {"title": "x", "data": 3}}',
    b'{"jsonrpc": "2.0", "id": 14, "method": "workspace/executeCommand", "params": {"command": "rm -rf"}}',
    b'{"jsonrpc": "2.0", "id": 15, "method": "workspace/executeCommand", "params": {"command": "gradvet.server.explainError", "arguments": [1, 2, 3]}}',
    b'{"jsonrpc": "2.0", "id": 16, "method": "workspace/executeCommand", "params": {"command": "gradvet.server.debugInformation", "arguments": [1]}}',
    b'{"jsonrpc": "2.0", "method": "workspace/didChangeConfiguration", "params": {"settings": {"gradvet": {"select": {"a": 1}, "inlayHints": [3]}}}}',
    b'{"jsonrpc": "2.0", "method": "workspace/didChangeConfiguration", "params": {"settings": 3}}',
    b'{"jsonrpc": "2.0", "method": "workspace/didChangeConfiguration", "params": {"settings": {}}}',
    b'{"jsonrpc": "2.0", "method": "workspace/didChangeWatchedFiles", "params": {"changes": [{"uri": "::", "type": 77}]}}',
    b'{"jsonrpc": "2.0", "method": "workspace/didChangeWorkspaceFolders", "params": {"event": {"added": [{"uri": "x:y", "name": "x"}], "removed": [{"uri": "never", "name": ""}]}}}',
    b'{"jsonrpc": "2.0", "method": "notebookDocument/didOpen", "params": {"notebookDocument": {"uri": "n", "notebookType": "x", "version": 1, "cells": [{"kind": 2, "document": "c"}]}, "cellTextDocuments": []}}',
    b'{"jsonrpc": "2.0", "method": "notebookDocument/didChange", "params": {"notebookDocument": {"uri": "n", "version": 2}, "change": {"cells": {"structure": {"array": {"start": 4000000000, "deleteCount": 4000000000}}}}}}',
    b'{"jsonrpc": "2.0", "id": 17, "method": "initialize", "params": {"processId": null, "rootUri": null, "capabilities": {}}}',
]


@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
def test_a_hostile_message_does_not_end_it(raw: Raw, body: bytes) -> None:
    raw.frame(body)
    assert raw.still_works()


@pytest.mark.parametrize(
    "sent",
    [
        b"\r\n",
        b"no header\r\n\r\n",
        b"Content-Length: -5\r\n\r\n",
        b"Content-Length: x\r\n\r\n",
        b"Content-Length: 0\r\n\r\n",
        b"X: " + b"y" * 300_000 + b"\r\n",
        b"Content-Length: 2\r\nContent-Type: application/vscode-jsonrpc; charset=klingon\r\n\r\n{}",
    ],
)
def test_broken_headers_do_not_end_it(raw: Raw, sent: bytes) -> None:
    raw.send(sent)
    assert raw.still_works()


def test_a_message_that_is_too_long_is_read_over(raw: Raw) -> None:
    size = 257 * 1024 * 1024
    raw.send(b"Content-Length: %d\r\n\r\n" % size)
    chunk = b" " * (1024 * 1024)
    for _ in range(257):
        raw.send(chunk)
    assert raw.still_works()


def test_it_says_goodbye(raw: Raw) -> None:
    """With 0 where the client has asked for the end, and with 1 where it goes without."""
    polite, rude = Raw(), Raw()
    polite.ask("shutdown", None)
    for server in (polite, rude):
        server.tell("exit", None)
    assert (polite.process.wait(PATIENCE), rude.process.wait(PATIENCE)) == (0, 1)


def test_it_ends_when_its_input_does() -> None:
    server = Raw()
    server.tell(
        "textDocument/didOpen",
        {"textDocument": {"uri": URI, "languageId": "python", "version": 1, "text": LEAK}},
    )
    server.process.communicate(timeout=PATIENCE)
    assert server.process.returncode is not None


@pytest.mark.skipif(os.name != "posix", reason="elsewhere the input ends with the editor")
def test_it_ends_with_the_editor_although_its_input_is_held_open() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as editor:
        server = Raw(editor.pid)
        time.sleep(0.5)
        assert server.process.poll() is None
        editor.communicate()
    assert server.process.wait(PATIENCE) == 1
