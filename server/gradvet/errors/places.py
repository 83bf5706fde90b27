"""Where a message's cause may stand, told from the text and from what the dry run held there.

This is for files in which no rule is sure. Each kind of place is a function that yields places with a
reason and a weight: the heavier, the likelier.
"""

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from gradvet.autograd.facts import AutogradState, Expression
from gradvet.finding import code
from gradvet.syntax.parse import Module


@dataclass(frozen=True, slots=True)
class Place:
    """A node that may be the cause, why, and how likely among others of its kind."""

    node: ast.AST
    reason: str
    weight: int


@dataclass(frozen=True, slots=True)
class Seen:
    """What a finder may look at: the module, its states by node, and the details of the message."""

    module: Module
    states: Mapping[ast.AST, Expression]
    details: tuple[str, ...]

    def state(self, node: ast.AST | None) -> AutogradState | None:
        """What autograd would hold for an expression; None when that is no tensor or not seen."""
        found = self.states.get(node) if node is not None else None
        return found.state if found is not None else None

    def may_be_tensor(self, node: ast.AST) -> bool:
        """Whether nothing speaks against an expression being a tensor."""
        found = self.states.get(node)
        return found is None or found.kind in ("tensor", "unknown")

    def walk(self, *kinds: type[ast.AST]) -> Iterator[ast.AST]:
        """The nodes of some kinds, in the order of the text."""
        found = [node for node in ast.walk(self.module.tree) if isinstance(node, kinds)]
        return iter(
            sorted(found, key=lambda node: (getattr(node, "lineno", 0), getattr(node, "col_offset", 0)))
        )


Finder = Callable[[Seen], Iterator[Place]]


def _method(node: ast.AST) -> str:
    """The name of the method or function that a call is of."""
    match node:
        case ast.Call(func=ast.Attribute(attr=name)) | ast.Call(func=ast.Name(id=name)):
            return name
    return ""


def _writes(seen: Seen) -> Iterator[Place]:
    for node in seen.walk(ast.AugAssign, ast.Assign, ast.Call, ast.keyword):
        target: ast.expr | None = None
        how = ""
        match node:
            case ast.AugAssign(target=target):
                how = f"`{ast.unparse(node)}` writes into the tensor"
            case ast.Assign(targets=[ast.Subscript(value=target)]):
                how = f"{code(node.targets[0])} = ... writes into {code(target)}"
            case ast.Call(func=ast.Attribute(value=target, attr=name)) if _is_in_place(name):
                how = f"`{name}()` writes into {code(target)}"
            case ast.keyword(arg="inplace", value=ast.Constant(value=True)):
                call = seen.module.parents.get(node)
                if isinstance(call, ast.Call):
                    yield Place(call, f"{code(call)} writes over its input", 2)
                continue
            case _:
                continue
        if target is None or not _read(seen, target):
            continue
        yield Place(node, how, 1 + _tracked(seen, target) + _made_by(seen, target))


def _read(seen: Seen, target: ast.expr) -> bool:
    """Whether a target that is stored to may be a tensor: as a store has no state, what its name held elsewhere tells."""
    if isinstance(target, ast.Name):
        others = [n for n in seen.states if isinstance(n, ast.Name) and n.id == target.id]
        return not others or any(seen.may_be_tensor(other) for other in others)
    return seen.may_be_tensor(target.value if isinstance(target, ast.Subscript) else target)


def _same(seen: Seen, target: ast.expr) -> Iterator[AutogradState]:
    """The states that an expression of the same words had where it was read."""
    words = ast.unparse(target)
    for node, expression in seen.states.items():
        if expression.state is not None and ast.unparse(node) == words:
            yield expression.state


def _tracked(seen: Seen, target: ast.expr) -> int:
    return 2 * any(state.requires_grad != "no" for state in _same(seen, target))


def _made_by(seen: Seen, target: ast.expr) -> int:
    """Whether the message names the op that made what is written."""
    names = {f"{detail}Backward" for detail in seen.details}
    return 4 * any(
        name is not None and any(name.startswith(op) for op in names)
        for state in _same(seen, target)
        for name in state.grad_fn
    )


def _is_in_place(name: str) -> bool:
    return name.endswith("_") and not name.startswith("_") and name not in ("requires_grad_", "share_memory_")


def _steps(seen: Seen) -> Iterator[Place]:
    for node in seen.walk(ast.Call):
        name = _method(node)
        if name in ("step", "update", "unscale_", "clip_grad_norm_", "clip_grad_value_"):
            yield Place(node, f"{code(node)}: see what runs before and after it", 1)


