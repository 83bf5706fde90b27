"""A network is trained on what another one made, and the backward goes back into that other one."""

from collections.abc import Iterator

from gradvet.autograd.events_flow import FakeInGraph
from gradvet.finding import Applicability, Finding, Fix, Note, Severity, called_from, code
from gradvet.rules import rule
from gradvet.syntax import edits


@rule(FakeInGraph, family="flow", severity=Severity.ERROR)
def check(event: FakeInGraph) -> Iterator[Finding]:
    """Report an argument through which a backward that is meant for one network walks through another."""
    argument = event.node
    backward = code(event.backward)
    way = f"{backward} goes through {code(argument)} into the network that made it"
    if event.needed is not None and event.gone:
        message = f"{way}, whose graph {code(event.needed)} has freed: that raises"
    elif event.needed is not None:
        message = f"{way} and frees its graph, which {code(event.needed)} needs: that raises"
    elif event.mixed:
        message = f"{way}, and {code(event.step)} uses that gradient too"
    else:
        message = f"{way}, for nothing: that gradient is cleared"
    notes = [Note("backward", "meant for this network alone", event.backward)]
    if event.needed is not None and event.gone:
        notes.append(Note("freed", "its way has led through that network before", event.needed))
    elif event.needed is not None:
        notes.append(Note("raises", "it needs the graph that is gone by then", event.needed))
    else:
        notes.append(
            Note("step", "uses the gradients of both losses" if event.mixed else "never sees it", event.step)
        )
    assumed = [Note("assuming", words) for words in sorted(event.assumes)]
    sure = not event.assumes
    fix = Fix(
        "Detach what the other network made",
        "the other network is trained by its own loss alone"
        if event.mixed
        else "the same steps, without a backward through the other network",
        Applicability.UNSAFE if event.mixed else Applicability.SAFE,
        lambda module: edits.after(module, argument, ".detach()"),  # type: ignore[arg-type]
    )
    yield Finding(
        argument,
        message,
        (*notes, *assumed, *called_from(event.calls)),
        (fix,),
        Severity.ERROR if sure and (event.mixed or event.needed is not None) else Severity.WARNING,
    )
