"""VS Code, driven as a person does and from inside; the pictures it leaves are in `.cache/screenshots`."""

import json
import os
import re
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
IN_VAIN = re.compile(r"Timeout \d+ms exceeded")
FONTS = ("/usr/share/fonts/truetype/dejavu", "/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc")


def play(name: str, shots: Path) -> None:
    """Run a scenario; it has to say that it passed.

    One in which the browser waited in vain is begun once more: the workbench itself at times hangs on a machine
    that has much else to do. What was seen and is wrong fails at once.
    """
    there(lambda: need(*FONTS))
    given = {
        "codeServer": str(there(code_server)),
        "chromium": str(there(lambda: program("chromium"))),
        "vsix": str(package(here())),
        "python": sys.executable,
        "shots": str(shots),
    }
    for _ in range(2):
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
        if done.returncode == 0 or not IN_VAIN.search(done.stdout):
            break
    assert 0 == done.returncode, f"{done.stdout}\n{done.stderr}"
    assert done.stdout.rstrip().endswith("passed")


@pytest.mark.parametrize("name", ["person", "inside", "troubles", "trust", "chosen", "chinese"])
def test_vscode(name: str) -> None:
    """Each scenario tells at its top what it shows."""
    play(name, ROOT / ".cache" / "screenshots")
