"""A backward goes through a graph that another backward has freed."""

from collections.abc import Iterator

from gradvet.autograd.events import GraphFreed
from gradvet.finding import Finding, Note, Severity, called_from, code, weakened
from gradvet.rules import rule


@rule(GraphFreed, family="backward", severity=Severity.ERROR)
def check(event: GraphFreed) -> Iterator[Finding]:
    """Report the later of the two, with what they share and where it was freed."""
    here, other, shared = code(event.node), code(event.freed_by), code(event.shared)
    if event.total:
        message = (
            f"{here} goes again through what earlier iterations added to this loss, and they have freed it; "
            "start the sum anew in each"
        )
    elif event.again and event.whole:
        message = f"{here} runs again over a loss that is computed once, before the loop; compute it inside"
    elif event.again:
        message = (
            f"{here} runs again through {shared}, which is computed once, before the loop: "
            "the first time freed its graph"
        )
    elif event.whole:
        message = f"{here} is a second backward of the same loss; the first freed its graph"
    else:
        message = f"{here} goes through {shared} once more, whose graph {other} has freed; torch will raise"
    notes = [Note("shared", f"{shared} is part of both", event.shared)]
    if not event.again:
        notes.append(Note("freed", f"by {other}", event.freed_by))
    assumed = [Note("assuming", words) for words in sorted(event.root.assumes)]
    yield Finding(
        event.node,
        message,
        (*notes, *assumed, *called_from(event.calls)),
        (),
        weakened(Severity.ERROR, event.root),
    )
