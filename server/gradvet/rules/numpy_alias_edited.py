"""A tensor and a numpy array share memory, and an edit of the one changes the other."""

import ast
from collections.abc import Iterator, Sequence

from gradvet.autograd.events_alias import SharedEdit
from gradvet.finding import Applicability, Finding, Fix, Note, Severity, called_from, code, operations
from gradvet.rules import rule
from gradvet.syntax import edits
from gradvet.syntax.parse import Module
from gradvet.text import Edit


@rule(SharedEdit, family="alias", severity=Severity.WARNING)
def check(event: SharedEdit) -> Iterator[Finding]:
    """Report an edit that shows on the other side of `numpy()` or `from_numpy()`."""
    made, other = event.made, _other(event)
    target = code(event.target) if event.target is not None else f"the {event.edited}"
    kind = "tensor" if event.edited == "array" else "array"
    name = code(other) if other is not None else f"the {kind} made of it"
    notes = [Note("shared", f"{code(made)} copies nothing", made)]
    if event.read is not None and not event.saved:
        notes.append(Note("read", f"{code(event.read)} is used again", event.read))
    if any(isinstance(node, ast.Attribute) and node.attr == "cpu" for node in ast.walk(made)):
        notes.append(Note("assuming", "the tensor is on the CPU: from a GPU, `.cpu()` copies"))
    severity = None
    if event.saved:
        needs = event.saved[0]
        message = (
            f"this edit of {target} changes what {operations(event.saved)} saved for backward: "
            "the gradient will be wrong, and torch cannot see it"
        )
        notes.append(Note("saved", f"by {code(needs)}", needs))
        severity = Severity.ERROR
    else:
        message = f"{target} shares memory with {name}: this edit changes {name} too"
    yield Finding(
        event.node,
        message,
        (*notes, *called_from(event.calls)),
        (
            Fix(
                "Copy before the edit",
                f"{name} keeps its values",
                Applicability.UNSAFE,
                lambda module: _copied(module, made),
            ),
        )
        if isinstance(made, ast.Call)
        else (),
        severity,
    )


def _is_from_array(made: ast.AST) -> bool:
    """Whether a call makes a tensor of an array, and not the other way round."""
    match made:
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
            return name in ("from_numpy", "as_tensor", "from_dlpack")
    return False


def _other(event: SharedEdit) -> ast.expr | None:
    """The expression of the side that is not edited."""
    made = event.made
    first = None
    if isinstance(made, ast.Call):
        if made.args:
            first = made.args[0]
        elif isinstance(made.func, ast.Attribute):
            first = made.func.value
            while (
                isinstance(first, ast.Call)
                and isinstance(first.func, ast.Attribute)
                and first.func.attr in ("detach", "cpu")
            ):
                first = first.func.value
    made_is_tensor = _is_from_array(made)
    if (event.edited == "tensor") is made_is_tensor:
        return first  # what was made is edited
    return event.read if isinstance(event.read, (ast.Name, ast.Attribute, ast.Subscript)) else None


def _copied(module: Module, made: ast.expr) -> Sequence[Edit]:
    return edits.after(module, made, ".clone()" if _is_from_array(made) else ".copy()")
