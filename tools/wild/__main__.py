"""Check pinned packages and hold what is found against the verdicts on it.

With `--update` the golden file takes what is found now; new findings stand there without a verdict, for
somebody to read the code around them and to say whether they are true.
"""

import argparse
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "server"))

from tools.packages import pinned
from tools.wild.verdicts import PACKAGES, Golden, compared, load, look_at, renewed, save


def main() -> int:
    """Run from the command line; 1 when something differs, or there are too many false alarms."""
    pins = pinned(PACKAGES)
    parser = argparse.ArgumentParser(prog="python -m tools.wild", description=__doc__)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help="only these of the pinned packages")
    parser.add_argument("--update", action="store_true", help="write what is found into the golden file")
    options = parser.parse_args()
    golden, differs = load(), False
    for package in pins:
        if options.packages and package.name not in options.packages:
            continue
        package.fetch()
        counted, found = look_at(package)
        words = compared(golden, package, counted, found)
        differs = differs or bool(words)
        print(f"{package.name} {package.version}: {len(found)} findings, {counted.infos} infos", flush=True)
        print("".join(f"  {line}\n" for line in words), end="", flush=True)
        if options.update:
            golden = renewed(golden, package, counted, found)
            save(golden)
    print(summary(golden))
    return 1 if (differs and not options.update) or golden.too_many() else 0


def summary(golden: Golden) -> str:
    """How true what is said is."""
    true = sum(entry.verdict is True for entry in golden.findings)
    unjudged = sum(entry.verdict is None for entry in golden.findings)
    return (
        f"{true} true, {len(golden.false)} false, {unjudged} not judged in {golden.lines} lines of files that "
        "import torch"
    )


if __name__ == "__main__":
    sys.exit(main())
