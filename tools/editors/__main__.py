"""Install every editor that the tests use."""

import sys
import time
from collections.abc import Callable

from tools.editors.cache import CACHE, MissingEditorError
from tools.editors.code_server import code_server
from tools.editors.debian import PACKAGES, need
from tools.editors.neovim import neovim

PARTS: dict[str, Callable[[], object]] = {
    "Debian's packages": lambda: need(*PACKAGES),
    "Neovim": neovim,
    "VS Code": code_server,
}


def main() -> int:
    """Install what is not there; the exit status is 1 when something cannot be."""
    status = 0
    for name, install in PARTS.items():
        begin = time.monotonic()
        try:
            install()
        except MissingEditorError as error:
            print(f"{name}: {error}", file=sys.stderr)
            status = 1
        else:
            print(f"{name}: there ({time.monotonic() - begin:.0f} s)")
    print(f"in {CACHE}")
    return status


if __name__ == "__main__":
    sys.exit(main())
