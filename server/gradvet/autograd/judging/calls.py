"""Methods that were put into containers: whether anybody calls what comes out."""

import ast
from dataclasses import dataclass, field

from gradvet.autograd.events_call import NotCalled
from gradvet.autograd.machine import Machine


@dataclass(slots=True)
class CallNotes:
    """The methods that were kept as values, by the place where they were named."""

    machine: Machine
    waiting: dict[ast.AST, NotCalled] = field(default_factory=dict)
    called: set[ast.AST] = field(default_factory=set)

    def kept(self, event: NotCalled) -> None:
        """A method went into a container."""
        self.waiting.setdefault(event.node, event)

    def was_called(self, named: ast.AST) -> None:
        """A method was called elsewhere than where it was named."""
        self.called.add(named)

    def conclude(self) -> None:
        """Tell those that nobody called."""
        for node, event in self.waiting.items():
            if node not in self.called:
                self.machine.emit(event)
