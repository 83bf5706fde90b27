"""A target, a weight or a reference takes part in a loss with its graph."""

from collections.abc import Iterator, Sequence

from gradvet.autograd.events_flow import TargetInGraph
from gradvet.finding import Applicability, Finding, Fix, Note, Severity, called_from, code
from gradvet.rules import rule
from gradvet.syntax import edits, rewrite
from gradvet.syntax.parse import Module
from gradvet.text import Edit

_SAYS = {
    "bootstrap": "{what} is part of a target and keeps its graph: the loss also moves the target towards the prediction",
    "weight": "{what} weights a log-probability and keeps its graph: the policy's loss also trains what computed the weight",
    "ratio": "{what} is of one policy twice, each with its graph: where the two are the same, their gradients cancel out",
    "teacher": "{what} is what a student is to learn and keeps its graph: the loss also pulls the teacher to the student",
    "branch": "{what} pulls both branches to one another, and nothing else is in the loss: a constant output solves it",
    "follower": "{what} runs with a graph that nobody needs: its parameters are only ever set from another network",
    "itself": "{what} compares a network with itself, and both sides keep their graph: it and its derivatives are zero",
    "option": "{what} is the same either way: it keeps its graph where the option detaches what is beside it",
    "stepped": "{what} runs with its graph: its parameters follow another network, and the optimizer moves them as well",
}
_USED = {
    "bootstrap": "compared here",
    "weight": "weights the log-probability here",
    "teacher": "used as the target here",
    "follower": "this backward fills the `.grad` of its parameters",
    "itself": "differentiated here",
    "option": "detached by the same option",
}


@rule(TargetInGraph, family="flow", severity=Severity.WARNING)
def check(event: TargetInGraph) -> Iterator[Finding]:
    """Report a target that a backward goes through; an info where no optimizer steps on what it perhaps is to train.

    What a target network gives is never to be trained: each backward goes through it for nothing and fills its `.grad`.
    """
    notes = []
    if event.use is not event.node and event.kind in _USED:
        notes.append(Note("used", _USED[event.kind], event.use))
    if event.source is not None:
        text = "set here" if event.kind == "follower" else "made here, and it keeps its graph"
        notes.append(Note("why", text, event.source))
    if event.trained is not None:
        notes.append(Note("why", f"{code(event.trained)} trains what it was computed from", event.trained))
    if event.kind == "branch" and event.operand is not None:
        notes.append(
            Note(
                "why", f"{code(event.operand)} is the branch that the other one is to predict", event.operand
            )
        )
    kind = "stepped" if event.kind == "follower" and event.owned else event.kind
    yield Finding(
        event.node,
        _SAYS[kind].format(what=code(event.node)),
        (*notes, *called_from(event.calls)),
        tuple(_fixes(event)),
        Severity.WARNING if event.owned or event.kind in ("bootstrap", "follower") else Severity.INFO,
    )


def _fixes(event: TargetInGraph) -> Iterator[Fix]:
    operand = event.operand
    if operand is not None:
        yield Fix(
            "Stop the gradient at the target",
            "the loss keeps its value; what computed the target gets no gradient from it",
            Applicability.UNSAFE,
            lambda module: edits.after(module, operand, ".detach()"),
        )
    if event.kind == "follower":

        def change(module: Module) -> Sequence[Edit]:
            spelled, imports = rewrite.torch_name(module, "torch.no_grad")
            statement = module.statement(event.node)
            return [*imports, *rewrite.wrap_in_with(module, statement, f"with {spelled}():")]

        yield Fix(
            "Run it under no_grad()",
            "the loss keeps its value; no graph is recorded, and the parameters get no `.grad`",
            Applicability.UNSAFE,
            change,
        )
