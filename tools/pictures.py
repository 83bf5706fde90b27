"""Take the pictures of VS Code in the README and in the walkthrough anew: `python -m tools.pictures`.

The scenario of the tests in which a person works leaves them behind.
"""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
TAKEN = ROOT / ".cache" / "screenshots" / "person"
README = ROOT / "docs" / "pictures"
WALKTHROUGH = ROOT / "client" / "media"
SHOWN = {
    README: {"findings": "findings", "hover": "hover", "quick-fix": "quick-fix"},
    WALKTHROUGH: {
        "findings": "walkthrough-findings",
        "quick-fix": "walkthrough-quick-fix",
        "hover": "walkthrough-hover",
        "path": "walkthrough-path",
        "error": "walkthrough-error",
    },
}


def main() -> int:
    """Run the scenario and copy what it left; its exit status."""
    command = [sys.executable, "-m", "pytest", "-q", "tests/test_vscode.py", "-k", "person"]
    status = subprocess.run(command, cwd=ROOT, check=False).returncode  # noqa: S603
    if status == 0:
        for folder, names in SHOWN.items():
            folder.mkdir(exist_ok=True)
            for taken, name in names.items():
                shutil.copy(TAKEN / f"{taken}.png", folder / f"{name}.png")
                print(f"{folder.relative_to(ROOT)}/{name}.png")
    return status


if __name__ == "__main__":
    sys.exit(main())
