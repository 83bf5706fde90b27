"""Networks of which nothing is known, run with grad mode on, where all that they give is detached or made a number of.

What such a call gives is not known, so its graph cannot be followed. The evidence is the code itself: the thing is treated
as a module where it is used, and whoever detaches its result takes it that there is a graph. Where only numbers are
made of it, that grad mode is on is shown by a backward of the same function.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from gradvet.autograd.events import Backward, UnusedGraph
from gradvet.autograd.events_flow import ReferenceWithGrad
from gradvet.autograd.held import held_tensors
from gradvet.autograd.judging.above import ANY_FUNCTION, function_of
from gradvet.autograd.judging.ends import CUTS, Given, ends_in_cuts, ends_in_numbers
from gradvet.autograd.judging.evaluations import Calls, in_unknown_context, is_decorated, is_open, path_of
from gradvet.autograd.knowledge.frameworks import convention_of
from gradvet.autograd.library.layers import is_module, members
from gradvet.autograd.library.tensor_methods import names_off
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import GRAD, YES
from gradvet.autograd.memory.values import Instance, Layer, Value
from gradvet.syntax.parents import Parents
from gradvet.syntax.parse import Module
from gradvet.syntax.qualified import imported_names
from gradvet.syntax.tree import walk

_OF_MODULES = frozenset(
    {"eval", "train", "parameters", "named_parameters", "load_state_dict", "requires_grad_"}
)
_ENDS = CUTS | {"item", "tolist", "numpy", "argmax"}


@dataclass(frozen=True, slots=True)
class Run:
    """A call with grad mode on, of which nothing is known but that its callee is a network."""

    site: ast.Call
    calls: Calls
    module: bool
    """Whether what is called is known to be a module."""


@dataclass(slots=True)
class ThrownAway:
    """Told of each call in the program; looks at the end for those whose results are detached at once."""

    machine: Machine
    runs: dict[ast.Call, Run] = field(default_factory=dict)
    shown: dict[ast.AST, dict[str, ast.AST]] = field(default_factory=dict)

    def called(self, node: ast.Call, function: Value, value: Value) -> None:
        """Something was called and gave this value."""
        m = self.machine
        if (
            node in self.runs
            or m.mode != GRAD
            or m.mode_nodes
            or not isinstance(node.func, ast.Attribute | ast.Name)
        ):
            return
        if m.frames[-1].info.attributes.isdisjoint(_ENDS):
            return
        own = isinstance(node.func, ast.Attribute) and path_of(node.func) == "self"
        module = _is_network(m, function)
        held = held_tensors(m, value)
        open_ = is_open(m, value) or (module and not held and _is_an_object(m, value))
        if open_ or any(state.requires_grad & YES and (own or state.assumes) for _, state in held):
            self.runs[node] = Run(node, m.where(), module)

    def conclude(self, module: Module) -> None:
        """Emit the calls whose results are detached, or made numbers of, before anything uses them."""
        parents = module.parents
        imported = imported_names(module.tree)
        backwards = [event for event in self.machine.events if isinstance(event, Backward)]
        places = {place for event in backwards for place in (event.node, *event.calls)}
        training = {function_of(place, parents) for place in places}
        told = {event.node for event in self.machine.events if isinstance(event, UnusedGraph)}
        for run in self.runs.values():
            if run.site in told:
                continue
            function = function_of(run.site, parents, ANY_FUNCTION)
            if function is None or is_decorated(function) or in_unknown_context(run.site, function, parents):
                continue
            given = Given(run.site, function, parents, imported)
            cut, whole = _cut_of(run.site, parents) or ends_in_cuts(given), False
            if cut is None and (function in training or _says_that_nothing_trains(function)):
                # A method of a network might train it.
                cut, whole = ends_in_numbers(given, arrays=function not in training), True
            if cut is None:
                continue
            evidence = (
                run.site.func if run.module else self._network(run.site, function, parents, whole=whole)
            )
            if evidence is not None:
                self.machine.emit(
                    ReferenceWithGrad(run.site, run.calls, evidence, None, cut, nothing_passes=True)
                )

    def _network(self, site: ast.Call, function: ast.AST, parents: Parents, *, whole: bool) -> ast.AST | None:
        """What shows that a call is that of a network, as a `whole` or of a method or part of it.

        That is what else is done with it there, or the class whose method it is.
        """
        path = path_of(site.func)
        owner = parents.get(function)
        home = owner if isinstance(owner, ast.ClassDef) else function
        if path is None:
            return None
        if home not in self.shown:
            self.shown[home] = _modules_in(home)
        shown = self.shown[home]
        if whole:
            return shown.get(path)
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


def _says_that_nothing_trains(function: ast.AST) -> bool:
    """Whether a function asserts that what it belongs to is not in training."""
    for node in walk(function):
        match node:
            case ast.Assert(test=ast.UnaryOp(op=ast.Not(), operand=ast.Attribute(attr="training"))):
                return True
    return False


def _is_network(m: Machine, function: Value) -> bool:
    """Whether something is a module with parameters, as a loss is not."""
    if type(m.cells.get(getattr(function, "address", -1))) is not Layer:
        return is_module(m, function)
    inside = members(m, function)
    return bool(inside.parameters) or not inside.complete


def _is_an_object(m: Machine, value: Value) -> bool:
    """Whether something is an object that may hold anything, such as the output of a model with names for its parts."""
    return type(m.cells.get(getattr(value, "address", -1))) is Instance


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
            case ast.With(items=[ast.withitem(context_expr=ast.Call(func=entered))]) if names_off(entered):
                for name, call in _asked_for_values(node):
                    found.setdefault(name, call)
    return found


def _asked_for_values(block: ast.With) -> Iterator[tuple[str, ast.Call]]:
    """The things of which methods are called for a new value where autograd does not record, by their names."""
    for node in walk(block):
        match node:
            case ast.Assign(
                targets=[target], value=ast.Call(func=ast.Attribute(value=holder), args=[*_, _]) as call
            ):
                path, given = path_of(holder), map(ast.unparse, call.args)
                if path is not None and path.startswith("self.") and ast.unparse(target) not in given:
                    yield path, call


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
            if isinstance(above.func, ast.Attribute) and above.func.attr in CUTS:
                return above, node
        else:
            return None, node


def _first_cut(value: ast.expr, name: str) -> ast.AST | None:
    """The innermost `detach()` in a chain that begins with a name, and is all there is in an expression."""
    cut, node = None, value
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in CUTS:
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
