"""Fills templates with what a program holds so far, and writes its simple statements and blocks."""

import random
import re
from collections.abc import Sequence

from tools.fuzz.grammar import BINDINGS, BLOCKS, EXPRESSIONS, LAST_RESORT, STATEMENTS

_HOLE = re.compile(r"\{(k(?:\.(\w))?|(\d)|(\w)(!?))\}")
_DEEPEST = 3
_KINDS = "mmmmmmmmmmmmvvssibnfflltdocqwwz"
INNERMOST = 2
"""How deep blocks may be nested."""


class Writer:
    """Writes statements one after the other, and knows which names hold what."""

    def __init__(self, seed: int) -> None:
        """`seed` decides everything."""
        self.random = random.Random(seed)  # noqa: S311  no secrets here
        self.names: list[tuple[str, str]] = []
        self._made = 0

    def chance(self, share: float) -> bool:
        """True in so many cases of one."""
        return self.random.random() < share

    def fresh(self, prefix: str) -> str:
        """A name that is not used yet."""
        self._made += 1
        return f"{prefix}{self._made}"

    def put(self, name: str, kind: str) -> None:
        """From here on a name holds this kind; nothing of use if the kind is blank."""
        self.names = [(other, of) for other, of in self.names if other != name]
        if kind != " ":
            self.names.append((name, kind))

    def expression(self, kind: str, depth: int) -> str:
        """An expression of a kind; the deeper it stands, the simpler it is."""
        known = self._known(kind)
        if known and self.chance(0.6 if depth else 0.15):
            return self.random.choice(known)
        if depth >= _DEEPEST:
            return self.random.choice(known) if known else LAST_RESORT[kind].format()
        text = self.fill(self.random.choice(EXPRESSIONS[kind]), depth + 1)
        return f"({text})" if depth else text

    def fill(self, template: str, depth: int, targets: Sequence[str] = ()) -> str:
        """A template with its holes filled; double braces become single ones."""
        bound: list[tuple[str, str]] = []

        def hole(match: re.Match[str]) -> str:
            whole, bound_kind, number, kind, variable = match.groups()
            if number:
                return targets[int(number)]
            if whole[0] == "k":
                bound.append((self.fresh("k"), bound_kind or " "))
                return bound[-1][0]
            known = self._known(kind)
            return self.random.choice(known) if variable and known else self.expression(kind, depth)

        text = _HOLE.sub(hole, template).replace("{{", "{").replace("}}", "}")
        for name, kind in bound:
            self.put(name, kind)
        return text

    def bind(self, kind: str, *, new: bool = False) -> list[str]:
        """An assignment; to a name that was there, unless it has to be new."""
        value = self.expression(kind, 0)
        known = self._known(kind)
        name = self.random.choice(known) if known and not new and self.chance(0.35) else self.fresh(kind)
        self.put(name, kind)
        return [f"{name} = {value}"]

    def statement(self, depth: int) -> list[str]:
        """The lines of one statement in so many blocks."""
        write = self.random.choices(
            (self._block, self._assignment, self._bindings, self._effect), (2, 3, 1, 4)
        )[0]
        return self._effect(depth) if write == self._block and depth >= INNERMOST else write(depth)

    def body(self, depth: int, statements: int) -> list[str]:
        """The lines of a block, indented."""
        return indented([line for _ in range(statements) for line in self.statement(depth)])

    def _known(self, kind: str) -> list[str]:
        return [name for name, of in self.names if of == kind]

    def _assignment(self, _: int) -> list[str]:
        return self.bind(self.random.choice(_KINDS))

    def _bindings(self, _: int) -> list[str]:
        template, kinds = self.random.choice(BINDINGS)
        targets = [self.fresh("t" if kind == " " else kind) for kind in kinds]
        lines = self.fill(template, 1, targets).split("\n")
        for name, kind in zip(targets, kinds, strict=True):
            self.put(name, kind)
        return lines

    def _effect(self, _: int) -> list[str]:
        return self.fill(self.random.choice(STATEMENTS), 1).split("\n")

    def _block(self, depth: int) -> list[str]:
        before = self.names
        head = self.fill(self.random.choice(BLOCKS), 1)
        inside = self.body(depth + 1, self.random.randint(1, 3))
        if head.startswith("for") and self.chance(0.3):
            leave = self.random.choice(("break", "continue"))
            inside = [
                *inside,
                f"    if {self.expression('n', 2)} > 2:",
                f"        {leave}",
                *self.body(depth + 1, 1),
            ]
        self.names = before
        if head == "try:":
            handlers = ["except (RuntimeError, ValueError):", "    pass"] if self.chance(0.7) else []
            if handlers and self.chance(0.7):
                return [head, *inside, *handlers]
            last = self.body(depth + 1, 1)
            self.names = before
            return [head, *inside, *handlers, "finally:", *last]
        if head.startswith("if") and self.chance(0.5):
            inside += ["else:", *self.body(depth + 1, 1)]
            self.names = before
        return [head, *inside]


def indented(lines: Sequence[str]) -> list[str]:
    """Lines one level deeper."""
    return [f"    {line}" for line in lines]
