"""A leaf is lost: its name is given to a computed tensor, or an optimizer is handed one."""

import ast
from collections.abc import Iterator, Sequence

from gradvet.autograd.events_leaf import LeafRebound, NonLeafOptimized
from gradvet.finding import (
    Applicability,
    Finding,
    Fix,
    Note,
    Severity,
    called_from,
    code,
    weakened,
    why,
)
from gradvet.rules import rule
from gradvet.syntax import edits, rewrite
from gradvet.syntax.parse import Module
from gradvet.text import Edit

_IN_PLACE = {ast.Add: "+=", ast.Sub: "-=", ast.Mult: "*=", ast.Div: "/="}


@rule(LeafRebound, NonLeafOptimized, family="cut", severity=Severity.ERROR)
def check(event: LeafRebound | NonLeafOptimized) -> Iterator[Finding]:
    """Report a step that makes a new tensor instead of changing the leaf, and an optimizer without a leaf."""
    if isinstance(event, NonLeafOptimized):
        yield _optimized(event)
        return
    name = code(event.name)
    notes: tuple[Note, ...] = called_from(event.calls)
    if event.used is None:
        message = f"{name} is only this loop's name for the tensor: the step makes a new one, and the leaf stays as it was"
    else:
        message = f"this binds {name} to a new tensor and the leaf is lost: no gradient is kept for {name} from now on"
        words = (
            "the gradient is missed here: {}"
            if isinstance(event.used, ast.Attribute)
            else "{} reaches no leaf"
        )
        notes = (Note("missed", words.format(code(event.used)), event.used), *notes)
    yield Finding(event.node, message, notes, tuple(_in_place(event)))


def _in_place(event: LeafRebound) -> Iterator[Fix]:
    match event.node:
        case ast.Assign(targets=[target], value=ast.BinOp(left=left, op=op, right=step)) if type(
            op
        ) in _IN_PLACE and ast.unparse(left) == ast.unparse(target):

            def change(module: Module) -> Sequence[Edit]:
                source = module.source
                span = source.span(event.node)
                own = edits.bracketed(module, step)
                text = f"{module.text(target)} {_IN_PLACE[type(op)]} {source[own]}"
                if not event.recorded:
                    return [Edit(span, text)]
                spelled, imports = rewrite.torch_name(module, "torch.no_grad")
                margin = source.line(event.node.lineno)[: event.node.col_offset]  # type: ignore[attr-defined]
                return [*imports, Edit(span, f"with {spelled}():\n{margin}    {text}")]

            title = (
                "Change the leaf in place under torch.no_grad()"
                if event.recorded
                else "Change the leaf in place"
            )
            effect = "the leaf itself changes, and whoever holds it sees that"
            yield Fix(title, effect, Applicability.UNSAFE, change)


def _optimized(event: NonLeafOptimized) -> Finding:
    source = code(event.source)
    if event.certain:
        message = f"{source} was computed and is no leaf: the optimizer refuses it"
    else:
        how = code(event.tensor.origin.node) if event.tensor.origin is not None else "the conversion"
        message = f"{source} is no leaf where {how} has something to change: the optimizer refuses it there"
    notes = (*why("why", event.tensor), *called_from(event.calls))
    severity = weakened(Severity.ERROR, event.tensor) if event.certain else Severity.WARNING
    return Finding(event.node, message, notes, (), severity)
