"""`backward(create_graph=True)` makes parameters and their gradients hold each other."""

from collections.abc import Iterator

from gradvet.autograd.events import CycleMade
from gradvet.finding import Finding, Note, Severity, called_from, code
from gradvet.rules import rule


@rule(CycleMade, family="leak", severity=Severity.WARNING)
def check(event: CycleMade) -> Iterator[Finding]:
    """Report the backward whose gradients stay."""
    yield Finding(
        event.node,
        f"{code(event.node)} leaves gradients that hold their parameters, which hold them: that memory is never "
        "freed; use `torch.autograd.grad`, or set each `.grad` to None afterwards",
        (*(Note("assuming", words) for words in sorted(event.root.assumes)), *called_from(event.calls)),
    )
