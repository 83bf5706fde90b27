"""`requires_grad` is meant, and something else is written."""

import ast
from collections.abc import Iterator, Sequence

from gradvet.autograd.events_flag import FlagMisspelt
from gradvet.finding import Applicability, Finding, Fix, Note, Severity, called_from, code
from gradvet.rules import rule
from gradvet.syntax.parse import Module
from gradvet.text import Edit, Span


@rule(FlagMisspelt, family="requires-grad", severity=Severity.WARNING)
def check(event: FlagMisspelt) -> Iterator[Finding]:
    """Report a flag that is misspelt, compared where it should be set, or set in place of the method."""
    holder = code(event.subject) if event.subject is not None else "the tensor"
    meant = "`requires_grad_(...)`" if _as_call(event) else "`requires_grad`"
    severity = None
    match event.use:
        case "assigned":
            message = f"`{event.name}` is a new attribute that torch never looks at: {holder} stays as it was"
        case "read":
            message = f"a tensor has no `{event.name}`: torch raises here"
            severity = Severity.ERROR
        case "keyword":
            message = f"{holder} takes no `{event.name}`: torch raises here"
            severity = Severity.ERROR
        case "compared":
            message = f"`==` compares and the answer is dropped: {holder} stays as it was"
        case "annotated":
            message = f"`:` only annotates, nothing is assigned: {holder} stays as it was"
        case _:
            message = f"this puts a value in the place of the method `{event.name}`: {holder} stays as it was"
    yield Finding(
        event.node,
        message,
        (Note("write", meant), *called_from(event.calls)),
        (_fix(event, meant),),
        severity,
    )


def _fix(event: FlagMisspelt, meant: str) -> Fix:
    raises = event.use in {"read", "keyword"}
    return Fix(
        f"Write {meant}",
        "as it is, the line raises"
        if raises
        else "the flag is set as it is meant to be, and other parameters train",
        Applicability.SAFE if raises else Applicability.UNSAFE,
        lambda module: _changed(module, event),
    )


def _as_call(event: FlagMisspelt) -> bool:
    """Whether the method is what is right: on a module, and where the method's own name stands."""
    return event.on_module or event.use == "method"


def _changed(module: Module, event: FlagMisspelt) -> Sequence[Edit]:
    source, node = module.source, event.node
    match node:
        case ast.keyword(arg=str(name)):
            start = source.span(node).start
            return [Edit(Span(start, start + len(name)), "requires_grad")]
        case ast.Expr(ast.Compare(ast.Attribute() as target, _, [value])):
            return _assignment(module, event, target, value)
        case ast.AnnAssign(ast.Attribute() as target, ast.Constant() as value):
            return _assignment(module, event, target, value)
        case ast.Attribute() if event.use != "read":
            statement = module.parents.get(node)
            if isinstance(statement, ast.Assign) and statement.targets == [node]:
                return _assignment(module, event, node, statement.value)
            return [] if _as_call(event) else [Edit(_name(module, node), "requires_grad")]
        case ast.Attribute():
            return [Edit(_name(module, node), "requires_grad")]
        case ast.Call(args=[_, ast.Constant() as name, *_]) if not _as_call(event):
            return [Edit(source.span(name), '"requires_grad"')]
    return []


def _name(module: Module, node: ast.Attribute) -> Span:
    """Where the attribute's own name stands."""
    end = module.source.span(node).end
    return Span(end - len(node.attr), end)


def _assignment(
    module: Module, event: FlagMisspelt, target: ast.Attribute, value: ast.expr
) -> Sequence[Edit]:
    """From the attribute's name to the value: `requires_grad = value`, or the call on a module."""
    name, given = _name(module, target), module.source.span(value)
    between = module.bare[name.end : given.start].strip()
    if between not in ("=", "==", ":"):
        return []
    if _as_call(event):
        return [Edit(Span(name.start, given.end), f"requires_grad_({module.text(value)})")]
    return [Edit(Span(name.start, given.start), "requires_grad = ")]
