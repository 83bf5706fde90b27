"""`requires_grad` set on something that only later shows to be a module."""

import ast
from dataclasses import dataclass, field

from gradvet.autograd.events_flag import ModuleFlag
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.values import Ref

Place = tuple[ast.AST, tuple[ast.AST, ...]]


@dataclass(slots=True)
class FlagNotes:
    """The flags that were set on objects of which nothing is known yet."""

    machine: Machine
    waiting: dict[int, list[ModuleFlag]] = field(default_factory=dict)

    def on_unknown(self, holder: Ref, place: Place, subject: ast.expr | None, flag: bool | None) -> None:  # noqa: FBT001
        """`holder.requires_grad = flag`; tensors may have it set."""
        self.waiting.setdefault(holder.address, []).append(ModuleFlag(*place, subject, flag, None))

    def shows_as_module(self, holder: Ref, site: ast.AST) -> None:
        """The object is called, or asked for what only modules have; a tensor would raise."""
        for event in self.waiting.pop(holder.address, ()):
            self.machine.emit(ModuleFlag(event.node, event.calls, event.subject, event.flag, site))
