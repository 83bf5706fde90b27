"""The packed server: with each Python at hand, with nothing installed, and apart from what is."""

import os
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from packed import package, pythons, target, unpacked
from raw_lsp import RawClient
from tools.vsix.install import here, main
from tools.vsix.targets import PYTHONS, TARGETS

URI = "file:///w/train.py"
TEXT = """\
import torch
from torch import nn

model = nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
total = 0
for x, y in [(torch.randn(3, 2), torch.randn(3, 2))] * 5:
    loss = ((model(x) - y) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss
torch.no_grad()
print(model(torch.randn(3, 2)))
"""
AT_HAND = pythons()
SUPPORTED = {version: path for version, path in AT_HAND.items() if version in PYTHONS}
OLD = {version: path for version, path in AT_HAND.items() if tuple(map(int, version.split("."))) < (3, 10)}

# `import poison` anywhere would end the server: these stand in the user's folders under names that it imports.
POISON = (
    "typing",
    "json",
    "asyncio",
    "pygls",
    "lsprotocol",
    "attrs",
    "cattrs",
    "libcst",
    "gradvet",
    "sitecustomize",
)


@pytest.fixture(scope="session")
def extension(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package for this machine, unpacked."""
    return unpacked(here(), tmp_path_factory.mktemp("native"))


@pytest.fixture(scope="session")
def universal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package for every machine, unpacked."""
    return unpacked(target("universal"), tmp_path_factory.mktemp("universal"))


@pytest.fixture
def poisoned(tmp_path: Path) -> Iterator[Path]:
    """A folder whose modules must never be imported."""
    for name in POISON:
        (tmp_path / f"{name}.py").write_text(
            f"raise SystemExit('the user\\'s {name} was imported')\n", encoding="utf-8"
        )
    before = {path for path in tmp_path.rglob("*") if "__pycache__" not in path.parts}
    yield tmp_path
    assert before == set(tmp_path.rglob("*")), "something was written into the user's folder"


def start(python: Path, extension: Path) -> list[str | Path]:
    """The command line that the client uses."""
    return [python, "-I", "-S", extension / "bundled" / "start.py", "server", "--log-level", "warning"]


def diagnosed(client: RawClient) -> dict[str, Any]:
    """Open the text; its diagnostics by rule."""
    client.open(URI, TEXT)
    return {each["code"]: each for each in client.wait_for("textDocument/publishDiagnostics")["diagnostics"]}


def chosen(client: RawClient, diagnostic: Any, title: str) -> Any:
    """The action with this in its title, with its edit as far as there is one."""
    context = {"diagnostics": [diagnostic]}
    params = {"textDocument": {"uri": URI}, "range": diagnostic["range"], "context": context}
    [action] = [each for each in client.request("textDocument/codeAction", params) if title in each["title"]]
    return client.request("codeAction/resolve", action)


def new_texts(action: Any) -> list[str]:
    """What an action puts into the text."""
    return [edit["newText"] for edits in action["edit"]["changes"].values() for edit in edits]


@pytest.mark.parametrize("version", SUPPORTED)
def test_the_packed_server_runs_in_each_python_at_hand(version: str, extension: Path, poisoned: Path) -> None:
    """It needs nothing that is installed, and takes nothing from the user's folder or environment."""
    environment = {**os.environ, "PYTHONPATH": str(poisoned), "PYTHONSTARTUP": str(poisoned / "json.py")}
    with RawClient(start(SUPPORTED[version], extension), poisoned, environment) as client:
        found = diagnosed(client)
        assert {"graph-retained", "grad-mode-no-effect"} <= found.keys()
        assert new_texts(chosen(client, found["graph-retained"], "drop the graph")) == [".detach()"]
        wrapped = new_texts(chosen(client, found["grad-mode-no-effect"], "Wrap"))
        assert any("with torch.no_grad():" in text for text in wrapped)  # made by LibCST
        assert client.errors == b""


@pytest.mark.parametrize("version", SUPPORTED)
def test_without_native_parts_a_fix_that_needs_them_says_so(
    version: str, universal: Path, tmp_path: Path
) -> None:
    """The rest works."""
    with RawClient(start(SUPPORTED[version], universal), tmp_path) as client:
        found = diagnosed(client)
        assert new_texts(chosen(client, found["graph-retained"], "drop the graph")) == [".detach()"]
        assert "edit" not in chosen(client, found["grad-mode-no-effect"], "Wrap")
        assert "takes LibCST, and that is not there" in client.wait_for("window/showMessage")["message"]
        assert b"Traceback" not in client.errors


def test_the_processes_that_the_server_starts_are_the_packed_one_too(extension: Path, poisoned: Path) -> None:
    """It looks at a whole workspace in a process of its own, which the user's modules must not get into either."""
    (poisoned / "first.py").write_text(TEXT, encoding="utf-8")
    (poisoned / "second.py").write_text(TEXT, encoding="utf-8")
    version = max(SUPPORTED)
    environment = {**os.environ, "PYTHONPATH": str(poisoned)}
    with RawClient(start(SUPPORTED[version], extension), poisoned, environment) as client:
        command = {"command": "gradvet.server.checkWorkspace", "arguments": []}
        assert {"findings": 4, "files": 2} == client.request("workspace/executeCommand", command)
        assert client.errors == b""
    (poisoned / "first.py").unlink()
    (poisoned / "second.py").unlink()


def test_nothing_bundled_leaks_into_the_users_environment(extension: Path, tmp_path: Path) -> None:
    """What the server starts inherits no path and no variable of ours."""
    script = extension / "bundled" / "start.py"
    code = (
        "import os, runpy, subprocess, sys; before = dict(os.environ); sys.argv = ['start.py', 'rules']\n"
        f"try:\n    runpy.run_path({str(script)!r}, run_name='__main__')\nexcept SystemExit as error:\n"
        "    assert not error.code\nassert before == dict(os.environ)\n"
        "subprocess.run([sys.executable, '-c', 'import sys; print(sys.path)'], check=True)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert str(extension) not in done.stdout.splitlines()[-1]


def test_a_python_that_is_too_old_is_told(extension: Path) -> None:
    """In one line, with a status of its own, whatever syntax it knows."""
    script = str(extension / "bundled" / "start.py")
    pretend = f"import runpy, sys; sys.version_info = (3, 9); runpy.run_path({script!r}, run_name='__main__')"
    commands = [[str(path), "-I", "-S", script, "server"] for path in OLD.values()]
    for command in [[sys.executable, "-I", "-S", "-c", pretend], *commands]:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert 3 == done.returncode
        assert done.stderr.startswith("Gradvet needs Python 3.10 or newer")
        assert 1 == len(done.stderr.splitlines())


def test_a_python_that_is_not_whole_is_told_what_it_lacks(extension: Path) -> None:
    """Some systems package the standard library in parts."""
    script = str(extension / "bundled" / "start.py")
    code = f"import runpy, sys; sys.modules['asyncio'] = None; sys.argv = ['start.py', 'server']; runpy.run_path({script!r}, run_name='__main__')"
    command = [sys.executable, "-I", "-S", "-c", code]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert 4 == done.returncode
    [line] = done.stderr.splitlines()
    assert line.endswith("it lacks the module asyncio of the standard library")


def test_from_the_environment_what_is_installed_there_is_preferred(extension: Path, tmp_path: Path) -> None:
    """And what is bundled serves where nothing is."""
    venv.create(tmp_path / "env", symlinks=True)
    python = tmp_path / "env" / "bin" / "python"
    command = [str(python), str(extension / "bundled" / "start.py"), "--from-environment", "--version"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def told() -> str:
        return subprocess.check_output(command, cwd=tmp_path, env=environment, text=True).strip()

    assert told().startswith("gradvet 0.")
    [packages] = (tmp_path / "env").glob("lib/python3.*/site-packages")
    for name in ("gradvet", "pygls", "lsprotocol"):
        (packages / name).mkdir()
        (packages / name / "__init__.py").touch()
    (packages / "gradvet" / "__main__.py").write_text("def main(): print('mine')\n", encoding="utf-8")
    assert told() == "mine"


@pytest.mark.parametrize("name", [one.name for one in TARGETS])
def test_a_package_holds_what_its_platform_needs(name: str) -> None:
    """One native part of LibCST for each Python, none in the universal one; licences; and nothing of a clone."""
    of = target(name)
    with zipfile.ZipFile(package(of)) as archive:
        names = archive.namelist()
    natives = [path for path in names if path.endswith((".so", ".pyd"))]
    versions = [version.replace(".", "") for version in PYTHONS]
    assert len(natives) == (0 if of.universal else len(PYTHONS))
    assert all(any(f"{version}-" in path for path in natives) for version in versions if natives)
    assert {"pygls", "lsprotocol", "cattrs", "attrs"} <= {
        path.split("/")[3] for path in names if "/libs/" in path
    }
    assert "extension/THIRD_PARTY_NOTICES.txt" in names
    assert sum("licen" in path.lower() for path in names if ".dist-info/" in path) >= 6
    assert {"extension/client/out/extension.js", "extension/package.nls.zh-cn.json"} <= set(names)
    assert "extension/bundled/server/gradvet/words/zh_cn/rules.json" in names
    unwanted = ("node_modules/", "/src/", "/tests/", "__pycache__", ".ts", ".map")
    assert [] == [path for path in names if any(word in path for word in unwanted)]


def test_make_vscode_says_what_to_do_where_there_is_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where there is one, it is told to install the package."""
    monkeypatch.setattr("tools.vsix.install.build", package)
    monkeypatch.setattr("tools.vsix.install.editor", lambda: None)
    assert 0 == main()
    assert f"code --install-extension .cache/vsix/gradvet-{here().name}.vsix" in capsys.readouterr().out
    monkeypatch.setattr("tools.vsix.install.editor", lambda: Path("/bin/echo"))
    assert 0 == main()
