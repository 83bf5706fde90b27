"""How the custom Functions of a program are written: told from their text, whether they were run or not."""

import ast
from collections.abc import Iterator

from gradvet.autograd.events_function import GradientCount, NotApplied, NotStatic, SavedWrong
from gradvet.autograd.library.custom_functions import is_custom_function
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.values import Class

_STATIC = frozenset({"forward", "backward", "setup_context", "vjp", "jvp", "vmap"})
_NUMBERS = (int, float, bool, str)


def function_forms(m: Machine) -> None:
    """Look at each Function of the program, and at the calls that go past `apply`."""
    owners = [(Class(address), info) for address, info in m.classes.items()]
    found = [info.node for value, info in owners if is_custom_function(m, value)]
    if not found:
        return
    for node in dict.fromkeys(found):
        methods = {child.name: child for child in node.body if isinstance(child, ast.FunctionDef)}
        for name, method in methods.items():
            if name in _STATIC and not method.decorator_list:
                m.emit(NotStatic(method, (), method, node.name))
        for name in ("forward", "setup_context"):
            if name in methods:
                _saves(m, methods[name])
        if "forward" in methods and "backward" in methods:
            _counts(m, node.name, methods)
    _calls(m, found)


def _saves(m: Machine, method: ast.FunctionDef) -> None:
    calls = [node for node in ast.walk(method) if _is_save(node)]
    plain = [s.value for s in method.body if isinstance(s, ast.Expr) and _is_save(s.value)]
    if len(plain) > 1:
        m.emit(SavedWrong(plain[1], (), "twice", plain[0]))
    for call in calls:
        for arg in getattr(call, "args", ()):
            match arg:
                case ast.List() | ast.Tuple() | ast.ListComp() | ast.GeneratorExp() | ast.Dict():
                    m.emit(SavedWrong(arg, (), "list", arg))
                case ast.Constant(value) if isinstance(value, _NUMBERS):
                    m.emit(SavedWrong(arg, (), "number", arg))
                case ast.Call(ast.Attribute(attr="detach"), []) | ast.Attribute(attr="data") if (
                    m.creates_graphs
                ):
                    m.emit(SavedWrong(arg, (), "detached", arg))


def _is_save(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "save_for_backward"
    )


def _counts(m: Machine, owner: str, methods: dict[str, ast.FunctionDef]) -> None:
    """As many gradients as inputs; more only where the rest are None."""
    forward, backward = methods["forward"], methods["backward"]
    given = forward.args
    if given.vararg or given.kwonlyargs or given.kwarg:
        return
    skipped = 0 if "setup_context" in methods else 1
    most = len(given.posonlyargs) + len(given.args) - skipped
    least = most - len(given.defaults)
    returns = list(_returns(backward))
    if (
        not returns
        and most > 1
        and _computes(backward)
        and not any(isinstance(n, ast.Raise) for n in ast.walk(backward))
    ):
        m.emit(GradientCount(backward, (), owner, 1, most, forward, None))
    for node in returns:
        count, extra = _given(m, node.value)
        if count is not None and (count < least or (count > most and not all(extra[most:]))):
            m.emit(GradientCount(node, (), owner, count, most, forward, node.value))


def _given(m: Machine, value: ast.expr | None) -> tuple[int | None, list[bool]]:
    """How many gradients are returned, and which of them are None; None when that is not known."""
    if value is None or isinstance(value, ast.Constant):
        return 1, [True]
    if isinstance(value, ast.Tuple):
        if any(isinstance(item, ast.Starred) for item in value.elts):
            return None, []
        return len(value.elts), [isinstance(item, ast.Constant) and item.value is None for item in value.elts]
    if value in m.states and value not in m.vague:
        return 1, [False]
    return None, []


def _returns(function: ast.FunctionDef) -> Iterator[ast.Return]:
    """The returns of a function itself, not of those in it."""
    stack: list[ast.AST] = list(function.body)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Return):
            yield node
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            stack.extend(ast.iter_child_nodes(node))


def _computes(function: ast.FunctionDef) -> bool:
    return any(isinstance(node, (ast.Assign, ast.AugAssign)) for node in ast.walk(function))


def _calls(m: Machine, functions: list[ast.ClassDef]) -> None:
    inside = {node for function in functions for node in ast.walk(function)}
    for node in ast.walk(m.main):
        match node:
            case ast.Call(ast.Attribute(ast.Name(name), "forward")) if node not in inside and _names(m, name):
                m.emit(NotApplied(node, (), name, by_instance=False))
            case ast.Call(ast.Call(ast.Name(name), [], [])) if node not in inside and _names(m, name):
                m.emit(NotApplied(node, (), name, by_instance=True))


def _names(m: Machine, name: str) -> bool:
    """Whether a name of the module stands for a custom Function."""
    return is_custom_function(m, m.cells.get((m.global_scope, name)))
