"""Writes random programs. The same seed gives the same program; knows no torch."""

import random
import re
from collections.abc import Sequence

from tools.fuzz.grammar import BINDINGS, BLOCKS, EXPRESSIONS, LAST_RESORT, PRELUDE, STATEMENTS, SUBMODULES

_HOLE = re.compile(r"\{(k(?:\.(\w))?|(\d)|(\w)(!?))\}")
_DEEPEST = 3
_DEEPEST_BLOCK = 2
_TENSORS = "mmmmmmvvss"
_KINDS = _TENSORS + "mmmmibnfflltdocqww"


class Generator:
    """Writes one program, statement by statement, and knows which names hold what."""

    def __init__(self, seed: int) -> None:
        """`seed` decides everything."""
        self._random = random.Random(seed)  # noqa: S311  no secrets here
        self._names: list[tuple[str, str]] = []
        self._made = 0

    def program(self, statements: int) -> str:
        """A program with about so many statements at its top level."""
        lines = []
        for kind in ("m", "m", "v", "s", "f", "l", "w", "o", "d"):
            lines += self._bind(kind, new=True)
        while statements > 0:
            part = self._definition() if self._chance(0.2) else self._statement(0)
            lines += part
            statements -= 1
        return PRELUDE + "\n".join(lines) + "\n"

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _fresh(self, prefix: str) -> str:
        self._made += 1
        return f"{prefix}{self._made}"

    def _known(self, kind: str) -> list[str]:
        return [name for name, of in self._names if of == kind]

    def _put(self, name: str, kind: str) -> None:
        """From here on a name holds this kind; none, if the kind is blank."""
        self._names = [(other, of) for other, of in self._names if other != name]
        if kind != " ":
            self._names.append((name, kind))

    # -- expressions

    def _expression(self, kind: str, depth: int) -> str:
        known = self._known(kind)
        if known and self._chance(0.6 if depth else 0.15):
            return self._random.choice(known)
        if depth >= _DEEPEST:
            return self._random.choice(known) if known else LAST_RESORT[kind].format()
        text = self._fill(self._random.choice(EXPRESSIONS[kind]), depth + 1)
        return f"({text})" if depth else text

    def _fill(self, template: str, depth: int, targets: Sequence[str] = ()) -> str:
        """A template with its holes filled; double braces become single ones."""
        loop_names: list[tuple[str, str]] = []

        def hole(match: re.Match[str]) -> str:
            whole, loop_kind, number, kind, variable = match.groups()
            if number:
                return targets[int(number)]
            if whole[0] == "k":
                name = self._fresh("k")
                loop_names.append((name, loop_kind or " "))
                return name
            known = self._known(kind)
            return self._random.choice(known) if variable and known else self._expression(kind, depth)

        text = _HOLE.sub(hole, template).replace("{{", "{").replace("}}", "}")
        for name, kind in loop_names:
            self._put(name, kind)
        return text

    # -- statements

    def _bind(self, kind: str, *, new: bool = False) -> list[str]:
        value = self._expression(kind, 0)
        known = self._known(kind)
        name = self._random.choice(known) if known and not new and self._chance(0.35) else self._fresh(kind)
        self._put(name, kind)
        return [f"{name} = {value}"]

    def _statement(self, block_depth: int) -> list[str]:
        dice = self._random.random()
        if dice < 0.2 and block_depth < _DEEPEST_BLOCK:  # noqa: PLR2004
            return self._block(block_depth)
        if dice < 0.5:  # noqa: PLR2004
            return self._bind(self._random.choice(_KINDS))
        if dice < 0.62:  # noqa: PLR2004
            template, kinds = self._random.choice(BINDINGS)
            targets = [self._fresh("t" if kind == " " else kind) for kind in kinds]
            lines = self._fill(template, 1, targets).split("\n")
            for name, kind in zip(targets, kinds, strict=True):
                self._put(name, kind)
            return lines
        return self._fill(self._random.choice(STATEMENTS), 1).split("\n")

    def _block(self, depth: int) -> list[str]:
        before = list(self._names)
        head = self._fill(self._random.choice(BLOCKS), 1)
        lines = [head, *self._body(depth + 1, self._random.randint(1, 3))]
        self._names = before
        if head == "try:":
            lines += ["except (RuntimeError, ValueError):", "    pass"]
        elif head.startswith("if") and self._chance(0.5):
            lines += ["else:", *self._body(depth + 1, 1)]
            self._names = before
        elif head.startswith("for") and self._chance(0.3):
            lines.insert(
                1,
                f"    if {self._expression('n', 2)} > 2:\n        {self._random.choice(['break', 'continue'])}",
            )
        return lines

    def _body(self, depth: int, statements: int) -> list[str]:
        """The lines of a block, indented."""
        lines = [line for _ in range(statements) for line in self._statement(depth)]
        return [f"    {part}" for line in lines for part in line.split("\n")]

    # -- definitions

    def _definition(self) -> list[str]:
        kind = self._random.choice(
            ("function", "function", "module", "module", "closure", "generator", "loop", "recursion")
        )
        before = list(self._names)
        lines, made, made_kind = getattr(self, f"_{kind}")()
        self._names = before
        if made:
            self._put(made, made_kind)
        uses = [] if made_kind != "f" else [f"{self._call(made)}" for _ in range(self._random.randint(1, 2))]
        return [*lines, *uses]

    def _call(self, function: str) -> str:
        value = f"{function}({self._expression('m', 1)})"
        if self._chance(0.2):
            return f"with torch.no_grad():\n    {value}"
        name = self._fresh("m")
        self._put(name, "m")
        return f"{name} = {value}"

    def _function(self) -> tuple[list[str], str, str]:
        name, argument, other = self._fresh("fn"), self._fresh("a"), self._fresh("a")
        head = (
            [self._random.choice(("@torch.no_grad()", "@torch.enable_grad()", "@torch.inference_mode()"))]
            if self._chance(0.2)
            else []
        )
        default = self._expression("m", 1)
        self._put(argument, "m")
        self._put(other, "m")
        body = self._body(1, self._random.randint(1, 3))
        early = (
            [f"    if {self._fill('{n} > 1', 2)}:", f"        return {self._expression('m', 1)}"]
            if self._chance(0.3)
            else []
        )
        return (
            [
                *head,
                f"def {name}({argument}, {other}={default}):",
                *early,
                *body,
                f"    return {self._expression('m', 0)}",
            ],
            name,
            "f",
        )

    def _closure(self) -> tuple[list[str], str, str]:
        make, name, kept, argument = (self._fresh(prefix) for prefix in ("make", "fn", "kept", "a"))
        given = self._expression("m", 1)
        self._put(kept, "m")
        self._put(argument, "m")
        lines = [
            f"def {make}({kept}):",
            "    def inner(" + argument + "):",
            f"        nonlocal {kept}",
            f"        {kept} = {self._expression('m', 1)}",
            f"        return {self._expression('m', 0)}",
            "    return inner",
            f"{name} = {make}({given})",
        ]
        return lines, name, "f"

    def _generator(self) -> tuple[list[str], str, str]:
        name, argument, made = self._fresh("gen"), self._fresh("a"), self._fresh("l")
        given = self._expression("l", 1)
        self._put(argument, "m")
        body = self._body(2, 1)
        lines = [
            f"def {name}(items):",
            f"    for {argument} in items:",
            *(f"    {line}" for line in body),
            f"        yield {self._expression('m', 0)}",
            f"{made} = list({name}({given}))",
        ]
        return lines, made, "l"

    def _recursion(self) -> tuple[list[str], str, str]:
        name, argument = self._fresh("fn"), self._fresh("a")
        self._put(argument, "m")
        lines = [
            f"def {name}({argument}, n=2):",
            "    if n == 0:",
            f"        return {self._expression('m', 1)}",
            f"    return {name}({self._expression('m', 1)}, n - 1) * {self._expression('m', 1)}",
        ]
        return lines, name, "f"

    def _module(self) -> tuple[list[str], str, str]:
        cls, name, argument = self._fresh("Net"), self._fresh("net"), self._fresh("a")
        first, second = self._random.choice(SUBMODULES), self._random.choice(SUBMODULES)
        self._put(argument, "m")
        parts = (
            "self.first({})",
            "self.second({})",
            "{} * self.scale",
            "{} + self.shift",
            "self.shifted({})",
            "{}",
        )
        for part in ("self.scale", "self.shift"):
            self._put(part, "m")
        body = self._body(2, self._random.randint(0, 2))
        result = self._expression("m", 1)
        for part in self._random.sample(parts, 3):
            result = part.format(result)
        lines = [
            f"class {cls}(nn.Module):",
            "    def __init__(self):",
            "        super().__init__()",
            f"        self.first, self.second = {first}, nn.ModuleList([{second}])",
            "        self.scale = nn.Parameter(torch.ones(3, 3))",
            "        self.register_buffer('shift', torch.zeros(3, 3))",
            "        self.last = None",
            f"    {self._random.choice(['@torch.no_grad()', '# plain'])}",
            "    def shifted(self, x):",
            f"        return {self._random.choice(['self.second[0](x)', 'x + self.shift', 'self.first(x) * x', 'x.detach()'])}",
            f"    def forward(self, {argument}):",
            *(f"    {line}" for line in body),
            f"        self.last = {result.replace('self.second(', 'self.second[0](')}",
            f"        return {self._random.choice(['self.last', argument, 'self.last * self.scale', 'self.last.relu()'])}",
            f"{name} = {cls}()",
            *self._random.choice((
                [], [], [f"{name}.eval()"], [f"{name}.requires_grad_(False)"], [f"{name}.first.requires_grad_(False)"],
                [f"for p in {name}.parameters():", "    p.requires_grad = False"],
                [f"{name}.first.register_forward_hook(lambda m, i, o: o * 2)"],
            )),
        ]  # fmt: skip
        return lines, name, "f"

    def _loop(self) -> tuple[list[str], str, str]:
        """A training loop over a new layer."""
        net, optimizer, loss, argument = (self._fresh(prefix) for prefix in ("w", "opt", "s", "m"))
        rule = self._random.choice(("SGD", "Adam"))
        self._put(net, "w")
        head = [f"{net} = nn.Linear(3, 3)", f"{optimizer} = torch.optim.{rule}({net}.parameters(), lr=0.1)"]
        inside = [f"{argument} = {net}({self._expression('m', 1)})"]
        self._put(argument, "m")
        inside += self._statement(_DEEPEST_BLOCK)
        inside += [f"{loss} = F.mse_loss({argument}, {self._expression('m', 1)})"]
        inside += self._random.choice(
            ([f"{optimizer}.zero_grad()"], [f"{optimizer}.zero_grad(set_to_none=False)"], [])
        )
        inside += [f"{loss}.backward()"]
        inside += self._random.choice(([], [f"{net}.weight.grad"], [f"{net}.weight.grad.norm()"]))
        inside += [f"{optimizer}.step()"]
        body = [f"    {part}" for line in inside for part in line.split("\n")]
        return [*head, f"for {self._fresh('k')} in range(2):", *body], net, "w"
