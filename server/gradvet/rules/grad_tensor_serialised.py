"""A computed tensor that requires grad is copied deeply, or sent to another process."""

from collections.abc import Iterator

from gradvet.autograd.events_exit import GradTensorSerialised
from gradvet.finding import Applicability, Finding, Fix, Note, Severity, called_from, code, weakened
from gradvet.rules import rule
from gradvet.syntax import edits

_HOW = {
    "deepcopy": "`deepcopy` copies only leaves, and raises",
    "queue": "autograd does not cross processes, and torch refuses to send it",
    "workers": "a worker of the loader cannot send it, and torch raises",
    "collate": "a worker of the loader cannot send it, and torch raises",
}


@rule(GradTensorSerialised, family="exit", severity=Severity.ERROR)
def check(event: GradTensorSerialised) -> Iterator[Finding]:
    """Report a graph that goes where graphs cannot go."""
    source = event.source
    name = code(source) if source is not None else "the value"
    if event.how == "workers":
        what = "the dataset gives a computed tensor that requires grad"
    elif event.how == "collate":
        what = "`collate_fn` gives a computed tensor that requires grad"
    elif event.path:
        what = f"{name} holds a computed tensor in `{event.path}`"
    else:
        what = f"{name} {'is' if event.direct else 'holds'} a computed tensor that requires grad"
    label = "loader" if event.how in ("workers", "collate") else "made"
    notes = [Note(label, code(event.made), event.made)] if event.made is not None else []
    fixes: tuple[Fix, ...] = ()
    if source is not None and event.direct:
        fixes = (
            Fix(
                "Detach it",
                "as it is, the line raises",
                Applicability.SAFE,
                lambda module: edits.after(module, source, ".detach()"),
            ),
        )
    yield Finding(
        event.node,
        f"{what}: {_HOW[event.how]}",
        (*notes, *called_from(event.calls)),
        fixes,
        weakened(Severity.ERROR, event.tensor),
    )
