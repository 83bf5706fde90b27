"""Build the package for this machine and install it into its VS Code: `python -m tools.vsix.install`."""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

from tools.vsix.build import build
from tools.vsix.libraries import BuildError
from tools.vsix.targets import TARGETS, Target

EDITORS = ("code", "code-insiders", "codium", "cursor", "windsurf", "code-server")
SYSTEMS = {"Linux": "linux", "Darwin": "darwin", "Windows": "win32"}
MACHINES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}
# Where macOS and Windows put the command when it is not on the PATH.
APPLICATIONS = (
    "/Applications/Visual Studio Code.app/Contents/Resources/app/bin/code",
    "~/Applications/Visual Studio Code.app/Contents/Resources/app/bin/code",
    "~/AppData/Local/Programs/Microsoft VS Code/bin/code.cmd",
)

NO_EDITOR = """\
{package} is built, but no VS Code was found: none of {editors} is on the PATH.
Where there is one, install it with

    code --install-extension {package}

or choose "Install from VSIX..." in the menu of its Extensions view.
In VS Code on macOS, "Shell Command: Install 'code' command in PATH" in the palette puts `code` on the PATH.
"""


def here() -> Target:
    """The target of this machine; the universal one where there is no better."""
    name = f"{SYSTEMS.get(platform.system())}-{MACHINES.get(platform.machine().lower())}"
    musl = platform.system() == "Linux" and platform.libc_ver()[0] != "glibc"
    return next((target for target in TARGETS if target.name == name and not musl), TARGETS[-1])


def editor() -> Path | None:
    """The command of the VS Code of this machine."""
    commands = [Path(path) for name in EDITORS if (path := shutil.which(name)) is not None]
    applications = [Path(name).expanduser() for name in APPLICATIONS]
    return next(iter([*commands, *(path for path in applications if os.access(path, os.X_OK))]), None)


def main() -> int:
    """Build and install; without a VS Code, build and say what to do."""
    try:
        package = build(here())
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    command = editor()
    if command is None:
        shown = package.relative_to(Path.cwd()) if package.is_relative_to(Path.cwd()) else package
        print(NO_EDITOR.format(package=shown, editors=", ".join(EDITORS)))
        return 0
    install = [str(command), "--install-extension", str(package), "--force"]
    return subprocess.run(install, check=False).returncode  # noqa: S603


if __name__ == "__main__":
    sys.exit(main())
