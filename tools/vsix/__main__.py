"""Build the extension's packages: `python -m tools.vsix [TARGET ...]`; without targets, all of them."""

import argparse
import sys
from pathlib import Path

from tools.vsix.build import OUT, WHEELS, build
from tools.vsix.libraries import BuildError
from tools.vsix.targets import TARGETS


def main() -> int:
    """Build what the command line names."""
    parser = argparse.ArgumentParser("tools.vsix", description=__doc__)
    names = [target.name for target in TARGETS]
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(names))
    parser.add_argument("--out", type=Path, default=OUT, help="default: dist/")
    parser.add_argument("--wheels", type=Path, default=WHEELS, help="default: .cache/wheels/")
    options = parser.parse_args()
    if unknown := set(options.targets) - set(names):
        parser.error(f"no such target: {', '.join(sorted(unknown))}")
    try:
        for target in TARGETS:
            if not options.targets or target.name in options.targets:
                package = build(target, options.out.resolve(), options.wheels.resolve())
                print(f"{package.name}  {package.stat().st_size / 1e6:.1f} MB")
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
