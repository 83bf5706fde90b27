"""A tensor that still carries its graph is kept in something that outlives the iteration."""

import ast
from collections.abc import Iterator

from gradvet.autograd.events import Retained
from gradvet.autograd.memory.domain import YES
from gradvet.finding import Applicability, Finding, Fix, Note, Severity, called_from, code, weakened, why
from gradvet.rules import rule
from gradvet.syntax import edits


@rule(Retained, family="leak", severity=Severity.ERROR)
def check(event: Retained) -> Iterator[Finding]:
    """Report a graph that piles up: an error while its activations stay, a warning when only its nodes do."""
    if event.how == "average":
        return  # a running average has a rule of its own
    value = event.value
    kept = code(value) if value is not None else "a tensor"
    freed = event.freed == YES
    if event.how == "chain":
        how = "written there" if _is_written(event.node) else "added"
        message = f"`{event.holder}` keeps the graph of every iteration: {kept} still carries its graph when it is {how}"
    elif event.how == "returned":
        message = (
            f"{kept} is returned with its graph, which a backward has used up, beside values that have none"
        )
    elif event.how == "beside":
        message = f"{kept} is returned with its graph, beside others that are detached"
    elif event.how == "kept":
        message = f"`{event.holder}` keeps the graph of the last iteration alive: {kept} still carries it"
    elif event.how == "number":
        message = (
            f"`{event.holder}` is a number elsewhere and keeps the graph of the last iteration alive: "
            f"{kept} still carries it"
        )
    elif event.how == "numbers":
        message = f"`{event.holder}` keeps a graph among numbers: {kept} still carries it"
    elif isinstance(event.node, ast.Call) and event.value is getattr(event.node.func, "value", None):
        message = f"`{event.holder}` keeps the graph of every iteration: `.clone()` copies {kept} and keeps its graph"
    elif value is None:
        message = (
            f"`{event.holder}` keeps the graph of every iteration: what is added still carries its graph"
        )
    else:
        message = f"`{event.holder}` keeps the graph of every iteration: {kept} still carries its graph when it is stored"
    stays = (
        "a backward has freed the activations; the nodes of the graph stay"
        if freed
        else "no backward frees it: the activations stay as well"
    )
    if event.how in ("returned", "beside", "numbers"):
        fixes = tuple(_fixes(value, scalar=event.scalar)) if value is not None and event.fixable else ()
        notes = (*why("why", event.tensor), *called_from(event.calls))
        yield Finding(event.node, message, notes, fixes, Severity.INFO)
        return
    made = f"by `{event.holder}`, which outlives the iteration; {stays}"
    yield Finding(
        event.node,
        message,
        (*why("why", event.tensor), Note("held", made, event.holder_node), *called_from(event.calls)),
        tuple(_fixes(value, scalar=event.scalar)) if value is not None and event.fixable else (),
        Severity.WARNING
        if freed or event.how in ("kept", "number")
        else weakened(Severity.ERROR, event.tensor),
    )


def _is_written(node: ast.AST) -> bool:
    """Whether a statement puts something into a tensor in place of what was there."""
    match node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=method))):
            return "add" not in method and "sub" not in method
        case ast.Assign(targets=[ast.Subscript()]):
            return True
    return False


def _fixes(value: ast.expr, *, scalar: bool) -> Iterator[Fix]:
    yield Fix(
        "Keep the value, drop the graph",
        f"{_spelled(value, '.detach()')} is the same value and stays on the device",
        Applicability.SAFE,
        lambda module: edits.after(module, value, ".detach()"),
    )
    if scalar:
        yield Fix(
            "Keep a Python number",
            f"{_spelled(value, '.item()')} is a number and waits for the device at each step",
            Applicability.UNSAFE,
            lambda module: edits.after(module, value, ".item()"),
        )


def _spelled(value: ast.expr, trailer: str) -> str:
    """The value with a method call behind it, in brackets where it needs them."""
    bare = isinstance(value, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
    text = code(value)[1:-1]
    return f"`{text}{trailer}`" if bare else f"`({text}){trailer}`"
