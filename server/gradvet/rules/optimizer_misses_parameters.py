"""An optimizer was built before the parameters that it should move were there, or before they were to train."""

from collections.abc import Iterator

from gradvet.autograd.events_leaf import OptimizerMisses
from gradvet.finding import Finding, Note, Severity, called_from, code, named
from gradvet.rules import rule


@rule(OptimizerMisses, family="cut", severity=Severity.ERROR)
def check(event: OptimizerMisses) -> Iterator[Finding]:
    """Report an optimizer that took the parameters of a module too early."""
    if event.idle or event.twin is not None:
        message = (
            "no backward reaches what this optimizer was given"
            if event.twin is None
            else f"this optimizer was given what {code(event.twin)} has already"
        )
        notes = () if event.place is None else (Note("step", "it finds no gradient here", event.place),)
        yield Finding(
            event.node,
            f"{message}: backward fills the gradients of {named(event.leaves) or 'other parameters'}, which no step uses",
            (*notes, *called_from(event.calls)),
        )
        return
    if event.outside:
        notes = () if event.place is None else (Note("made", code(event.place), event.place),)
        left = named(event.leaves) or "some parameters"
        yield Finding(
            event.node,
            f"no optimizer has {left}: the loss that this one steps on fills their gradients",
            (*notes, *called_from(event.calls)),
            (),
            Severity.WARNING,
        )
        return
    if event.frozen:
        notes = () if event.place is None else (Note("step", code(event.place), event.place),)
        yield Finding(
            event.node,
            f"all that this optimizer was given is frozen, {named(event.leaves) or 'and no more'}: its steps move nothing",
            (*notes, *called_from(event.calls)),
            (),
            Severity.WARNING,
        )
        return
    when = "were still frozen" if event.late else "were not there yet"
    notes = (
        () if event.place is None else (Note("made", f"here, afterwards: {code(event.place)}", event.place),)
    )
    yield Finding(
        event.node,
        f"when this optimizer was built, {named(event.leaves)} {when}: backward fills their gradients and no step uses them",
        (*notes, *called_from(event.calls)),
    )
