"""VS Code, driven as a person does and from inside; the pictures it leaves are in `.cache/screenshots`."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from editors import there
from packed import package
from tools.editors.code_server import code_server
from tools.editors.debian import need, program
from tools.vsix.install import here

HERE = Path(__file__).parent
ROOT = HERE.parent
FONTS = ("/usr/share/fonts/truetype/dejavu", "/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc")


def play(name: str, shots: Path) -> None:
    """Run a scenario; it has to say that it passed."""
    there(lambda: need(*FONTS))
    given = {
        "codeServer": str(there(code_server)),
        "chromium": str(there(lambda: program("chromium"))),
        "vsix": str(package(here())),
        "python": sys.executable,
        "shots": str(shots),
    }
    done = subprocess.run(
        [shutil.which("node") or "node", str(HERE / "vscode" / f"{name}.mjs")],
        env={**os.environ, "GRADVET_VSCODE": json.dumps(given)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=900,
        check=False,
    )
    print(done.stdout)
    assert 0 == done.returncode, f"{done.stdout}\n{done.stderr}"
    assert done.stdout.rstrip().endswith("passed")


@pytest.mark.parametrize("name", ["person", "inside", "troubles", "trust", "chosen", "chinese"])
def test_vscode(name: str) -> None:
    """Each scenario tells at its top what it shows."""
    play(name, ROOT / ".cache" / "screenshots")
