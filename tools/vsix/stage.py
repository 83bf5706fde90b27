"""The folder that vsce packs: the client, the server, its libraries, and what a person reads."""

import json
import shutil
from pathlib import Path

from tools.vsix.client import bundle_client
from tools.vsix.libraries import download, unpack
from tools.vsix.targets import Target

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
FILES = (
    ".vscodeignore",
    "CHANGELOG.md",
    "LICENSE",
    "README.md",
    "docs/rules.md",
    "package.nls.json",
    "package.nls.zh-cn.json",
)
FOLDERS = ("l10n", "client/media")
# Of the manifest, what only a clone needs.
NOT_PACKED = frozenset({"scripts", "dependencies", "devDependencies"})


def stage(target: Target, folder: Path, wheels: Path) -> None:
    """Fill the folder for one target."""
    shutil.rmtree(folder, ignore_errors=True)
    for name in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    for name in FOLDERS:
        shutil.copytree(ROOT / name, folder / name)
    manifest = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))
    packed = {key: value for key, value in manifest.items() if key not in NOT_PACKED}
    (folder / "package.json").write_text(json.dumps(packed, ensure_ascii=False, indent=2), encoding="utf-8")
    bundle_client(folder)
    bundle(target, folder / "bundled", wheels)


def bundle(target: Target, folder: Path, wheels: Path) -> None:
    """The server with all that it needs but Python."""
    server = folder / "server" / "gradvet"
    shutil.copytree(ROOT / "server" / "gradvet", server, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(HERE / "start.py", folder / "start.py")
    unpack(download(target, wheels), folder / "libs")
