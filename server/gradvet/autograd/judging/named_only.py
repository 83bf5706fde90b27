"""Methods that stand alone as statements where the run tells nothing of what they belong to.

An attribute as a statement does nothing. What else the file does tells whether it is a method of torch's:
that the same thing is run, stepped or cleared elsewhere, or that it trains at all.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator

from gradvet.autograd.events_call import NotCalled
from gradvet.autograd.judging.above import ANY_FUNCTION, function_of
from gradvet.autograd.knowledge.training import TRAINING
from gradvet.syntax.parse import Module
from gradvet.syntax.tree import on_rows, walk

_OF_GRADIENTS = frozenset({"backward", "zero_grad", "detach_", "requires_grad_", "retain_grad"})
"""Methods whose names only torch uses."""
_OF_OPTIMIZERS = frozenset({"step", "zero_grad", "state_dict", "load_state_dict", "add_param_group"})
_OF_MODULES = frozenset(
    {"parameters", "named_parameters", "state_dict", "load_state_dict", "train", "eval", "zero_grad"}
)
_SWITCHES = frozenset({"eval", "train"})
_NAMED = _OF_GRADIENTS | _SWITCHES | {"step"}
_MENTIONED = re.compile(rf"\.\s*(?:{'|'.join(sorted(_NAMED))})\s*(?:[;#)\\\r\n]|$)", re.MULTILINE)
"""One of the names with nothing behind it that calls it: most files have none, and need no closer look."""
_PROBES = frozenset({"AttributeError", "Exception"})


def named_only(module: Module, skipped: set[ast.AST]) -> Iterator[NotCalled]:
    """The methods that are only named; `skipped` are those of which the run knows better."""
    rows = module.rows(_MENTIONED)
    if not rows:
        return
    found = [
        node.value
        for node in on_rows(module.tree, rows)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Attribute)
        and node.value.attr in _NAMED
        and node.value not in skipped
    ]
    if not found:
        return
    called, handed = _called(module.tree)
    everywhere = frozenset().union(*called.values())
    for node in found:
        owner, name = ast.unparse(node.value), node.attr
        own = called.get(owner, frozenset())
        if name in _OF_GRADIENTS:
            known = bool(everywhere & TRAINING)
        elif name == "step":
            known = bool(own & _OF_OPTIMIZERS) or owner in handed or _trains(module, node)
        else:
            known = bool(own & _OF_MODULES)
        if known and not _is_probe(module, node):
            yield NotCalled(node, (), name, "unknown", "statement", None, node.value)


def _called(tree: ast.Module) -> tuple[dict[str, frozenset[str]], set[str]]:
    """The methods that are called, by what they are called on; and what is handed to a `step()`, as by a scaler."""
    called: defaultdict[str, set[str]] = defaultdict(set)
    handed = set()
    for node in walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            called[ast.unparse(node.func.value)].add(node.func.attr)
            if node.func.attr == "step" and node.args:
                handed.add(ast.unparse(node.args[0]))
    return {owner: frozenset(names) for owner, names in called.items()}, handed


def _trains(module: Module, node: ast.AST) -> bool:
    """Whether the function around runs a backward or clears gradients."""
    function = function_of(node, module.parents, ANY_FUNCTION) or module.tree
    return any(
        isinstance(inner, ast.Call)
        and isinstance(inner.func, ast.Attribute)
        and inner.func.attr in ("backward", "zero_grad")
        for inner in walk(function)
    )


def _is_probe(module: Module, node: ast.AST) -> bool:
    """Whether a handler waits for the attribute to be missing: then it is looked up to see whether it is there."""
    below: ast.AST = node
    while (above := module.parents.get(below)) is not None:
        if isinstance(above, ast.Try) and below in above.body:
            words = {
                getattr(named, "id", getattr(named, "attr", ""))
                for handler in above.handlers
                for named in ast.walk(handler.type or ast.Name("Exception"))
            }
            if words & _PROBES and len(above.body) == 1:
                return True
        below = above
    return False
