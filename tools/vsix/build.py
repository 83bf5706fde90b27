"""Building one package."""

import subprocess
from pathlib import Path

from tools.vsix.libraries import BuildError
from tools.vsix.stage import ROOT, stage
from tools.vsix.targets import Target

VSCE = ROOT / "node_modules" / "@vscode" / "vsce" / "vsce"
OUT = ROOT / "dist"
WHEELS = ROOT / ".cache" / "wheels"


def build(target: Target, out: Path = OUT, wheels: Path = WHEELS) -> Path:
    """Build the package of a target; gives its path."""
    folder = out / "stage" / target.name
    stage(target, folder, wheels)
    package = out / f"gradvet-{target.name}.vsix"
    where = [] if target.universal else ["--target", target.name]
    command = ["node", str(VSCE), "package", "--no-dependencies", "--out", str(package), *where]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise BuildError(f"vsce could not pack {target.name}:\n{done.stdout}{done.stderr}")
    return package
