"""Functions, closures, generators, modules and training loops of random programs.

Each function here writes one, and gives its lines, the name that it made, and what kind that name holds.
"""

from collections.abc import Callable

from tools.fuzz.grammar import SUBMODULES
from tools.fuzz.writer import INNERMOST, Writer, indented

Definition = tuple[list[str], str, str]

_MODES = ("@torch.no_grad()", "@torch.enable_grad()", "@torch.inference_mode()")
_SHIFTED = ("self.second[0](x)", "x + self.shift", "self.first(x) * x", "x.detach()")
_PARTS = (
    "self.first({})",
    "self.second[0]({})",
    "{} * self.scale",
    "{} + self.shift",
    "self.shifted({})",
    "{}",
)


def definition(writer: Writer) -> list[str]:
    """A definition, and calls of it if it is a function; the names inside are gone after it."""
    before = writer.names
    lines, made, kind = writer.random.choice(_DEFINITIONS)(writer)
    writer.names = before
    writer.put(made, kind)
    calls = writer.random.randint(1, 2) if kind == "f" else 0
    return [*lines, *(line for _ in range(calls) for line in _call(writer, made))]


def _call(writer: Writer, function: str) -> list[str]:
    value = f"{function}({writer.expression('m', 1)})"
    if writer.chance(0.2):
        return ["with torch.no_grad():", f"    {value}"]
    name = writer.fresh("m")
    writer.put(name, "m")
    return [f"{name} = {value}"]


def _function(writer: Writer) -> Definition:
    name, argument, other = writer.fresh("fn"), writer.fresh("a"), writer.fresh("a")
    default = writer.expression("m", 1)
    writer.put(argument, "m")
    writer.put(other, "m")
    lines = [writer.random.choice(_MODES)] if writer.chance(0.2) else []
    lines += [f"def {name}({argument}, {other}={default}):"]
    if writer.chance(0.3):
        lines += [f"    if {writer.fill('{n} > 1', 2)}:", f"        return {writer.expression('m', 1)}"]
    lines += writer.body(1, writer.random.randint(1, 3))
    return [*lines, f"    return {writer.expression('m', 0)}"], name, "f"


def _closure(writer: Writer) -> Definition:
    make, name, kept, argument = (writer.fresh(prefix) for prefix in ("make", "fn", "kept", "a"))
    given = writer.expression("m", 1)
    writer.put(kept, "m")
    writer.put(argument, "m")
    lines = [
        f"def {make}({kept}):",
        f"    def inner({argument}):",
        f"        nonlocal {kept}",
        f"        {kept} = {writer.expression('m', 1)}",
        f"        return {writer.expression('m', 0)}",
        "    return inner",
        f"{name} = {make}({given})",
    ]
    return lines, name, "f"


def _recursion(writer: Writer) -> Definition:
    name, argument = writer.fresh("fn"), writer.fresh("a")
    writer.put(argument, "m")
    lines = [
        f"def {name}({argument}, n=2):",
        "    if n == 0:",
        f"        return {writer.expression('m', 1)}",
        f"    return {name}({writer.expression('m', 1)}, n - 1) * {writer.expression('m', 1)}",
    ]
    return lines, name, "f"


def _generator(writer: Writer) -> Definition:
    name, argument, made = writer.fresh("gen"), writer.fresh("a"), writer.fresh("l")
    given = writer.expression("l", 1)
    writer.put(argument, "m")
    lines = [
        f"def {name}(items):",
        f"    for {argument} in items:",
        *indented(writer.body(2, 1)),
        f"        yield {writer.expression('m', 0)}",
        f"{made} = list({name}({given}))",
    ]
    return lines, made, "l"


def _module(writer: Writer) -> Definition:
    cls, name, argument = writer.fresh("Net"), writer.fresh("net"), writer.fresh("a")
    first, second = (writer.random.choice(SUBMODULES) for _ in range(2))
    for held in (argument, "self.scale", "self.shift"):
        writer.put(held, "m")
    body = writer.body(2, writer.random.randint(0, 2))
    result = writer.expression("m", 1)
    for part in writer.random.sample(_PARTS, 3):
        result = part.format(result)
    given = writer.random.choice(("self.last", argument, "self.last * self.scale", "self.last.relu()"))
    lines = [
        f"class {cls}(nn.Module):",
        "    def __init__(self):",
        "        super().__init__()",
        f"        self.first, self.second = {first}, nn.ModuleList([{second}])",
        "        self.scale = nn.Parameter(torch.ones(3, 3))",
        "        self.register_buffer('shift', torch.zeros(3, 3))",
        "        self.last = None",
        *(["    @torch.no_grad()"] if writer.chance(0.5) else []),
        "    def shifted(self, x):",
        f"        return {writer.random.choice(_SHIFTED)}",
        f"    def forward(self, {argument}):",
        *indented(body),
        f"        self.last = {result}",
        f"        return {given}",
        f"{name} = {cls}()",
        *writer.random.choice(_changes(name)),
    ]
    return lines, name, "f"


