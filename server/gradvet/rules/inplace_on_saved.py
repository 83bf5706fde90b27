"""A tensor that an op saved for backward is changed in place before that backward."""

import ast
from collections.abc import Iterator, Sequence

from gradvet.autograd.events import SavedChanged
from gradvet.finding import (
    Applicability,
    Finding,
    Fix,
    Note,
    Severity,
    called_from,
    code,
    operation,
    weakened,
    why,
)
from gradvet.rules import rule
from gradvet.syntax import edits
from gradvet.syntax.parse import Module
from gradvet.syntax.unplace import add_line_before, call_out_of_place, out_of_place
from gradvet.text import Edit


@rule(SavedChanged, family="alias", severity=Severity.ERROR)
def check(event: SavedChanged) -> Iterator[Finding]:
    """Report the change; an optimizer's step and an alias by `detach()` have rules of their own."""
    if event.how == "step()" or event.tensor.alias is not None:
        return
    changed = _changed(event)
    ends = f"{code(event.backward)} will raise" if event.backward is not None else "a backward will raise"
    saver = operation(event.saver)
    if event.maker is not None:
        message = f"{code(event.maker)} changes in place what {saver} saved for backward; {ends}"
    else:
        message = f"this changes {changed} in place, which {saver} saved for backward; {ends}"
    notes = [Note("saved", f"by {code(event.saver)}", event.saver)]
    if event.backward is not None:
        notes.append(Note("backward", code(event.backward), event.backward))
    else:
        notes.append(Note("assuming", "whoever calls this module trains it"))
    severity = weakened(Severity.ERROR, event.root) if event.backward is not None else Severity.WARNING
    assumed = [note for note in why("", event.root) if note.label == "assuming"]
    yield Finding(
        event.maker or event.node,
        message,
        (*notes, *assumed, *called_from(event.calls)),
        tuple(_fixes(event)),
        severity,
    )


def _changed(event: SavedChanged) -> str:
    """What is changed, as the user wrote it."""
    node = event.node
    if event.target is not None:
        return code(event.target)
    if isinstance(node, ast.Call) and node.args:
        return code(node.args[0])
    return "a tensor"


def _fixes(event: SavedChanged) -> Iterator[Fix]:
    node = event.maker or event.node
    effect = "the same values; the tensor that was saved stays as it is"
    safe = Applicability.SAFE if event.alone else Applicability.UNSAFE
    seen = effect if event.alone else f"{effect}, and other names for it no longer see the change"
    if isinstance(node, ast.Call) and any(keyword.arg == "inplace" for keyword in node.keywords):
        yield Fix(
            "Drop inplace=True",
            effect,
            Applicability.SAFE if event.maker is not None else safe,
            lambda module: edits.remove_call_keyword(module, node, "inplace"),
        )
    elif isinstance(node, ast.AugAssign) and isinstance(node.target, (ast.Name, ast.Attribute)):
        yield Fix("Compute out of place", seen, safe, lambda module: out_of_place(module, node))
    elif isinstance(node, ast.Call) and event.plain and isinstance(event.target, ast.Name):
        name = event.target
        yield Fix("Compute out of place", seen, safe, lambda module: call_out_of_place(module, node, name))
    elif (root := _root(event.target)) is not None and not _reads(node, root):

        def copy(module: Module) -> Sequence[Edit]:
            return add_line_before(module, event.node, f"{root} = {root}.clone()")

        yield Fix(f"Change a copy of `{root}`", seen, safe, copy)


def _reads(node: ast.AST, name: str) -> bool:
    """Whether what is written is computed from the tensor itself: then the copy would be saved, and changed."""
    match node:
        case ast.Assign(value=value) | ast.AugAssign(value=value):
            written: list[ast.AST] = [value]
        case ast.Call(args=args, keywords=keywords):
            written = [*args, *keywords]
        case _:
            return True
    return any(isinstance(n, ast.Name) and n.id == name for value in written for n in ast.walk(value))


def _root(target: ast.expr | None) -> str | None:
    """The name of a tensor of which a target is the whole, or a part."""
    while isinstance(target, ast.Subscript):
        target = target.value
    return target.id if isinstance(target, ast.Name) else None
