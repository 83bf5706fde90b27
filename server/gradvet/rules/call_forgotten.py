"""A method is named and not called, or called for nothing."""

import ast
from collections.abc import Iterator, Sequence

from gradvet.autograd.events_call import NotCalled, ResultDropped
from gradvet.finding import Applicability, Finding, Fix, Note, Severity, called_from, code
from gradvet.rules import rule
from gradvet.syntax import edits
from gradvet.syntax.parse import Module
from gradvet.text import Edit, Span

_MISSED = {
    "backward": "no gradient is computed",
    "step": "no parameter changes",
    "zero_grad": "the old gradients stay",
    "eval": "dropout and normalisation go on as in training",
    "train": "dropout and normalisation stay as they are",
    "detach_": "the graph stays",
    "requires_grad_": "the flag stays as it is",
}


@rule(NotCalled, ResultDropped, family="backward", severity=Severity.WARNING)
def check(event: NotCalled | ResultDropped) -> Iterator[Finding]:
    """Report a method without its call, and a call whose result nobody takes."""
    if isinstance(event, ResultDropped):
        yield _dropped(event)
        return
    node, severity = event.node, None
    name = code(node)
    notes: tuple[Note, ...] = ()
    applicability = Applicability.UNSAFE
    match event.how:
        case "statement":
            missed = _MISSED.get(event.method, "nothing happens")
            message = f"{name} is only named, not called: {missed}"
        case "rebound":
            message = f"{name} is the method itself, not its result: the tensor is lost"
        case "operand":
            message = f"{name} is the method itself, not its result: torch raises where it is used"
            severity, applicability = Severity.ERROR, Applicability.SAFE
        case "shown":
            message = f"{name} is the method itself: its name is shown, not the value"
        case _:
            message = f"{name} is the method itself, not its result, and holds the tensor with all its graph"
    if event.site is not None:
        notes = (Note("used", code(event.site), event.site),)
    yield Finding(
        node,
        message,
        (*notes, *called_from(event.calls)),
        (
            Fix(
                "Call it",
                "what is named here is done",
                applicability,
                lambda module: edits.after(module, node, "()") if isinstance(node, ast.expr) else [],
            ),
        ),
        severity,
    )


def _dropped(event: ResultDropped) -> Finding:
    name, node = code(event.subject), event.node
    fixes = []
    if isinstance(event.subject, (ast.Name, ast.Attribute, ast.Subscript)):
        fixes.append(
            Fix(
                "Assign the result",
                f"{name} is the new tensor from here on",
                Applicability.UNSAFE,
                lambda module: _assigned(module, node, event.subject),
            )
        )
    does = f"`{event.in_place}()` would change it" if event.in_place else "it has to be assigned"
    return Finding(
        node,
        f"`{event.method}()` gives a new tensor, which is dropped: {name} stays as it was; {does}",
        called_from(event.calls),
        tuple(fixes),
    )


def _assigned(module: Module, node: ast.AST, subject: ast.expr) -> Sequence[Edit]:
    start = module.source.span(node).start
    return [Edit(Span(start, start), f"{module.text(subject)} = ")]
