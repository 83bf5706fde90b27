"""A gradient flows where the code says that it stops."""

import ast
from collections.abc import Iterator, Sequence

from gradvet.autograd.events import StopCrossed
from gradvet.finding import Applicability, Finding, Fix, Severity, called_from, code, why
from gradvet.rules import rule
from gradvet.syntax import edits
from gradvet.syntax.parse import Module
from gradvet.text import Edit


@rule(StopCrossed, family="intent", severity=Severity.WARNING)
def check(event: StopCrossed) -> Iterator[Finding]:
    """Report a value marked `# grad: stop` that requires grad."""
    yield Finding(
        event.node,
        f"`# grad: stop` says that the gradient ends here, but {code(event.node)} still carries it on",
        (*why("why", event.tensor), *called_from(event.calls)),
        (_fix(event),),
    )


def _fix(event: StopCrossed) -> Fix:
    def change(module: Module) -> Sequence[Edit]:
        return edits.after(module, event.node, ".detach()") if isinstance(event.node, ast.expr) else []

    effect = "no gradient flows back from here, as the comment says"
    return Fix("Stop it with .detach()", effect, Applicability.UNSAFE, change)
