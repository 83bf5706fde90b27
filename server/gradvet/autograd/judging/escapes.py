"""Generators and coroutines that stop under no_grad, and generators that were made under it and run elsewhere."""

import ast
from dataclasses import dataclass, field, replace

from gradvet.autograd.events import Backward, UnusedGraph
from gradvet.autograd.events_mode import ModeEscaped
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import NO
from gradvet.syntax.parents import Parents


@dataclass(slots=True)
class EscapeNotes:
    """What may escape its grad mode; whether it does is seen in the text around it."""

    machine: Machine
    stops: dict[ast.AST, ModeEscaped] = field(default_factory=dict)
    made: dict[ast.AST, ModeEscaped] = field(default_factory=dict)
    lambdas: dict[ast.AST, ast.AST] = field(default_factory=dict)

    def suspended(self, event: ModeEscaped) -> None:
        """A function stops inside its own `with torch.no_grad()`."""
        self.stops.setdefault(event.mode, event)

    def lazily_made(self, event: ModeEscaped) -> None:
        """A generator was made inside a `with torch.no_grad()`."""
        self.made.setdefault(event.node, event)

    def conclude(self, parents: Parents) -> None:
        """Tell each stop once a block, and the generators that leave theirs."""
        m = self.machine
        trains = any(isinstance(event, Backward) for event in m.events)
        for event in self.stops.values():
            felt = next((other.node for other in m.events if _feels(other, event.mode)), None)
            m.events[:] = [other for other in m.events if not _feels(other, event.mode)]
            m.emit(replace(event, trains=trains, work=felt))
        for node, event in self.made.items():
            block = _block(event.mode, parents)
            if block is not None and (use := _used_outside(node, block, parents)) is not None:
                m.emit(replace(event, work=use))


def _feels(event: object, mode: ast.AST) -> bool:
    """Whether this backward has nothing to reach since a generator waits under its own `no_grad`."""
    return (
        isinstance(event, Backward)
        and event.root.requires_grad == NO
        and any(cut.node is mode for cut in event.cuts)
    )


def told_as_escapes(m: Machine) -> None:
    """A graph that was recorded in a thread in spite of `no_grad` is told there, not where the module is called."""
    escaped = {event.node for event in m.events if isinstance(event, ModeEscaped)}
    if escaped:
        m.events[:] = [
            event
            for event in m.events
            if not (isinstance(event, UnusedGraph) and escaped.intersection((event.node, *event.calls)))
        ]


def _block(mode: ast.AST, parents: Parents) -> ast.AST | None:
    item = parents.get(mode)
    return parents.get(item) if isinstance(item, ast.withitem) else None


def _used_outside(node: ast.AST, block: ast.AST, parents: Parents) -> ast.AST | None:
    """Where a generator is used after its block; None where all of it happens inside."""
    match parents.get(node):
        case ast.Return() as given:
            return given
        case ast.Assign(targets=[ast.Name(name)]):
            inside = set(ast.walk(block))
            function = block
            while function in parents and not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                function = parents[function]
            loads = [
                other
                for other in ast.walk(function)
                if isinstance(other, ast.Name) and other.id == name and isinstance(other.ctx, ast.Load)
            ]
            if loads and not any(load in inside for load in loads):
                return loads[0]
    return None
