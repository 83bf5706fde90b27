"""What somebody pasted: a message alone, or a traceback with other output around it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from gradvet.errors.known import KNOWN, Known

_FRAME = re.compile(r'^\s*(?:\d+:\s*)?File "(?P<path>[^"\n]+)", line (?P<row>\d+)', re.MULTILINE)
_IPYTHON = re.compile(r"^(?:File (?P<path>[^\n:]+\.py):(?P<row>\d+))", re.MULTILINE)
_WARNED = re.compile(r"^(?P<path>[^\n:]+\.py):(?P<row>\d+): \w*Warning: ", re.MULTILINE)
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Frame:
    """A line of a file that a traceback or a warning names; rows count from 1."""

    path: str
    row: int


@dataclass(frozen=True, slots=True)
class Pasted:
    """A pasted text, understood: the message that was found in it, if one is known, and the lines it names.

    `details` are the parts of the message that differ from case to case, such as the op that saved
    a value. Frames are in the order of the text: the innermost of a traceback is the last.
    """

    known: Known | None
    message: str
    details: tuple[str, ...]
    frames: Sequence[Frame]


def read_pasted(text: str) -> Pasted:
    """Look for a message of torch in a text. Where there are several, the last that was raised counts."""
    flat = _SPACE.sub(" ", text)
    found: tuple[int, Known, re.Match[str]] | None = None
    for known in KNOWN:
        for match in known.pattern.finditer(flat):
            if found is None or match.start() > found[0]:
                found = (match.start(), known, match)
    frames = [
        Frame(match["path"], int(match["row"]))
        for pattern in (_FRAME, _IPYTHON, _WARNED)
        for match in pattern.finditer(text)
    ]
    if found is None:
        return Pasted(None, flat.strip(), (), frames)
    _, known, match = found
    details = tuple(part for part in match.groups() if part)
    return Pasted(known, match[0], details, frames)
