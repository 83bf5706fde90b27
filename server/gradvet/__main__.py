"""The way in: the command line, and the server behind one of its commands."""

import sys

from gradvet import cli
from gradvet.collection import seldom


def main() -> int:
    """Run the command line; gives the exit status."""
    seldom()
    return cli.main(serve=_serve)


def _serve() -> None:
    from gradvet.lsp.server import main as serve  # only editors need it, and it takes its time

    serve()


if __name__ == "__main__":
    sys.exit(main())
