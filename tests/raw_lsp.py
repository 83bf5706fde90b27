"""A client of the Language Server Protocol that needs nothing but Python: for servers in any interpreter."""

import json
import queue
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

PATIENCE = 60.0  # seconds

CAPABILITIES = {
    "workspace": {"workspaceFolders": True},
    "textDocument": {
        "codeAction": {
            "codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["quickfix"]}},
            "resolveSupport": {"properties": ["edit"]},
            "dataSupport": True,
        },
        "hover": {"contentFormat": ["markdown"]},
    },
}


class RawClient:
    """A session with a server that is started for it."""

    def __init__(
        self, command: Sequence[str | Path], cwd: Path, env: Mapping[str, str] | None = None
    ) -> None:
        """Start the server; `initialize` follows."""
        self.process = subprocess.Popen(
            [str(part) for part in command],
            cwd=cwd,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.folder = cwd
        self.errors = b""
        self.notifications: list[dict[str, Any]] = []
        self._messages: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._id = 0
        threading.Thread(target=self._read, daemon=True).start()
        threading.Thread(target=self._read_errors, daemon=True).start()

    def __enter__(self) -> "RawClient":  # noqa: PYI034  `Self` is of Python 3.11
        """Introduce ourselves; the folder that the server was started in is the workspace."""
        root = {"name": self.folder.name, "uri": self.folder.as_uri()}
        params = {"processId": None, "rootUri": root["uri"], "capabilities": CAPABILITIES}
        self.request("initialize", {**params, "workspaceFolders": [root]})
        self.notify("initialized", {})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Say goodbye; a server that does not go is ended."""
        try:
            if kind is None:
                self.request("shutdown", None)
                self.notify("exit", None)
                assert 0 == self.process.wait(PATIENCE)
        finally:
            self.process.kill()

    def notify(self, method: str, params: Any) -> None:
        """Send a notification."""
        self._send({"method": method, "params": params})

    def request(self, method: str, params: Any) -> Any:
        """Send a request and wait for its answer."""
        self._id += 1
        self._send({"id": self._id, "method": method, "params": params})
        while True:
            message = self._next(method)
            if message.get("id") == self._id and "method" not in message:
                assert "error" not in message, message
                return message.get("result")

    def wait_for(self, method: str) -> Any:
        """The parameters of the next notification of a kind, or of one that has come already."""
        while True:
            for at, message in enumerate(self.notifications):
                if message["method"] == method:
                    return self.notifications.pop(at)["params"]
            self._next(method)

    def open(self, uri: str, text: str) -> None:
        """Show a text."""
        item = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": item})

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def _next(self, awaited: str) -> dict[str, Any]:
        try:
            message = self._messages.get(timeout=PATIENCE)
        except queue.Empty:
            message = None
        assert message is not None, f"no {awaited} from the server:\n{self.errors.decode(errors='replace')}"
        if "method" in message and "id" in message:
            self._send({"id": message["id"], "result": None})
        elif "method" in message:
            self.notifications.append(message)
        return message

    def _read(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        while header := stream.readline():
            length = int(header.split(b":")[1])
            while stream.readline().strip():
                pass
            self._messages.put(json.loads(stream.read(length)))
        self._messages.put(None)

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.errors += line
