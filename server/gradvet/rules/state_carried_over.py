"""Recurrent or memory state goes into the next iteration with its graph."""

import ast
from collections.abc import Iterator, Sequence

from gradvet.autograd.events import StateCarried
from gradvet.finding import Applicability, Finding, Fix, Note, Severity, called_from, code, weakened
from gradvet.rules import rule
from gradvet.syntax import edits
from gradvet.syntax.parse import Module
from gradvet.syntax.unplace import add_lines_after
from gradvet.text import Edit


@rule(StateCarried, family="leak", severity=Severity.ERROR)
def check(event: StateCarried) -> Iterator[Finding]:
    """Report where the state gets its new value: an error when the next backward raises, else a warning."""
    names = " and ".join(f"`{name}`" for name in event.names)
    goes = "goes" if len(event.names) == 1 else "go"
    its = "its" if len(event.names) == 1 else "their"
    backward = code(event.backward)
    if event.kept:
        message = (
            f"{names} {goes} into the next iteration with {its} graph, and `retain_graph=True` keeps it: "
            f"each {backward} runs through all earlier iterations"
        )
    else:
        message = (
            f"{names} {goes} into the next iteration with {its} graph, which {backward} has freed by then; "
            "the next backward will raise"
        )
    assumed = [Note("assuming", words) for words in sorted(event.root.assumes)]
    yield Finding(
        event.node,
        message,
        (Note("backward", backward, event.backward), *assumed, *called_from(event.calls)),
        tuple(_fixes(event)),
        Severity.WARNING if event.kept else weakened(Severity.ERROR, event.root),
    )


def _fixes(event: StateCarried) -> Iterator[Fix]:
    backward = event.backward
    if not event.bindings:
        return
    plain = [name for name, parts in zip(event.names, event.parts) if not parts]
    lines = [f"{name} = tuple(part.detach() for part in {name})" for name in event.names if name not in plain]
    if plain:
        lines.insert(0, f"{', '.join(plain)} = {', '.join(f'{name}.detach()' for name in plain)}")

    def change(module: Module) -> Sequence[Edit]:
        added = add_lines_after(module, backward, lines)
        if added and event.kept and isinstance(backward, ast.Call):  # there is nothing to retain it for then
            added += edits.remove_call_keyword(module, backward, "retain_graph")
        return added

    yield Fix(
        "Detach the state after the backward",
        "the values go on, and the graph ends with the iteration"
        + ("; gradients no longer reach into earlier ones" if event.kept else ""),
        Applicability.UNSAFE if event.kept else Applicability.SAFE,
        change,
    )
