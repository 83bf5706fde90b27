"""Work that nobody waits for any more ends early: an editor has a newer text."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Stopped(BaseException):
    """The work was no longer wanted."""


class _Here(threading.local):
    asked: Callable[[], bool] | None = None


_here = _Here()


@contextmanager
def stoppable(asked: Callable[[], bool]) -> Iterator[None]:
    """Let work in this thread end with `Stopped` as soon as it looks and `asked` says so."""
    before, _here.asked = _here.asked, asked
    try:
        yield
    finally:
        _here.asked = before


def stop_if_asked() -> None:
    """End here when nobody wants the work any more."""
    if _here.asked is not None and _here.asked():
        raise Stopped
