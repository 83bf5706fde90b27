"""English texts said in another language, with the entries of a catalogue."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, reduce
from typing import Any
from unicodedata import east_asian_width

from gradvet.words.english import Words
from gradvet.words.skeleton import HOLE, Hole, Item, Skeleton, skeleton

_FILLED = re.compile(r"( ?)\{(\d+)\}( ?)")
_SPLITS = (" · ", ". ", "; ", ": ", ", and ", ", ")
"""Between what a text may be looked up in two parts, the strongest first. The entry of each is what joins them."""
_ASIDE, _EITHER, _SENTENCE = "{} ({})", "{} or {}", "{}."
_PHRASES = (
    (re.compile(r"line (\d+) of cell (\d+)\Z"), "line {} of cell {}"),
    (re.compile(r"line (\d+) of (.+)\Z"), "line {} of {}"),
    (re.compile(r"line (\d+)\Z"), "line {}"),
    (re.compile(r"parameters of (.+)\Z"), "parameters of {}"),
    (re.compile(r"(\w+) of ([A-Z]\w*)\Z"), "{} of {}"),
)
"""What stands in a hole and is words: the key of its entry."""
_NOUN = "@"
"""Begins the key of what stands where other texts of the kind have a name: `this tensor`."""
_ANYTHING = "…"
"""Ends the key of a text that goes on with what is said by others, such as the reader of TOML."""
_WORDS = re.compile(r"[^\W\d_]")
_LEAD = re.compile(r"\A(\*\*?)((?:(?!\*).)+)\1(?: |\Z)")
_FENCE = re.compile(r"\s*(```+)")
_MARGIN = re.compile(r"\s*(?:[-*] |\d+\. |#+ )?\s*(?:← )?")
_LINK = re.compile(r"\A\[(.*)\](\(.*\))\Z")
_MOST_KNOWN = 4096


class Said(Words):
    """Another language. A text that is not known stays as it is."""

    def __init__(self, entries: Mapping[str, str]) -> None:
        """Say what has an entry."""
        self._entries = entries
        self._known = lru_cache(_MOST_KNOWN)(self.find)
        self._without: set[str] = set()
        nouns = sorted((key.removeprefix(_NOUN) for key in entries if key.startswith(_NOUN)), key=len)
        self._nouns = re.compile(rf"\b(?:{'|'.join(map(re.escape, reversed(nouns)))})\b") if nouns else None

    def say(self, text: str) -> str:
        """A text in this language, line by line."""
        return "\n".join(self._known(line) or line for line in text.split("\n"))

    def page(self, markdown: str) -> str:
        """A text in Markdown, line by line; code stays as it is."""
        return "\n".join(f"{stays}{self.say(words)}" for stays, words in lines_of(markdown))

    def find(self, text: str) -> str | None:
        """A text in this language; None where it has no entry, and is not made of parts that have one."""
        if not text.strip():
            return text
        return self._entries.get(text) or self._whole(skeleton(text))

    def _whole(self, of: Skeleton) -> str | None:
        """By its own entry, else by those of the two parts that it is made of."""
        if (entry := self._entries.get(of.key)) is not None:
            return _fill(entry, [self._filled(hole) for hole in of.holes])
        if not _WORDS.search(of.key):  # names and signs alone
            return "".join(
                part for pair in zip(of.pieces, (*map(self._filled, of.holes), "")) for part in pair
            )
        if (said := self._foreign(of)) is not None:
            return said
        if of.key in self._without:  # parts of long texts are asked for again and again
            return None
        if (said := self._by_parts(of)) is None:
            if len(self._without) > _MOST_KNOWN:
                self._without.clear()
            self._without.add(of.key)
        return said

    def _by_parts(self, of: Skeleton) -> str | None:
        return self._led(of) or self._aside(of) or self._split(of) or self._unnamed(of) or self._sentence(of)

    def _sentence(self, of: Skeleton) -> str | None:
        """What is elsewhere said without a full stop."""
        if not of.pieces[-1].endswith("."):
            return None
        said = self._whole(Skeleton((*of.pieces[:-1], of.pieces[-1][:-1]), of.holes))
        return None if said is None else self._entry(_SENTENCE, (said,))

    def _split(self, of: Skeleton) -> str | None:
        for joint in _SPLITS:
            for piece, at in _places(of, joint):
                end = at + len(joint)
                stop = at + (joint == ". ")  # a sentence's full stop belongs to it
                left = self._whole(of.before(piece, stop))
                right = None if left is None else self._whole(of.behind(piece, end))
                if left is not None and right is not None:
                    return f"{left}{self._entries.get(joint, joint)}{right}"
        return None

    def _foreign(self, of: Skeleton) -> str | None:
        """A text that ends with what somebody else says, in their language."""
        for piece, at in _places(of, ": "):
            entry = self._entries.get(f"{of.before(piece, at).key}: {_ANYTHING}")
            if entry is not None:
                return entry.replace(_ANYTHING, of.behind(piece, at + 2).text)
        return None

    def _unnamed(self, of: Skeleton) -> str | None:
        """A text in which nouns stand for names: they fill holes as names do."""
        if self._nouns is None or not any(map(self._nouns.search, of.pieces)):
            return None
        pieces: list[str] = []
        holes: list[Hole] = []
        for number, piece in enumerate(of.pieces):
            start = 0
            for match in self._nouns.finditer(piece):
                pieces.append(piece[start : match.start()])
                holes.append(Hole((Item("", _NOUN + match[0]),)))
                start = match.end()
            pieces.append(piece[start:])
            holes += of.holes[number : number + 1]
        return self._whole(Skeleton(tuple(pieces), tuple(holes)))

    def _aside(self, of: Skeleton) -> str | None:
        """A text with something in brackets at its end."""
        if not of.pieces[-1].endswith(")"):
            return None
        for piece, at in reversed([*_places(of, " (")]):
            left = self._whole(of.before(piece, at))
            inside = of.behind(piece, at + 2)
            inside = Skeleton((*inside.pieces[:-1], inside.pieces[-1][:-1]), inside.holes)
            right = None if left is None else self._whole(inside)
            if left is not None and right is not None:
                return self._entry(_ASIDE, (left, right))
        return None

    def _led(self, of: Skeleton) -> str | None:
        """A text that begins with words in bold or italics."""
        match = _LEAD.match(of.key)
        if match is None:
            return None
        marks, stop = match[1], match.end()
        holes = match[0].count(HOLE)
        end = stop - sum(len(piece) + len(HOLE) for piece in of.pieces[:holes])
        lead = of.before(holes, end)
        inner = (*lead.pieces[:-1], lead.pieces[-1].rstrip(" ")[: -len(marks)])
        said = self._whole(Skeleton((inner[0][len(marks) :], *inner[1:]), lead.holes))
        rest = of.behind(holes, end)
        behind = "" if not rest.key else self._whole(rest)
        if said is None or behind is None:
            return None
        return f"{marks}{said}{marks}{' ' if behind else ''}{behind}"

    def _filled(self, hole: Hole) -> str:
        """What fills a hole, in this language as far as it is words."""
        said = ""
        for item in hole.items:
            text = self._thing(item.text)
            if item.where:
                text = self._entry(_ASIDE, (text, self._thing(item.where)))
            said = self._entry(f"{HOLE}{item.joint}{HOLE}", (said, text)) if item.joint else text
        rest = hole.rest and (self.find(hole.rest.lstrip(", ")) or hole.rest)
        return f"{said}{rest}"

    def _thing(self, text: str) -> str:
        """A name stays as it is; words come with lines, with what is a part of something, and between names."""
        if (link := _LINK.match(text)) is not None:
            return f"[{self.find(link[1]) or link[1]}]{link[2]}"
        if text.startswith(_NOUN):
            return self._entries[text]
        for kind, key in _PHRASES:
            if (match := kind.match(text)) is not None:
                return self._entry(key, match.groups())
        if text.startswith("grad_fn "):
            first, *others = text.split(" or ")
            return reduce(lambda said, other: self._entry(_EITHER, (said, other)), others, first)
        return self._entries.get(text, text)

    def _entry(self, key: str, parts: Sequence[str | Any]) -> str:
        """An entry with its holes filled."""
        return _fill(self._entries[key], parts)


def lines_of(markdown: str) -> Iterator[tuple[str, str]]:
    """The lines of a text in Markdown, each as what stays as it is and what is words. Code has no words."""
    fence = ""
    for line in markdown.split("\n"):
        marked = _FENCE.match(line)
        if fence or marked is not None:
            fence = (marked[1] if marked else "") if not fence else "" if line.strip() == fence else fence
            yield line, ""
        else:
            margin = _MARGIN.match(line)
            at = margin.end() if margin else 0
            yield line[:at], line[at:]


def _fill(entry: str, parts: Sequence[str | Any]) -> str:
    """An entry with its holes filled. The space around a hole is that between two scripts."""

    def filled(match: re.Match[str]) -> str:
        part: str = parts[int(match[2])]
        before = "" if _is_wide(part[:1]) else match[1]
        return f"{before}{part}{'' if _is_wide(part[-1:]) else match[3]}"

    return _FILLED.sub(filled, entry)


def _is_wide(character: str) -> bool:
    return bool(character) and east_asian_width(character) in "WF"


def _places(of: Skeleton, joint: str) -> Iterator[tuple[int, int]]:
    """Where a joint stands between the holes."""
    for number, piece in enumerate(of.pieces):
        at = piece.find(joint)
        while at >= 0:
            yield number, at
            at = piece.find(joint, at + 1)
