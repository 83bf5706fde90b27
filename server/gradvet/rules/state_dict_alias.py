"""A snapshot of the parameters is no copy: it changes with the model."""

import ast
from collections.abc import Iterator, Sequence

from gradvet.autograd.events_alias import SnapshotAliased
from gradvet.finding import Applicability, Finding, Fix, Note, Severity, called_from, code
from gradvet.rules import rule
from gradvet.syntax import edits, rewrite
from gradvet.syntax.parse import Module
from gradvet.text import Edit

_WITH_THEMSELVES = {
    "same": "compares parameters with themselves",
    "written": "writes parameters onto themselves",
    "averaged": "averages parameters with themselves",
}
_SAID = frozenset({"compared", "restored", "written", "averaged"})


@rule(SnapshotAliased, family="alias", severity=Severity.WARNING)
def check(event: SnapshotAliased) -> Iterator[Finding]:
    """Report what was kept of a model and goes on training with it."""
    value = code(event.value)
    notes = []
    if event.step is not None:
        notes.append(Note("changed", f"{code(event.step)} changes it in place", event.step))
    if event.read is not None:
        said = "loaded" if event.loaded else event.kind if event.kind in _SAID else "read"
        notes.append(Note(said, code(event.read), event.read))
    if event.kind in _WITH_THEMSELVES or event.kind == "shared":
        yield Finding(event.node, _of_one_model(event), (*notes, *called_from(event.calls)))
        return
    if event.kind == "compared" and event.read is not None:
        message = f"{value} copies nothing: it changes with every step, and {code(event.read)} compares it with itself"
    elif event.kind == "restored" and event.read is not None:
        message = f"{value} copies nothing: it changes with every step, and {code(event.read)} writes it onto itself"
    elif event.kind == "gradient" and event.read is not None:
        message = f"{value} copies nothing: a gradient is changed in place, and {code(event.read)} takes the same one twice"
    elif event.kind == "tied":
        message = f"{value} copies nothing: both have one memory from then on, and what moves the one moves the other"
    elif event.kind == "element":
        message = f"{value} copies nothing: every element that is added here is the same memory, and holds the newest values"
    elif event.loaded:
        message = f"{value} holds the model's own tensors, not copies: loading it back changes nothing"
    else:
        message = f"{value} holds the model's own tensors, not copies: it changes with every step"
    yield Finding(
        event.node,
        message,
        (*notes, *called_from(event.calls)),
        (
            Fix(
                "Copy the values",
                "the snapshot keeps the values of this moment",
                Applicability.UNSAFE,
                lambda module: _copied(module, event),
            ),
        ),
    )


def _of_one_model(event: SnapshotAliased) -> str:
    """What to say where there is no snapshot, and two names for the same parameters."""
    value = code(event.value)
    if event.kind == "shared" and event.read is event.node:
        return f"{value} loads parameters into themselves: another name for a model is no copy"
    if event.kind == "shared":
        return f"{value} is a shallow copy: it has the parameters of the model that it was made from, and trains with it"
    if event.read is None:
        return f"{value} {_WITH_THEMSELVES[event.kind]}: another name for them is no copy"
    return f"{value} copies nothing: {code(event.read)} {_WITH_THEMSELVES[event.kind]}"


def _copied(module: Module, event: SnapshotAliased) -> Sequence[Edit]:
    value = event.value.value if isinstance(event.value, ast.Assign) else event.value
    if not isinstance(value, ast.expr):
        return []
    if event.kind != "state_dict" and not _is_state_dict(value):
        is_array = (
            isinstance(value, ast.Call)
            and isinstance(value.func, ast.Attribute)
            and value.func.attr == "numpy"
        )
        return edits.after(module, value, ".copy()" if is_array else ".clone()")
    match value:
        case ast.DictComp(value=element):
            return edits.after(module, element, ".clone()")
        case (
            ast.Call(func=ast.Attribute(attr="copy"), args=[inner])
            | ast.Call(func=ast.Name(id="copy" | "dict" | "OrderedDict"), args=[inner], keywords=[])
        ):
            value_text = module.text(inner)
        case ast.Call(func=ast.Attribute(value=inner, attr="copy"), args=[]):
            value_text = module.text(inner)
        case _:
            value_text = module.text(value)
    name, imports = _deepcopy(module)
    return [*imports, *edits.replace(module, value, f"{name}({value_text})")]


def _is_state_dict(value: ast.expr) -> bool:
    return (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and value.func.attr == "state_dict"
    )


def _deepcopy(module: Module) -> tuple[str, list[Edit]]:
    """How `copy.deepcopy` is spelled in this module, and the import that it needs."""
    for node in module.tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == "copy":
            for alias in node.names:
                if alias.name == "deepcopy":
                    return alias.asname or "deepcopy", []
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == "copy":
                    return f"{alias.asname or 'copy'}.deepcopy", []
    return "copy.deepcopy", rewrite.add_import(module, "copy")
