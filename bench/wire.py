"""A client of the language server that is just enough to measure it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import IO, Any


class Client:
    """A server and the messages to and from it."""

    def __init__(self, options: Any = None) -> None:
        """Start a server and introduce the client, which is sent diagnostics."""
        command = [sys.executable, "-m", "gradvet", "server"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._out: IO[bytes] = self.process.stdin  # type: ignore[assignment]
        self._in: IO[bytes] = self.process.stdout  # type: ignore[assignment]
        self._number = 0
        self._waiting: list[dict[str, Any]] = []
        about = {"capabilities": {}, "processId": os.getpid(), "rootUri": None}
        self.request("initialize", {**about, "initializationOptions": options})
        self.send("initialized", {})

    def send(self, method: str, params: Any, **more: Any) -> None:
        """Send a message."""
        body = json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **more}).encode()
        self._out.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self._out.flush()

    def request(self, method: str, params: Any) -> Any:
        """Send a request; gives its result."""
        self._number += 1
        number = self._number
        self.send(method, params, id=number)
        return self.receive(lambda message: message.get("id") == number).get("result")

    def receive(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The next message that is wanted; others wait until they are."""
        for number, message in enumerate(self._waiting):
            if wanted(message):
                return self._waiting.pop(number)
        while True:
            length = 0
            while (line := self._in.readline()) not in (b"\r\n", b""):
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
            if not length:
                raise EOFError("the server has ended")
            message: dict[str, Any] = json.loads(self._in.read(length))
            if wanted(message):
                return message
            self._waiting.append(message)

    def open(self, uri: str, text: str) -> None:
        """Show a text, and wait for what is said of it."""
        item = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        self.send("textDocument/didOpen", {"textDocument": item})
        self.diagnostics(uri, 1)

    def change(self, uri: str, version: int, text: str) -> None:
        """Put another text in its place, and wait for what is said of it."""
        document = {"uri": uri, "version": version}
        self.send("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]})
        self.diagnostics(uri, version)

    def close(self, uri: str) -> None:
        """Show a text no more."""
        self.send("textDocument/didClose", {"textDocument": {"uri": uri}})

    def diagnostics(self, uri: str, version: int) -> list[Any]:
        """What is said of a version of a text."""

        def wanted(message: dict[str, Any]) -> bool:
            params = message.get("params")
            return (
                message.get("method") == "textDocument/publishDiagnostics"
                and isinstance(params, dict)
                and (params["uri"], params.get("version")) == (uri, version)
            )

        found: list[Any] = self.receive(wanted)["params"]["diagnostics"]
        return found

    def end(self) -> None:
        """Say goodbye."""
        self.request("shutdown", None)
        self.send("exit", None)
        self.process.wait(60)