def _backwards(seen: Seen) -> Iterator[Place]:
    calls = [node for node in seen.walk(ast.Call) if _method(node) in ("backward", "grad")]
    for node in calls:
        root = (
            node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else node
        )
        state = seen.state(root)
        looped = _in_loop(seen, node)
        reason = f"{code(node)} is run in each iteration" if looped else f"{code(node)} walks the graph"
        constant = state is not None and state.requires_grad == "no"
        yield Place(node, reason, 1 + looped + 3 * constant + (len(calls) > 1))


def _in_loop(seen: Seen, node: ast.AST) -> bool:
    while node in seen.module.parents:
        node = seen.module.parents[node]
        if isinstance(node, (ast.For, ast.While, ast.AsyncFor)):
            return True
    return False


_CUTS = {
    "detach": "stops the gradient",
    "detach_": "stops the gradient",
    "item": "makes a Python number",
    "tolist": "makes Python numbers",
    "numpy": "leaves torch",
    "argmax": "has no gradient",
    "argmin": "has no gradient",
    "long": "makes whole numbers, which have no gradient",
    "int": "makes whole numbers, which have no gradient",
    "bool": "makes truth values, which have no gradient",
    "no_grad": "turns grad mode off",
    "inference_mode": "turns grad mode off for good",
    "set_grad_enabled": "changes grad mode",
    "multinomial": "has no gradient",
    "sample": "has no gradient",
    "float": "makes a Python number",
    "new_tensor": "makes a new tensor without the graph",
    "tensor": "makes a new tensor without the graph",
    "Tensor": "makes a new tensor without the graph",
    "FloatTensor": "makes a new tensor without the graph",
    "Variable": "makes a new leaf",
}


def _cuts(seen: Seen) -> Iterator[Place]:
    for node in seen.walk(ast.Call, ast.Attribute, ast.Assign):
        match node:
            case ast.Attribute(attr="data", ctx=ast.Load()) if seen.state(node) is not None:
                yield Place(node, f"{code(node)} leaves the graph behind", 2 + _loses(seen, node.value))
            case ast.Assign(targets=[ast.Attribute(attr="requires_grad")], value=ast.Constant(value=False)):
                yield Place(node, f"{code(node)} freezes it", 1)
            case ast.Call(func=func, args=args) if (name := _method(node)) in _CUTS:
                source = (
                    func.value if isinstance(func, ast.Attribute) and not args else next(iter(args), None)
                )
                if name == "float" and isinstance(func, ast.Attribute):
                    continue  # a cast keeps the gradient
                if name in ("tensor", "Tensor", "FloatTensor", "float") and not _from_tensors(seen, args):
                    continue
                loses = _loses(seen, source) if source is not None else 0
                yield Place(node, f"{code(node)} {_CUTS[name]}", 1 + loses)


def _from_tensors(seen: Seen, args: list[ast.expr]) -> bool:
    return any(seen.state(part) is not None for arg in args for part in ast.walk(arg))


def _loses(seen: Seen, source: ast.AST) -> int:
    """Whether what is cut did carry a graph."""
    state = seen.state(source)
    return 3 * (state is not None and state.requires_grad != "no")


_EXITS = frozenset(
    {"numpy", "array", "asarray", "item", "float", "from_numpy", "plot", "scatter", "hist", "imshow"}
)


def _exits(seen: Seen) -> Iterator[Place]:
    for node in seen.walk(ast.Call):
        match node:
            case ast.Call(func=func, args=args):
                receiver = [func.value] if isinstance(func, ast.Attribute) else []
                handed = [part for part in (*args, *receiver) if _loses(seen, part)]
                if _method(node) in _EXITS or (
                    handed
                    and seen.states.get(node) is not None
                    and seen.states[node].kind in ("ndarray", "number")
                ):
                    yield Place(node, f"{code(node)} takes a tensor out of torch", 1 + 3 * bool(handed))
            case _:
                continue


def _flags(seen: Seen) -> Iterator[Place]:
    for node in seen.walk(ast.Assign, ast.Call):
        match node:
            case ast.Assign(targets=[ast.Attribute(attr="requires_grad", value=owner)]):
                state = seen.state(owner)
                computed = state is not None and state.is_leaf != "yes"
                yield Place(node, f"{code(node)} sets the flag", 1 + 3 * computed)
            case ast.Call() if _method(node) == "requires_grad_":
                yield Place(node, f"{code(node)} sets the flag", 1)
            case ast.Call(keywords=words) if any(word.arg == "requires_grad" for word in words):
                yield Place(node, f"{code(node)} makes a leaf", 1)


