"""Models of which nothing is known, put into eval mode and then run over batches: evaluation, with grad mode on.

What such a model gives is not known, so its graph cannot be followed. The evidence is the code itself: a function (or the
one that called it) puts a thing into eval mode, runs it in a loop after that, and neither takes a gradient nor yields.
"""

import ast
from dataclasses import dataclass, field

from gradvet.autograd.held import held_tensors
from gradvet.autograd.library.tensor_methods import in_forward
from gradvet.autograd.machine import Frame, Machine
from gradvet.autograd.memory.domain import GRAD, MAYBE, NOTHING, YES
from gradvet.autograd.memory.values import Function, Opaque, Unknown, Value
from gradvet.syntax.parents import Parents
from gradvet.syntax.tree import walk

EVALUATES, TRAINS = 1, 2
KEY = "#eval "
MOST_PARTS = 4
_SAME = frozenset({"forward", "module"})
_OF_GRADIENTS = frozenset({
    "backward", "manual_backward", "grad", "requires_grad", "requires_grad_", "autograd", "enable_grad",
    "training_step",
})  # fmt: skip
_PLAIN = frozenset(
    {"staticmethod", "classmethod", "property", "override", "wraps", "abstractmethod", "overload"}
)
Calls = tuple[ast.AST, ...]


@dataclass(frozen=True, slots=True)
class Evaluated:
    """A call of something in eval mode, in the function that evaluates, and where it was put into that mode."""

    site: ast.Call
    calls: Calls
    evidence: ast.AST
    function: ast.FunctionDef | ast.AsyncFunctionDef
    nodes: frozenset[int]
    """The graph of what it gives, where what is put into eval mode is known to be a module, and no more."""
    method: str = ""
    """The method that was called of it, where it was not called itself."""
    once: bool = False
    """Whether it is no loop that shows an evaluation, but that what is run is put back into training mode after it."""


