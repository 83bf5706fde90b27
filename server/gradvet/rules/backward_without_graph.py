"""`backward()` is called on something that holds no graph."""

from collections.abc import Iterable, Iterator

from gradvet.autograd.events import Backward, Cut, InputUnreached
from gradvet.autograd.memory.domain import NO
from gradvet.finding import Finding, Note, Severity, called_from, code, weakened, why
from gradvet.rules import rule

_STOPPED = {
    "detach": "{name} stopped the gradient here",
    "no_grad": "computed here with grad mode off (`torch.no_grad()` or its kin)",
    "data": "`.data` stopped the gradient here",
    "nondiff": "{name} has no gradient",
    "item": "made a Python number here",
    "rewrap": "{name} makes a new tensor without the graph",
    "numpy": "left torch here",
    "sample": "`.sample()` has no gradient",
    "checkpoint": "{name} gives no graph, since nothing that it is given requires grad",
    "collective": "{name} copies values between processes, and no graph",
    "grad": "{name} without `create_graph` gives plain numbers",
}


@rule(Backward, InputUnreached, family="cut", severity=Severity.ERROR)
def check(event: Backward | InputUnreached) -> Iterator[Finding]:
    """Report a backward whose root must not require grad, and one to something that is not in the graph."""
    if isinstance(event, InputUnreached):
        asked = code(event.asked) if event.asked is not None else "what is asked for"
        message = f"{asked} is not in the graph, so `autograd.grad()` raises: nothing was computed from it on this way"
        if event.zeros:
            message = (
                f"{code(event.node)} gives zeros: what the function returns is cut from all that it is given"
            )
        severity = Severity.WARNING if event.zeros else None
        yield Finding(
            event.node, message, (*_cuts(event.cuts)[:4], *called_from(event.calls)), severity=severity
        )
        return
    if event.root.requires_grad != NO or any(cut.kind == "rebound" for cut in event.cuts):
        return  # where a leaf has lost its name, that is told
    root = event.source
    name = code(root) if root is not None else "this tensor"
    notes = _cuts(event.cuts)
    if not notes:
        notes = list(why("why", event.root))
    yield Finding(
        event.node,
        f"{name} holds no graph, so `{event.how}` raises: nothing that requires grad leads to it",
        (*notes[:4], *called_from(event.calls)),
        (),
        weakened(Severity.ERROR, event.root),
    )


def _cuts(cuts: Iterable[Cut]) -> list[Note]:
    return [
        Note("cut", _STOPPED.get(cut.kind, "the gradient stops here").format(name=f"`{cut.name}`"), cut.node)
        for cut in cuts
    ]
