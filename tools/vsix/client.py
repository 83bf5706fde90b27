"""The client as one file, and the licences of the libraries that esbuild put into it."""

import json
import subprocess
from pathlib import Path

from tools.vsix.libraries import BuildError

ROOT = Path(__file__).parent.parent.parent
ESBUILD = ROOT / "node_modules" / "esbuild" / "bin" / "esbuild"
OPTIONS = ("--bundle", "--external:vscode", "--format=cjs", "--platform=node", "--target=node20", "--minify")


def bundle_client(folder: Path) -> None:
    """Write `client/out/extension.js` and `THIRD_PARTY_NOTICES.txt` into the folder."""
    out, meta = folder / "client" / "out" / "extension.js", folder / "meta.json"
    source = ROOT / "client" / "src" / "extension.ts"
    files = [f"--outfile={out}", f"--metafile={meta}", "--log-level=warning", str(source)]
    command = ["node", str(ESBUILD), *OPTIONS, *files]
    if subprocess.run(command, cwd=ROOT, check=False).returncode:  # noqa: S603
        raise BuildError("esbuild could not bundle the client")
    inputs = json.loads(meta.read_text(encoding="utf-8"))["inputs"]
    meta.unlink()
    packages = sorted({_package(path) for path in inputs if path.startswith("node_modules/")})
    notices = "\n".join(_notice(ROOT / package) for package in packages)
    (folder / "THIRD_PARTY_NOTICES.txt").write_text(notices, encoding="utf-8")


def _package(path: str) -> str:
    """The folder of the package that a file belongs to: the last `node_modules` counts, a scope is two names."""
    before, _, after = path.rpartition("node_modules/")
    names = after.split("/")
    return before + "node_modules/" + "/".join(names[: 2 if names[0].startswith("@") else 1])


def _notice(package: Path) -> str:
    manifest = json.loads((package / "package.json").read_text(encoding="utf-8"))
    texts = [path for path in sorted(package.iterdir()) if path.name.lower().startswith(("licen", "copying"))]
    if not texts:
        raise BuildError(f"{package} has no licence that could come along")
    title = f"{manifest['name']} {manifest['version']}"
    return f"{title}\n{'=' * len(title)}\n\n{texts[0].read_text(encoding='utf-8').strip()}\n"
