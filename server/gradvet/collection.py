"""When garbage is looked for: not in the midst of work."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


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