def _called(names: str, reason: str) -> Finder:
    """The calls of functions and methods of some names."""
    wanted = frozenset(names.split())

    def find(seen: Seen) -> Iterator[Place]:
        for node in seen.walk(ast.Call):
            if _method(node) in wanted:
                yield Place(node, f"{code(node)} {reason}", 1)

    return find


def _optimizers(seen: Seen) -> Iterator[Place]:
    for node in seen.walk(ast.Call):
        match node:
            case ast.Call(args=[first, *_]) if _method(node)[:1].isupper() and any(
                word in ast.unparse(node) for word in ("lr=", "optim", "parameters()")
            ):
                yield Place(node, f"{code(first)} is what the optimizer is given", 2)


def _gradients(seen: Seen) -> Iterator[Place]:
    for node in seen.walk(ast.Attribute):
        match node:
            case ast.Attribute(attr="grad", value=owner, ctx=ast.Load()):
                state = seen.state(owner)
                computed = state is not None and state.is_leaf != "yes"
                yield Place(node, f"{code(node)} is read", 1 + 3 * computed)


def _functions(seen: Seen) -> Iterator[Place]:
    for node in seen.walk(ast.ClassDef):
        match node:
            case ast.ClassDef(name=name, bases=bases) if any(
                ast.unparse(base).endswith("Function") for base in bases
            ):
                named = any(detail.startswith(name) for detail in seen.details)
                for part in node.body:
                    if isinstance(part, ast.FunctionDef) and part.name in (
                        "forward",
                        "backward",
                        "setup_context",
                    ):
                        yield Place(
                            part,
                            f"`{part.name}` of the Function `{name}`",
                            1 + 3 * named + (part.name == "backward"),
                        )


def _modes(seen: Seen) -> Iterator[Place]:
    for node in seen.walk(ast.Attribute, ast.Name, ast.keyword):
        match node:
            case ast.Attribute(attr=name) | ast.Name(id=name) if name in (
                "no_grad",
                "enable_grad",
                "inference_mode",
            ):
                called = isinstance(seen.module.parents.get(node), ast.Call)
                yield Place(
                    node, f"{code(node)} {'is called' if called else 'is not called'}", 1 + 3 * (not called)
                )
            case ast.keyword(arg="volatile"):
                yield Place(node.value, "`volatile` has no effect any more", 3)


_ACTIONS = frozenset(
    {
        "backward",
        "step",
        "detach",
        "item",
        "zero_grad",
        "cpu",
        "numpy",
        "clone",
        "mean",
        "sum",
        "eval",
        "train",
    }
)


def _uncalled(seen: Seen) -> Iterator[Place]:
    for node in seen.walk(ast.Attribute):
        parent = seen.module.parents.get(node)
        match node:
            case ast.Attribute(attr=name, ctx=ast.Load()) if name in _ACTIONS:
                if isinstance(parent, ast.Call) and parent.func is node:
                    continue
                if not isinstance(parent, ast.Attribute):
                    yield Place(node, f"{code(node)} is named and not called", 3)


FINDERS: Mapping[str, Finder] = {
    "write": _writes,
    "step": _steps,
    "backward": _backwards,
    "cut": _cuts,
    "exit": _exits,
    "flag": _flags,
    "inference": _called("inference_mode", "makes tensors that autograd can never use"),
    "copy": _called(
        "deepcopy put send map apply_async submit dump dumps", "copies or sends what it is given"
    ),
    "optimizer": _optimizers,
    "grad": _gradients,
    "function": _functions,
    "checkpoint": _called("checkpoint checkpoint_sequential", "records only when an input requires grad"),
    "mode": _modes,
    "uncalled": _uncalled,
}
"""The kinds of places by the names that `known.py` uses."""


def places(kinds: tuple[str, ...], seen: Seen) -> list[Place]:
    """All places of some kinds, the likeliest first; the first kinds that are named count a little more."""
    found = [
        (place.weight * 4 + len(kinds) - at, place)
        for at, kind in enumerate(kinds)
        for place in FINDERS[kind](seen)
    ]
    found.sort(key=lambda pair: -pair[0])
    return [place for _, place in found]
