"""A rule's page without the marks that make it a test, so that a person reads one clean text."""

import re
from collections.abc import Iterator

from gradvet.rules import Rule

_PAGES = "https://github.com/gradvet/gradvet/blob/main/server/gradvet/rules"

_FENCE = re.compile(r"(```+)(.*)")
_HEADING = re.compile(r"(#{1,6}) +(.+?) *$")
# `# warning: [rule] "text"`, `# raises: Type "text"`, `# revealed: …`: what a test expects of a line.
_EXPECTATION = re.compile(r"\s*#\s*(?:(?:error|warning|info|note):\s*\[|raises:|revealed:).*")
_PROBE = re.compile(r"[-+ ]*reveal_grad\(")

_CURE = "Use instead"
_TESTED = frozenset({"python", "diff"})

Block = list[str]


def rule_url(rule: Rule) -> str:
    """The address of the rule's page."""
    return f"{_PAGES}/{rule.name.replace('-', '_')}.md"


def readable(page: str) -> str:
    """The whole page for a reader: no proofs, no expectations, no probes."""
    return _join(_clean(block) for block in _blocks(page))


def summary(page: str) -> str:
    """The page's start, for a hover: without title, up to the first example and what to use instead.

    Headings are made bold lines, since a hover is small and a heading is large.
    """
    kept: list[Block] = []
    shown = False
    for block in _blocks(page):
        heading = _HEADING.match(block[0])
        if heading is None:
            shown = shown or _is_code(block)
            kept.append(_clean(block))
        elif shown and heading[2] != _CURE:
            break
        elif heading[1] != "#":
            kept.append([f"**{heading[2]}**"])
    return _join(kept)


def _blocks(page: str) -> Iterator[Block]:
    """Fenced blocks, headings and the text between them, without the blank lines around each."""
    block: Block = []
    fence = ""
    for line in page.splitlines():
        opening = _FENCE.match(line)
        if fence:
            block.append(line)
            if line.rstrip() == fence:
                yield block
                block, fence = [], ""
        elif opening or _HEADING.match(line):
            yield from _trimmed(block)
            block, fence = ([line], opening[1]) if opening else ([], "")
            if not opening:
                yield [line]
        else:
            block.append(line)
    yield from _trimmed(block)


def _trimmed(block: Block) -> Iterator[Block]:
    while block and not block[0].strip():
        block = block[1:]
    while block and not block[-1].strip():
        block = block[:-1]
    if block:
        yield block


def _is_code(block: Block) -> bool:
    return _FENCE.match(block[0]) is not None


def _clean(block: Block) -> Block:
    """A block as a reader should see it; empty when it is only there to be tested."""
    opening = _FENCE.match(block[0])
    if opening is None:
        return block
    language, _, title = opening[2].strip().partition(" ")
    if title == "proof":
        return []
    code = block[1:-1]
    if language in _TESTED:
        code = [line for marked in code if (line := _unmarked(marked)) is not None]
    caption = [f"**{title}**", ""] if title else []
    return [*caption, f"{opening[1]}{language}", *code, block[-1]]


def _unmarked(line: str) -> str | None:
    """The line without what a test expects of it; None when nothing else stood there."""
    if _PROBE.match(line):
        return None
    clean = _EXPECTATION.sub("", line)
    return clean if clean.strip("+- ") or clean == line else None


def _join(blocks: Iterator[Block] | list[Block]) -> str:
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"
