"""When garbage is looked for: not in the midst of work, and seldom between works."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

MOST_NEW = 50_000
"""After so many new objects garbage is looked for among them."""


def seldom() -> None:
    """Look for garbage seldom, in a process that does nothing but analyses.

    A dry run takes itself apart when it is done, so that there is little to be found; and the trees and
    the knowledge that stay would be gone through each time.
    """
    gc.set_threshold(MOST_NEW, *gc.get_threshold()[1:])


@contextmanager
def no_collection() -> Iterator[None]:
    """Let nobody look for garbage meanwhile.

    A tree and a dry run are many objects of which nearly all are needed to the end, and Python's
    collector would go through them again and again: that takes a quarter of the time.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
