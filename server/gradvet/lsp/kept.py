"""The last few analyses, for texts that come back: an edit undone, a file closed and opened again."""

import threading
from collections import OrderedDict
from collections.abc import Iterable

from gradvet.analysis import Analysis
from gradvet.config import Config
from gradvet.syntax.parse import Module

MOST = 8
MOST_CHARACTERS = 100_000  # of text; an analysis holds some 200 bytes for each
Key = tuple[str, str, Config]


class Kept:
    """Analyses by path, text and settings. One that rests on another file is dropped when that changes."""

    def __init__(self) -> None:
        """Begin with none."""
        self._analyses: OrderedDict[Key, Analysis] = OrderedDict()
        self._lock = threading.Lock()
        self.changes = 0

    def get(self, key: Key) -> Analysis | None:
        """The analysis of just this text under these settings, if it is still there."""
        with self._lock:
            found = self._analyses.get(key)
            if found is not None:
                self._analyses.move_to_end(key)
            return found

    def put(self, key: Key, analysis: Analysis, since: int) -> None:
        """Keep an analysis that was begun when there had been `since` changes."""
        with self._lock:
            if analysis.read_paths and since != self.changes:
                return  # what it rests on may have changed meanwhile
            self._analyses[key] = analysis
            self._analyses.move_to_end(key)
            while len(self._analyses) > MOST or (
                len(self._analyses) > 1 and sum(len(text) for _, text, _ in self._analyses) > MOST_CHARACTERS
            ):
                self._analyses.popitem(last=False)

    def outdated(self, module: Module | None) -> None:
        """The tree of an analysis is about to follow another text."""
        with self._lock:
            for key in [key for key, found in self._analyses.items() if found.module is module]:
                del self._analyses[key]

    def changed(self, paths: Iterable[str]) -> None:
        """Files have changed, in the editor or on the disk."""
        gone = frozenset(paths)
        with self._lock:
            self.changes += 1
            stale = [key for key, found in self._analyses.items() if gone & found.read_paths]
            for key in stale:
                del self._analyses[key]
