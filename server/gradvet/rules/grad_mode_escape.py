"""A grad mode reaches code that it is not meant for, or misses the code that it is meant for."""

from collections.abc import Iterator

from gradvet.autograd.events_mode import ModeEscaped
from gradvet.finding import Finding, Note, Severity, called_from, code
from gradvet.rules import rule


@rule(ModeEscaped, family="mode", severity=Severity.WARNING)
def check(event: ModeEscaped) -> Iterator[Finding]:
    """Report work that runs outside its grad mode, and a mode that is in force outside its block."""
    mode = code(event.mode)
    notes = [Note("mode", mode, event.mode)]
    work = code(event.work) if event.work is not None else "the work"
    severity = None
    match event.kind:
        case "yield":
            message = (
                f"while this generator waits here, {mode} is in force for whoever consumes it: "
                "decorate the generator instead"
            )
            severity = None if event.trains else Severity.INFO
            if event.work is not None:
                notes.append(Note("loss", f"{work} raises for it", event.work))
                severity = Severity.ERROR
        case "await":
            if not event.trains:
                return
            message = f"{mode} is held across an `await`: other tasks run under it until this one goes on"
        case "thread":
            message = f"a thread starts with grad mode on: {work} records its graph, in spite of {mode}"
            notes.append(Note("note", "put the `with` block, or the decorator, on what runs in the thread"))
        case "lazy":
            message = f"the generator is made under {mode} and runs where it is consumed: there it records"
            notes.append(Note("consumed", work, event.work))
        case "lambda":
            message = f"the lambda is made under {mode} and runs in the mode of its caller: there it records"
            notes.append(Note("called", work, event.work))
        case _:
            message = f"{mode} is entered again inside its own block: grad mode is off for good afterwards"
            notes.append(Note("note", "each `with` needs an object of its own"))
            severity = Severity.ERROR
    yield Finding(event.node, message, (*notes, *called_from(event.calls)), (), severity)
