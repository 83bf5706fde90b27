"""Networks of which nothing is known, run with grad mode on, where all that they give is detached at once.

What such a call gives is not known, so its graph cannot be followed. The evidence is the code itself: the thing is treated
as a module where it is used, and whoever detaches its result takes it that there is a graph.
"""

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field

from gradvet.autograd.events_flow import ReferenceWithGrad
from gradvet.autograd.held import held_tensors
from gradvet.autograd.judging.above import ANY_FUNCTION, function_of
from gradvet.autograd.judging.ends import ends_in_cuts
from gradvet.autograd.judging.evaluations import Calls, in_unknown_context, is_decorated, is_open, path_of
from gradvet.autograd.knowledge.frameworks import convention_of
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import GRAD, YES
from gradvet.autograd.memory.values import Value
from gradvet.syntax.parents import Parents
from gradvet.syntax.tree import walk

_OF_MODULES = frozenset(
    {"eval", "train", "parameters", "named_parameters", "load_state_dict", "requires_grad_"}
)
_CUTS = frozenset({"detach", "detach_"})


@dataclass(frozen=True, slots=True)
class Run:
    """A call with grad mode on, of which nothing is known but that its callee is a network."""

    site: ast.Call
    calls: Calls
    evidence: ast.AST | None


@dataclass(slots=True)
class ThrownAway:
    """Told of each call in the program; looks at the end for those whose results are detached at once."""

    machine: Machine
    runs: dict[ast.Call, Run] = field(default_factory=dict)
    shown: dict[ast.AST, dict[str, ast.AST]] = field(default_factory=dict)

    def called(self, node: ast.Call, value: Value) -> None:
        """Something was called and gave this value."""
        m = self.machine
        if (
            node in self.runs
            or m.mode != GRAD
            or m.mode_nodes
            or not isinstance(node.func, ast.Attribute | ast.Name)
        ):
            return
        if "detach" not in m.frames[-1].info.attributes and "detach_" not in m.frames[-1].info.attributes:
            return
        own = isinstance(node.func, ast.Attribute) and path_of(node.func) == "self"
        held = held_tensors(m, value)
        if is_open(m, value) or any(
            state.requires_grad & YES and (own or state.assumes) for _, state in held
        ):
            self.runs[node] = Run(node, m.where(), None)

    def conclude(self, parents: Parents) -> None:
        """Emit the calls whose results are detached before anything uses them."""
        for run in self.runs.values():
            function = function_of(run.site, parents, ANY_FUNCTION)
            if function is None or is_decorated(function) or in_unknown_context(run.site, function, parents):
                continue
            cut = _cut_of(run.site, parents) or ends_in_cuts(run.site, function, parents)
            if cut is None:
                continue
            evidence = self._network(run.site, function, parents)
            if evidence is not None:
                self.machine.emit(
                    ReferenceWithGrad(run.site, run.calls, evidence, None, cut, nothing_passes=True)
                )

    def _network(self, site: ast.Call, function: ast.AST, parents: Parents) -> ast.AST | None:
        """What shows that a call is that of a network: what else is done with it there, or the class whose method it is."""
        path = path_of(site.func)
        owner = parents.get(function)
        home = owner if isinstance(owner, ast.ClassDef) else function
        if path is None:
            return None
        if home not in self.shown:
            self.shown[home] = _modules_in(home)
        shown = self.shown[home]
        for end in range(path.count(".") + 1, 0, -1):
            part = ".".join(path.split(".")[:end])
            if part in shown:
                return shown[part]
        if path == "self" and isinstance(owner, ast.ClassDef):
            return self._own(owner, "forward")
        if path.count(".") == 1 and path.startswith("self.") and isinstance(owner, ast.ClassDef):
            return self._own(owner, path.removeprefix("self."))
        return None

    def _own(self, owner: ast.ClassDef, name: str) -> ast.AST | None:
        """The method of a class that is a module, or the one from which a framework runs backward."""
        info = next((c for c in self.machine.classes.values() if c.node is owner), None)
        if info is None:
            return None
        found: Iterable[str] = (
            one for base in info.external if (c := convention_of(base)) for one in c.backward
        )
        method = next((n for n in owner.body if isinstance(n, ast.FunctionDef) and n.name == name), None)
        if name in found:
            return method or owner
        return method if info.is_module else None


def _modules_in(home: ast.AST) -> dict[str, ast.AST]:
    """The names and attributes of which a class or function takes the parameters, or which it puts into a mode."""
    found: dict[str, ast.AST] = {}
    for node in walk(home):
        match node:
            case ast.Call(func=ast.Attribute(value=holder, attr=attr)) if attr in _OF_MODULES:
                path = path_of(holder)
                if path is not None and path != "self":
                    first = found.get(path, node)
                    found[path] = min(first, node, key=lambda one: getattr(one, "lineno", 0))
    return found


def _cut_of(site: ast.Call, parents: Parents) -> ast.AST | None:
    """The `detach()` that takes all that a call gives: in the same expression, or in the statement after it."""
    cut, end = _chain(site, parents)
    if cut is not None:
        return cut
    statement = parents.get(end)
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is end:
            following = _next(statement, parents)
        case _:
            return None
    match following:
        case ast.Expr(value=ast.Call() as changed):
            cut = _first_cut(changed, name)
            return cut if isinstance(changed.func, ast.Attribute) and changed.func.attr == "detach_" else None
        case ast.Assign(targets=[ast.Name(id=again)], value=ast.expr() as value) if again == name:
            return _first_cut(value, name)
    return None


def _chain(node: ast.AST, parents: Parents) -> tuple[ast.AST | None, ast.AST]:
    """The first `detach()` in the chain of attributes, items and methods that begins with an expression; where it ends."""
    while True:
        above = parents.get(node)
        if isinstance(above, ast.Attribute) or (isinstance(above, ast.Subscript) and above.value is node):
            node = above
        elif isinstance(above, ast.Call) and above.func is node:
            node = above
            if isinstance(above.func, ast.Attribute) and above.func.attr in _CUTS:
                return above, node
        else:
            return None, node


def _first_cut(value: ast.expr, name: str) -> ast.AST | None:
    """The innermost `detach()` in a chain that begins with a name, and is all there is in an expression."""
    cut, node = None, value
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in _CUTS:
                cut = node
            node = node.func
        elif isinstance(node, ast.Attribute | ast.Subscript):
            node = node.value
        else:
            return None
    return cut if node.id == name else None


def _next(statement: ast.AST, parents: Parents) -> ast.AST | None:
    """The statement that is run after one; after the last one in a `with`, what comes after that."""
    above = parents.get(statement)
    body: list[ast.AST] | None = getattr(above, "body", None)
    if above is None or not isinstance(body, list) or statement not in body:
        return None
    at = body.index(statement)
    if at + 1 < len(body):
        return body[at + 1]
    return _next(above, parents) if isinstance(above, ast.With) else None
