"""Terms of a loss that are computed with a graph and then left out of it: their name is never read."""

import ast
from collections.abc import Iterator

from gradvet.autograd.events import Backward, TermUnused
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import NO, YES, Origin
from gradvet.syntax.tree import inner, walk

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_ARITHMETIC = frozenset({"+", "-", "*", "/", "neg"})
_REDUCED = frozenset({"mean()", "sum()"})
MOST_DEEP = 6


def unused_terms(m: Machine, tree: ast.Module) -> None:
    """Emit the names of a function that are given a term of a loss and never read, where it runs a backward."""
    backwards = {
        event.node for event in m.events if type(event) is Backward and event.root.requires_grad == YES
    }
    for scope in walk(tree) if backwards else ():
        if not isinstance(scope, (*_FUNCTIONS, ast.Module)):
            continue
        own = list(_own(scope))
        run = [node for node in own if isinstance(node, ast.expr) and node in backwards]
        if not run:
            continue
        read = {
            node.id
            for node in walk(scope)
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store)
        }
        outer = {name for node in own if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names}
        asks = any(
            isinstance(node, ast.Call) and ast.unparse(node.func) in ("locals", "vars") for node in own
        )
        for node in own:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if (
                    name not in read | outer and not asks
                ):
                    later = [each for each in run if each.lineno > node.lineno]
                    nearest = min(later or run, key=lambda each: each.lineno)
                    _look(m, node, name, value, nearest, module=isinstance(scope, ast.Module))


def _look(
    m: Machine, node: ast.Assign, name: str, value: ast.expr, backward: ast.AST, *, module: bool
) -> None:
    state = m.states.get(value)
    if state is None or value in m.vague or name.startswith("_") or module:
        return
    graph = state.requires_grad == YES and state.is_leaf == NO and not state.assumes
    if graph and state.origin is not None and _is_term(state.origin):
        m.emit(TermUnused(node, m.calls_of.get(value, ()), name, state, backward))


def _own(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function, without those of functions and classes in it."""
    stack = inner(scope)
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, (*_FUNCTIONS, ast.ClassDef, ast.Lambda)):
            stack += inner(node)


def _is_term(origin: Origin, depth: int = 0) -> bool:
    """Whether a value was reduced to one element, up to a weight: nobody reduces what is looked at as it is."""
    if depth > MOST_DEEP:
        return False
    words, node = origin.text, origin.node
    if words in _REDUCED:
        return isinstance(node, ast.Call) and not node.keywords and (not node.args or _is_function(node))
    if words in _ARITHMETIC:
        return bool(origin.inputs) and all(_is_term(part, depth + 1) for part in origin.inputs)
    bare = isinstance(node, ast.Call) and not any(k.arg in ("reduction", "reduce") for k in node.keywords)
    return bare and (words.endswith(("_loss()", "Loss")) or words == "cross_entropy()")


def _is_function(call: ast.Call) -> bool:
    """`torch.mean(x)`, with nothing but the tensor."""
    return (
        isinstance(call.func, ast.Attribute)
        and ast.unparse(call.func.value) == "torch"
        and len(call.args) == 1
    )
