"""Writes random programs. The same seed gives the same program; knows no torch."""

from tools.fuzz.definitions import definition
from tools.fuzz.grammar import PRELUDE
from tools.fuzz.writer import Writer

_FIRST = "mmvsflwodz"


def generate(seed: int, statements: int) -> str:
    """The program of a seed, with so many statements and definitions at its top level."""
    writer = Writer(seed)
    lines = [line for kind in _FIRST for line in writer.bind(kind, new=True)]
    for _ in range(statements):
        lines += definition(writer) if writer.chance(0.2) else writer.statement(0)
    return PRELUDE + "\n".join(lines) + "\n"