def _inheriting(writer: Writer) -> Definition:
    """A module that extends another of the program, and a class with `__call__` that holds one of its instances."""
    base, child, holder, name, argument = (writer.fresh(p) for p in ("Base", "Child", "Holder", "fn", "a"))
    writer.put(argument, "m")
    lines = [
        f"class {base}(nn.Module):",
        "    def __init__(self, bias=True):",
        "        super().__init__()",
        f"        self.inner = {writer.random.choice(SUBMODULES)}",
        "        self.bias = nn.Parameter(torch.zeros(3)) if bias else None",
        f"    def before(self, {argument}):",
        f"        return {writer.expression('m', 1)}",
        f"    def forward(self, {argument}):",
        f"        out = self.inner(self.before({argument}))",
        "        return out if self.bias is None else out + self.bias",
        f"class {child}({base}):",
        "    def __init__(self):",
        f"        super().__init__(bias={writer.random.choice(('True', 'False'))})",
        "    @property",
        "    def scale(self):",
        "        return self.inner.weight.norm() if hasattr(self.inner, 'weight') else 1.0",
        f"    def before(self, {argument}):",
        f"        return super().before({argument}) * {writer.random.choice(('self.scale', '2', argument))}",
        f"class {holder}:",
        "    count = 0",
        "    def __init__(self, net, *extra):",
        "        self.net, self.seen = net, list(extra)",
        "    @staticmethod",
        "    def mean(xs):",
        "        return sum(xs) / len(xs)",
        f"    def __call__(self, {argument}):",
        "        self.count += 1",
        f"        self.seen.append(self.net({argument}){writer.random.choice(('', '.detach()'))})",
        f"        return {writer.random.choice(('self.seen[-1]', 'self.mean(self.seen)', 'self.seen[0] * 2'))}",
        f"{name} = {holder}({child}(), {writer.expression('m', 1)})",
    ]
    return lines, name, "f"


def _decorated(writer: Writer) -> Definition:
    """A function with any arguments, inside a decorator of the program; it may change what it is given."""
    name, argument = writer.fresh("fn"), writer.fresh("a")
    default = writer.expression("m", 1)
    writer.put(argument, "m")
    change = writer.random.choice(
        ("pass", f"{argument}.mul_(2)", f"{argument} = {writer.expression('m', 1)}")
    )
    lines = [
        *(["@doubling"] if writer.chance(0.7) else []),
        *(["@torch.no_grad()"] if writer.chance(0.2) else []),
        f"def {name}({argument}, *rest, scale={default}, **options):",
        f"    for one in (*rest, {writer.expression('m', 1)}):",
        f"        if {writer.fill('{n} > 2', 2)}:",
        f"            return {writer.expression('m', 1)}",
        f"        {argument} = {argument} + one",
        f"    {change}",
        f"    return {argument} * options.get('by', scale)",
        f"{writer.fresh('t')} = {name}({writer.expression('m', 1)}, {writer.expression('m', 1)}, by=2.0)",
    ]
    return lines, name, "f"


def _quiet_generator(writer: Writer) -> Definition:
    """A generator that yields inside a grad mode, and hands on what another gives."""
    name, argument, made, other = (
        writer.fresh("gen"),
        writer.fresh("a"),
        writer.fresh("l"),
        writer.fresh("gen"),
    )
    given = writer.expression("l", 1)
    writer.put(argument, "m")
    lines = [
        f"def {name}(items):",
        f"    with {writer.random.choice(('torch.no_grad()', 'torch.enable_grad()', 'quiet()'))}:",
        f"        {argument} = {writer.expression('m', 1).replace(argument, 'items[0]')}",
        f"    yield {argument}",
        f"    yield {argument} * {writer.expression('m', 1)}",
        f"def {other}(items):",
        f"    yield from {name}(items)",
        f"{made} = [x * 1 for x in {other}({given})]",
    ]
    return lines, made, "l"


