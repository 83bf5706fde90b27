"""Reading and binding names: scopes, closures, `global` and `nonlocal`, builtins."""

import ast
import builtins

from gradvet.autograd.machine import Frame, Machine
from gradvet.autograd.memory.values import (
    Class,
    External,
    Function,
    Later,
    Text,
    Union,
    Unknown,
    Value,
    const,
)

MOST_FUNCTIONS_DEEP = 2
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_BUILTINS = {name: External(f"builtins.{name}") for name in dir(builtins)}
_DUNDERS: dict[str, Value] = {"__name__": const("__main__"), "__file__": Text(), "__doc__": Text()}
_SHADOWED_BY_NUMPY = {"sum", "abs", "max", "min", "round", "all", "any", "pow"}
"""Builtins that `from numpy import *` replaces (numpy's own `__all__`)."""


def lookup(m: Machine, name: str) -> Value:
    """What a name stands for here."""
    frame = m.frames[-1]
    if name in frame.info.names and name not in frame.info.globals:
        value = m.cells.get((frame.scope, name))
        if value is not None:
            return _settled(m, frame.scope, name, value)
    outside = name in frame.info.globals
    scope = globals_of(m, frame.scope) if outside else m.scope_parents.get(frame.scope, 0)
    return _from(m, scope, globals_of(m, frame.scope), name)


def lookup_from(m: Machine, scope: int, name: str) -> Value:
    """What a name stands for in a scope, whatever is being run."""
    return _from(m, scope, globals_of(m, scope), name)


def _from(m: Machine, scope: int, module: int, name: str) -> Value:
    """What a name stands for in a scope or one around it, in a module, or in Python."""
    while scope:
        value = m.cells.get((scope, name))
        if value is not None:
            return _settled(m, scope, name, value)
        scope = m.scope_parents.get(scope, 0)
    stars = m.star_imports.get(module, ()) if m.star_imports else ()
    for star in reversed(stars):
        if name not in _BUILTINS or (star == "numpy" and name in _SHADOWED_BY_NUMPY):
            return External(f"{star}.{name}")
    known = _BUILTINS.get(name) or _DUNDERS.get(name)
    return known if known is not None else Unknown(f"`{name}` is not defined here")


def read_from_outside(m: Machine, function: Function) -> list[Value]:
    """What the names stand for now that a function, or one inside it, reads from the scopes around it."""
    own = m.info(function.node).names
    inside = [m.info(node) for node in ast.walk(function.node) if isinstance(node, _FUNCTIONS)]
    names = set[str]().union(*(info.loads - info.names for info in inside)) - own
    found = []
    for name in sorted(names):
        scope = function.scope
        while scope and (scope, name) not in m.cells:
            scope = m.scope_parents.get(scope, 0)
        value = m.cells.get((scope, name))
        found += [value] if value is not None else []
    return found


def named(m: Machine, node: ast.expr) -> Value | None:
    """What a name, or a dotted name of another package, stands for; None for anything that would have to be run."""
    match node:
        case ast.Name(id=name):
            return lookup(m, name)
        case ast.Attribute(value=inner, attr=name):
            owner = named(m, inner)
            return External(f"{owner.name}.{name}") if type(owner) is External else None
    return None


def builds_modules(m: Machine, code: ast.AST, depth: int = 0) -> bool:
    """Whether a loop, a comprehension or a function makes modules: it calls a class of them, or a function that does."""
    for node in ast.walk(code):
        if isinstance(node, ast.Call):
            match named(m, node.func):
                case External(name=name) if (
                    name.startswith("torch.nn.") and name.rpartition(".")[2][:1].isupper()
                ):
                    return True
                case Class(address=address) if address in m.classes and m.classes[address].is_module:
                    return True
                case Function(node=inner) if depth < MOST_FUNCTIONS_DEEP and builds_modules(
                    m, inner, depth + 1
                ):
                    return True
    return False


def _settled(m: Machine, scope: int, name: str, value: Value) -> Value:
    """The value of a name; what it was imported from is run now if nothing of it was needed before."""
    kind = type(value)
    if kind is Later or (kind is Union and any(type(atom) is Later for atom in value.atoms)):
        return m.imports.settled(m, scope, name, value)
    return value


def globals_of(m: Machine, scope: int) -> int:
    """The scope of the module that a scope stands in."""
    while outer := m.scope_parents.get(scope, 0):
        scope = outer
    return scope


def home(m: Machine, frame: Frame, name: str) -> int:
    """The scope in which an assignment to the name binds it."""
    if name in frame.info.globals:
        return globals_of(m, frame.scope)
    if name in frame.info.outer:
        scope = m.scope_parents.get(frame.own, 0)
        while scope:
            if (scope, name) in m.cells:
                return scope
            scope = m.scope_parents.get(scope, 0)
    return frame.own


def bind(m: Machine, name: str, value: Value) -> None:
    """Bind a name in the scope that it belongs to."""
    frame = m.frames[-1]
    info = frame.info
    scope = _comprehension_of(m, frame, name) if frame.scope != frame.own else 0
    if not scope:
        scope = home(m, frame, name) if info.globals or info.outer else frame.own
    m.store.set((scope, name), value)


def _comprehension_of(m: Machine, frame: Frame, name: str) -> int:
    """The scope of the comprehension around that binds a name; 0 when none does."""
    scope = frame.scope
    while scope != frame.own:
        if name in m.comprehended[scope]:
            return scope
        scope = m.scope_parents[scope]
    return 0


def unbind(m: Machine, name: str) -> None:
    """`del name`."""
    frame = m.frames[-1]
    m.store.set((home(m, frame, name), name), None)
