"""Each iteration puts one more hook on the same module."""

import ast
from collections.abc import Iterator

from gradvet.autograd.events_call import HookPiled, HookStacked
from gradvet.finding import Finding, Note, Severity, called_from, code
from gradvet.rules import rule


@rule(HookPiled, HookStacked, family="leak", severity=Severity.WARNING)
def check(event: HookPiled | HookStacked) -> Iterator[Finding]:
    """Report the registration whose handle is never used, and what a hook keeps for a backward that does not come."""
    node = event.node
    if isinstance(event, HookStacked):
        yield _stacked(event)
        return
    owner = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else node
    notes = [Note("module", f"{code(event.made)} outlives the loop", event.made)]
    if event.loop is not None:
        notes.append(Note("loop", "each iteration puts a hook there and none takes one away", event.loop))
    yield Finding(
        node,
        f"{code(owner)} gets one more hook in every iteration: all of them run at each call, and keep what they hold; "
        "keep the handle, and `remove()` it",
        (*notes, *called_from(event.calls)),
    )


def _stacked(event: HookStacked) -> Finding:
    node = event.node
    holder = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else node
    mode = event.mode
    return Finding(
        node,
        f"{code(holder)} gets an entry in each call, and only a backward takes it out again: "
        "where grad mode is off it only grows",
        (
            *(() if mode is None else (Note("mode", f"{code(mode)} lets no backward come", mode),)),
            *called_from(event.calls),
        ),
    )