@dataclass(slots=True)
class Evaluations:
    """Told of each call in the program; remembers what was put into eval mode by the name it has there."""

    machine: Machine
    sites: dict[tuple[int, str], ast.AST] = field(default_factory=dict)
    found: dict[ast.AST, Evaluated] = field(default_factory=dict)
    unrecorded: set[str] = field(default_factory=set)
    """The methods that are called, of things that are not known, where autograd does not record."""
    single: dict[tuple[int, str], Evaluated] = field(default_factory=dict)
    """Calls in no loop, until what is called is put back into training mode."""

    def called(self, node: ast.Call, value: Value) -> None:
        """Something was called and gave this value."""
        func = node.func
        if isinstance(func, ast.Attribute) and func.attr in ("eval", "train"):
            self._switched(node, func)
        elif self.machine.mode != GRAD:
            if isinstance(func, ast.Attribute) and is_open(self.machine, value):
                self.unrecorded.add(func.attr)
        elif self.sites and self.machine.frames[-1].node is not self.machine.main:
            path = path_of(func)
            if path is None or node in self.found:
                return
            self._handed_with_loop(node, value)
            held = held_tensors(self.machine, value)
            assumed = [state for _, state in held if state.requires_grad == YES and state.assumes]
            if assumed or is_open(self.machine, value):
                nodes = NOTHING.union(*(state.nodes for state in assumed))
                if not self._run(node, path, nodes) and isinstance(func, ast.Attribute):
                    self._run(node, path.rpartition(".")[0], nodes, func.attr)

    def asserted(self, node: ast.Assert) -> None:
        """`assert not model.training`: whoever comes here has put it into eval mode."""
        match node.test:
            case ast.UnaryOp(op=ast.Not(), operand=ast.Attribute(value=holder, attr="training")):
                if (path := path_of(holder)) is not None:
                    self._put_into_eval(path, node)

    def _put_into_eval(self, path: str, site: ast.AST) -> None:
        scope = self.machine.frames[-1].scope
        self.machine.store.set((scope, KEY + path), EVALUATES)
        self.sites[scope, path] = site

    def _switched(self, node: ast.Call, func: ast.Attribute) -> None:
        path = path_of(func.value)
        if path is None or len(node.args) + len(node.keywords) > (func.attr == "train"):
            return
        scope = self.machine.frames[-1].scope
        off = node.args and isinstance(node.args[0], ast.Constant) and node.args[0].value is False
        once = self.single.pop((scope, path), None)
        if func.attr == "eval" or off:
            self._put_into_eval(path, node)
            return
        self.machine.store.set((scope, KEY + path), TRAINS)
        if once is not None:
            self.found.setdefault(once.site, once)

    def _handed_with_loop(self, node: ast.Call, value: Value) -> None:
        """Something in eval mode is handed over, with a function that runs what it is given over batches and no more."""
        frame = self.machine.frames[-1]
        names = list(dict.fromkeys(arg.id for arg in node.args if isinstance(arg, ast.Name)))
        function = frame.node
        if len(names) < 2 or not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):  # noqa: PLR2004
            return
        given = next((name for name in names if (frame.scope, name) in self.sites), None)
        if given is None or not is_open(self.machine, value) or in_forward(self.machine):
            return
        if self.machine.cells.get((frame.scope, KEY + given)) != EVALUATES:
            return
        runs = any(
            isinstance(one, ast.FunctionDef) and one.name in names and _only_runs(one)
            for one in walk(function)
        )
        if runs and not any(_asks(f) or is_decorated(f.node) for f in self.machine.frames):
            where = self.machine.where()
            self.found[node] = Evaluated(node, where, self.sites[frame.scope, given], function, NOTHING)

    def _run(self, node: ast.Call, path: str, nodes: frozenset[int], method: str = "") -> bool:
        """Look at a call of what has this name, or of a method of it; False where it was not put into eval mode."""
        frames = self.machine.frames
        under = self._under(len(frames) - 1, path)
        if under is None:
            return False
        index, evidence = under
        inner = frames[index:]
        function = inner[0].node
        looped = any(loop.node is not None for frame in inner for loop in frame.loops)
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return True
        if not looped:
            asks = any(_asks(frame) or is_decorated(frame.node) for frame in frames)
            if len(inner) == 1 and not method and not asks and not in_forward(self.machine):
                here = self.machine.where()[:index]
                once = Evaluated(node, here, evidence, function, nodes, once=True)
                if node in self.machine.lone:
                    self.found.setdefault(node, once)  # what it gives is thrown away
                self.single[inner[0].scope, path] = once
            return True
        if in_forward(self.machine):
            return True  # it may be trained by: eval mode is how a loss runs the network that it is made with
        if any(_asks(frame) for frame in inner) or any(is_decorated(frame.node) for frame in frames):
            return True
        site = node if len(inner) == 1 else self.machine.calls[index]
        if isinstance(site, ast.Call) and site not in self.found:
            self.found[site] = Evaluated(
                site, self.machine.where()[:index], evidence, function, nodes, method
            )
        return True

    def _under(self, index: int, path: str) -> tuple[int, ast.AST] | None:
        """The frame in which something was put into eval mode, and where: here, or by a caller who handed it over."""
        frame = self.machine.frames[index]
        mode = self.machine.cells.get((frame.scope, KEY + path))
        if mode is not None:
            site = self.sites.get((frame.scope, path))
            return (index, site) if mode == EVALUATES and site is not None else None
        if index < 2:  # noqa: PLR2004  the module itself evaluates nothing
            return None
        outer = _handed_over(frame, path)
        if outer is None and path.startswith("self.") and frame.receiver is not None:
            outer = path if self.machine.frames[index - 1].receiver == frame.receiver else None
        return None if outer is None else self._under(index - 1, outer)