def _global(writer: Writer) -> Definition:
    """A function that gives a name of the module another value."""
    name, argument = writer.fresh("fn"), writer.fresh("a")
    held = writer.random.choice([known for known, kind in writer.names if kind == "m"])
    writer.put(argument, "m")
    lines = [
        f"def {name}({argument}):",
        f"    global {held}",
        f"    {held} = {writer.expression('m', 0)}",
        f"    return {writer.expression('m', 0)}",
    ]
    return lines, name, "f"


def _sending(writer: Writer) -> Definition:
    """A generator that is asked for one thing after the other, and may be closed before its end."""
    name, argument, made, first, second = (writer.fresh(prefix) for prefix in ("gen", "a", "it", "m", "m"))
    given = writer.expression("m", 1)
    writer.put(argument, "m")
    lines = [
        f"def {name}({argument}):",
        *writer.body(1, 1),
        f"    yield {writer.expression('m', 0)}",
        f"    {argument} = {writer.expression('m', 0)}",
        f"    yield {argument}",
        f"{made} = {name}({given})",
        f"{first} = next({made})",
        *writer.random.choice(([f"{second} = next({made})"], [f"{second} = {first} * 2", f"{made}.close()"])),
    ]
    return lines, second, "m"


def _changes(module: str) -> list[list[str]]:
    """What may be done to a module between its making and its calls."""
    return [
        [],
        [],
        [f"{module}.eval()"],
        [f"{module}.requires_grad_(False)"],
        [f"{module}.first.requires_grad_(False)"],
        [f"for p in {module}.parameters():", "    p.requires_grad = False"],
        [f"{module}.first.register_forward_hook(lambda m, i, o: o * 2)"],
        [f"{module}.first.register_forward_pre_hook(lambda m, i: (i[0] * 2,))"],
        [f"for k, p in {module}.named_parameters():", "    p.requires_grad_(k == 'scale')"],
        [f"{module}.first.register_full_backward_hook(lambda m, i, o: None)"],
        [f"{module} = copy.deepcopy({module})"],
        [f"{module}.scale.data.mul_(0.5)"],
        [f"{module}.scale = nn.Parameter(torch.zeros(3, 3), requires_grad=False)"],
    ]


def _training(writer: Writer) -> Definition:
    """A training loop over a new layer."""
    net, optimizer, loss, out = (writer.fresh(prefix) for prefix in ("w", "opt", "s", "m"))
    rule = writer.random.choice(("SGD", "Adam"))
    writer.put(net, "w")
    inside = [f"{out} = {net}({writer.expression('m', 1)})"]
    writer.put(out, "m")
    inside += writer.statement(INNERMOST)
    inside += [f"{loss} = F.mse_loss({out}, {writer.expression('m', 1)})"]
    inside += writer.random.choice(
        ([f"{optimizer}.zero_grad()"], [f"{optimizer}.zero_grad(set_to_none=False)"], [])
    )
    inside += [f"{loss}.backward()"]
    inside += writer.random.choice(([], [f"{net}.weight.grad"], [f"{net}.weight.grad.norm()"]))
    inside += writer.random.choice(
        ([], [], [f"nn.utils.clip_grad_norm_({net}.parameters(), 1.0)"], [f"{net}.bias.grad.mul_(0.5)"])
    )
    scheduled = writer.chance(0.2)
    inside += [f"{optimizer}.step()", *([f"{optimizer}_lr.step()"] if scheduled else [])]
    schedule = f"{optimizer}_lr = torch.optim.lr_scheduler.StepLR({optimizer}, 1)"
    lines = [
        f"{net} = nn.Linear(3, 3)",
        f"{optimizer} = torch.optim.{rule}({net}.parameters(), lr=0.1)",
        *([schedule] if scheduled else []),
        f"for {writer.fresh('k')} in range(2):",
        *indented(inside),
    ]
    return lines, net, "w"


_DEFINITIONS: tuple[Callable[[Writer], Definition], ...] = (
    _function,
    _function,
    _module,
    _module,
    _closure,
    _recursion,
    _generator,
    _training,
    _inheriting,
    _decorated,
    _quiet_generator,
    _global,
    _sending,
)
