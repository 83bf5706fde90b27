"""What of a text is fixed, and what stands in it for the case at hand: code, names, numbers, lines, links."""

import re
from dataclasses import dataclass

HOLE = "{}"
"""How a hole is written in the key of a catalogue; in its translation it is `{0}`, `{1}` …, in any order."""

_LINE = r"line \d+(?: of (?:cell \d+|[^\s(),]+\.(?:py|ipynb)))?"
_LINK = r"\[[^\[\]\n]+\]\([^()\s]+\)"
_CODE = r"(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`)"
_CALL = r"(?<![\w.`(])[\w.]*\w\([^()\s]*\)(?:\.\w+\([^()\s]*\))*"
_DOTTED = r"(?<![\w.`])[A-Za-z_]\w*(?:\.\w+)+(?!\w)"
_NODE = r"\b[A-Z]\w*Backward\d*\b"
_MADE_BY = r"grad_fn [\w*?]+(?: or [\w*?]+)*"
_PART = rf"(?:\b(?:weight|bias|in_proj)\w* of [A-Z]\w*|\bparameters of {_CODE.replace('ticks', 'owner')})"
_COMMENT = r"# gradvet: [\w-]+\[[^\[\]]*\]"
_FILE = r"\A[^`\n]*?\.(?:toml|py|ipynb)(?:: \[tool\.gradvet\]|(?=: ))"
_ATOM = f"(?:{_FILE}|{_LINE}|{_LINK}|{_PART}|{_CODE}|{_MADE_BY}|{_CALL}|{_DOTTED}|{_NODE}|{_COMMENT})"
_NUMBER = r"(?<![\w.-])\d+(?:\.\d+)*(?![\w%])"

_PIECE = re.compile(f"{_ATOM}|(?P<number>{_NUMBER})")

_WHERE = re.compile(rf" \(({_LINE}|{_LINK})\)")
_JOINED = re.compile(r", and |, | and | or ")
_REST = re.compile(r", \.\.\.|,? and (?P<more>\d+) more|,? and others")


@dataclass(frozen=True, slots=True)
class Item:
    """One of several things in a hole: what joins it to those before it, itself, and where it stands."""

    joint: str
    text: str
    where: str = ""


@dataclass(frozen=True, slots=True)
class Hole:
    """What fills a hole: a few things in a row, and words for those that are not named."""

    items: tuple[Item, ...]
    rest: str = ""


@dataclass(frozen=True, slots=True)
class Skeleton:
    """A text with its holes taken out: `pieces` are what stands before, between and behind them."""

    pieces: tuple[str, ...]
    holes: tuple[Hole, ...]

    @property
    def key(self) -> str:
        """The text as a catalogue names it."""
        return HOLE.join(self.pieces)

    @property
    def text(self) -> str:
        """The text itself."""
        said = [self.pieces[0]]
        for hole, piece in zip(self.holes, self.pieces[1:]):
            for item in hole.items:
                said += (item.joint, item.text, f" ({item.where})" if item.where else "")
            said += (hole.rest, piece)
        return "".join(said)

    def before(self, piece: int, at: int) -> "Skeleton":
        """What stands before a place in one of the pieces."""
        return Skeleton((*self.pieces[:piece], self.pieces[piece][:at]), self.holes[:piece])

    def behind(self, piece: int, at: int) -> "Skeleton":
        """What stands behind it."""
        return Skeleton((self.pieces[piece][at:], *self.pieces[piece + 1 :]), self.holes[piece:])


def skeleton(text: str) -> Skeleton:
    """Take a text apart. Things in a row, as `a`, `b` and `c`, are one hole."""
    pieces: list[str] = []
    holes: list[Hole] = []
    start = at = 0
    while (match := _PIECE.search(text, at)) is not None:
        end, hole = (match.end(), Hole((Item("", match[0]),))) if match["number"] else _run(text, match)
        pieces.append(text[start : match.start()])
        holes.append(hole)
        start = at = end
    return Skeleton((*pieces, text[start:]), tuple(holes))


def _run(text: str, first: re.Match[str]) -> tuple[int, Hole]:
    """The things in a row that begin with one, and where they end."""
    items: list[Item] = []
    joint, thing = "", first
    while True:
        end = thing.end()
        where = _WHERE.match(text, end)
        items.append(Item(joint, thing[0], "" if where is None else where[1]))
        end = end if where is None else where.end()
        joined = _JOINED.match(text, end)
        following = None if joined is None else _PIECE.match(text, joined.end())
        if joined is None or following is None or following["number"]:
            break
        joint, thing = joined[0], following
    rest = _REST.match(text, end)
    return (end, Hole(tuple(items))) if rest is None else (rest.end(), Hole(tuple(items), rest[0]))
