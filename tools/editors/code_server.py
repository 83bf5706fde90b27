"""VS Code as code-server from npm, whose native parts are compiled here: nothing comes from anywhere else."""

import os
import shutil
import sys
from pathlib import Path

from tools.editors.cache import MissingEditorError, once
from tools.editors.debian import program
from tools.editors.run import run

VERSION = (
    "4.100.3"  # VS Code 1.100.3: the newest that runs on Node 20, and the oldest that the extension supports
)
NATIVE = ("node-pty", "@vscode/spdlog", "native-watchdog", "@vscode/native-watchdog")


def code_server() -> Path:
    """The command, installed if need be, which takes some minutes."""
    return once(f"code-server-{VERSION}", _install) / "code-server"


def _install(folder: Path) -> None:
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        raise MissingEditorError("VS Code needs Node 20 and npm")
    gyp = Path(npm).resolve().parent.parent / "node_modules" / "node-gyp" / "bin" / "node-gyp.js"
    headers = Path(node).resolve().parent.parent
    if not (headers / "include" / "node" / "node.h").exists():
        raise MissingEditorError(
            f"VS Code needs the headers of Node, which are not in {headers / 'include' / 'node'}"
        )
    environment = {
        "npm_config_nodedir": str(headers),
        "npm_config_build_from_source": "true",
        "npm_config_audit": "false",
        "npm_config_fund": "false",
        "npm_config_update_notifier": "false",
        "npm_config_python": sys.executable,
        "JOBS": str(os.cpu_count() or 2),
    }
    (folder / "package.json").write_text('{"private": true}\n', encoding="utf-8")
    install = ["npm", "install", "--ignore-scripts", "--no-package-lock", "--loglevel=error"]
    # scripts would download prebuilt parts from elsewhere; what is native and needed is built below
    run([*install, f"code-server@{VERSION}"], folder, environment)
    run(["npm", "rebuild", "argon2"], folder, environment)
    vscode = folder / "node_modules" / "code-server" / "lib" / "vscode"
    run([*install, "--omit=dev"], vscode, environment)
    for name in NATIVE:
        module = vscode / "node_modules" / name
        if (module / "binding.gyp").exists():
            run(["node", gyp, "rebuild", f"--nodedir={headers}"], module, environment)
    searching = vscode / "node_modules" / "@vscode" / "ripgrep" / "bin"
    searching.mkdir(exist_ok=True)
    (searching / "rg").symlink_to(program("rg"))
    # what code-server's own script does after the installation
    (vscode / "node_modules.asar").unlink(missing_ok=True)
    (vscode / "node_modules.asar").symlink_to("node_modules")
    start = folder / "node_modules" / "code-server" / "out" / "node" / "entry.js"
    command = folder / "code-server"
    command.write_text(f'#!/bin/sh\nexec "{node}" "{start}" "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    run([command, "--version"])
