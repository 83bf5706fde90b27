"""The command line: `gradvet check`, `explain`, `rules`, `server`."""

from gradvet.cli.main import main

__all__ = ["main"]
