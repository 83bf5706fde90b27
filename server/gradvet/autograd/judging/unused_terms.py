"""Terms of a loss that are computed with a graph and then left out of it: their name is never read."""

import ast
import re
from collections.abc import Iterator

from gradvet.autograd.events import Backward, TermUnused
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import NO, YES, Origin
from gradvet.syntax.parse import Module
from gradvet.syntax.tree import inner, walk

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_ARITHMETIC = frozenset({"+", "-", "*", "/", "neg"})
_REDUCED = frozenset({"mean()", "sum()"})
_TERM = re.compile(r"loss|penalty|regulari[sz]|(?<![a-z])(kl|reg|aux|gp)(?![a-z])", re.IGNORECASE)
"""What a term is called. Of several results that a call gives, one that nobody reads need not be one."""
MOST_DEEP = 6


def unused_terms(m: Machine, module: Module) -> None:
    """Emit the names of a function that are given a term of a loss and never read, where it runs a backward."""
    backwards = {
        event.node for event in m.events if type(event) is Backward and event.root.requires_grad == YES
    }
    for scope in dict.fromkeys(_scope(module, node) for node in backwards):
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
                    if value not in m.vague and not isinstance(scope, ast.Module):
                        _look(m, node, name, value, nearest)
                case ast.Assign(targets=[ast.Tuple(elts=parts)]) if not asks:
                    later = [each for each in run if each.lineno > node.lineno]
                    for part in _left_out(m, parts, read | outer) if later else ():
                        _look(m, node, part.id, part, min(later, key=lambda each: each.lineno))


def _left_out(m: Machine, parts: list[ast.expr], read: set[str]) -> Iterator[ast.Name]:
    """The terms that a call gave beside others that a backward went through, and that nothing reads."""
    reached = [_is_reached(m, part) for part in parts]
    for part, used in zip(parts, reached, strict=True):
        if (
            isinstance(part, ast.Name)
            and part.id not in read
            and _TERM.search(part.id)
            and not used
            and any(reached)
        ):
            yield part


def _is_reached(m: Machine, part: ast.expr) -> bool:
    """Whether a backward went through what a name was given."""
    state = m.states.get(part)
    return state is not None and any(
        at in m.judge.used_nodes or at | 1 in m.judge.used_nodes for at in state.nodes
    )


def _look(m: Machine, node: ast.Assign, name: str, value: ast.expr, backward: ast.AST) -> None:
    state = m.states.get(value)
    if state is None or name.startswith("_"):
        return
    graph = state.requires_grad == YES and state.is_leaf == NO and not state.assumes
    if graph and state.origin is not None and _is_term(state.origin):
        m.emit(TermUnused(node, m.calls_of.get(value, ()), name, state, backward))


def _scope(module: Module, node: ast.AST) -> ast.AST:
    """The function that a node stands in, or else the module."""
    while not isinstance(node, (*_FUNCTIONS, ast.Module)):
        node = module.parents[node]
    return node


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