def _only_runs(function: ast.FunctionDef) -> bool:
    """Whether a function runs its argument in a loop and takes nothing of what that gives."""
    first = function.args.args[0].arg if function.args.args else ""
    loops = [node for node in walk(function) if isinstance(node, (ast.For, ast.While))]
    return any(
        isinstance(one, ast.Expr)
        and isinstance(one.value, ast.Call)
        and isinstance(one.value.func, ast.Name)
        and one.value.func.id == first
        for loop in loops
        for one in loop.body
    )


def gives_graphs(m: Machine, method: str) -> bool:
    """Whether the modules of the file that have a method of this name return what was recorded, whenever it ran."""
    found = [
        function.node
        for info in m.classes.values()
        if info.is_module
        and type(function := m.cells.get((info.address, method))) is Function
        and isinstance(function.node, ast.FunctionDef)
    ]
    given = [part.value for node in found for part in walk(node) if isinstance(part, ast.Return)]
    states = [m.states.get(value) for value in given if value is not None]
    return bool(states) and all(state is not None and state.has_graph for state in states)


def is_open(m: Machine, value: Value) -> bool:
    """Whether what a call gave is not known: what is known to have a graph is judged by that."""
    held = held_tensors(m, value)
    if held:
        return all(state.requires_grad == MAYBE for _, state in held)
    kinds = {type(m.cells.get(getattr(atom, "address", -1), atom)) for atom in m.alternatives(value)}
    return kinds <= {Opaque, Unknown}


def path_of(node: ast.expr) -> str | None:
    """A name with a few attributes, as a text: `self.model`. What only passes a call on is left out."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute) and len(parts) < MOST_PARTS:
        if node.attr not in _SAME:
            parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else None


def _handed_over(frame: Frame, path: str) -> str | None:
    """What a parameter was called by the caller."""
    call = frame.call.node if frame.call is not None else None
    name, dot, rest = path.partition(".")
    parameters = frame.info.parameters
    if not isinstance(call, ast.Call) or any(isinstance(arg, ast.Starred) for arg in call.args):
        return None
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    first = max(len(frame.call.args) - len(call.args), 0)
    given.update(zip(parameters[first:], call.args, strict=False))
    outer = path_of(given[name]) if name in given else None
    return f"{outer}{dot}{rest}" if outer is not None else None


def _asks(frame: Frame) -> bool:
    """Whether a function has to do with gradients itself, or hands out results one by one."""
    return frame.info.is_generator or not frame.info.attributes.isdisjoint(_OF_GRADIENTS)


def some_forward_asks(m: Machine) -> bool:
    """Whether the forward of a module of the program takes a gradient itself, or makes a leaf to take one of."""
    forwards = [method for i in m.classes.values() if i.is_module for method in i.defines("forward")]
    return any(
        (isinstance(node, ast.Attribute) and node.attr in _OF_GRADIENTS)
        or (isinstance(node, ast.keyword) and node.arg == "requires_grad" and _is_true(node.value))
        for forward in forwards
        for node in walk(forward)
    )


def _is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def is_decorated(function: ast.AST) -> bool:
    """Whether a function has a decorator of which it is not known what it does to grad mode."""
    names = [
        made.func if isinstance(made, ast.Call) else made for made in getattr(function, "decorator_list", ())
    ]
    return any((getattr(name, "attr", "") or getattr(name, "id", "")) not in _PLAIN for name in names)


def in_unknown_context(site: ast.AST, function: ast.AST, parents: Parents) -> bool:
    """Whether a `with` between a place and its function enters something that might turn grad mode off."""
    node: ast.AST | None = site
    while node is not None and node is not function:
        if isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                made = item.context_expr
                words = path_of(made.func if isinstance(made, ast.Call) else made) or "?"
                if (
                    not words.lower()
                    .rpartition(".")[2]
                    .endswith(
                        (
                            "autocast",
                            "tqdm",
                            "open",
                            "progress",
                            "enable_grad",
                            "compute_loss_context_manager",
                        )
                    )
                ):
                    return True
        node = parents.get(node)
    return False
