"""Functions that leave grad mode off, in programs that train."""

import ast
from dataclasses import dataclass, field

from gradvet.autograd.events import Backward
from gradvet.autograd.events_mode import ModeLeftOff
from gradvet.autograd.machine import Frame, Machine
from gradvet.autograd.memory.domain import GRAD, NO, NO_GRAD

_ENTERS = frozenset({"__enter__", "__aenter__"})


@dataclass(slots=True)
class Left:
    """A switch that was still off when its function was left on one of its ways."""

    switch: ast.AST
    calls: tuple[ast.AST, ...]
    function: ast.AST
    other: bool


@dataclass(slots=True)
class ModeNotes:
    """Where grad mode was on when a function was entered, and off when it was left."""

    machine: Machine
    left: dict[ast.AST, Left] = field(default_factory=dict)

    def function_ends(self, frame: Frame, before: int, ends: list[tuple[int, ast.AST | None]]) -> None:
        """A function is left on these ways, each with the mode and with the switch that set it."""
        if before != GRAD or getattr(frame.node, "name", "") in _ENTERS:
            return
        off = [switch for mode, switch in ends if mode == NO_GRAD and switch is not None]
        own = [switch for switch in off if any(node is switch for node in ast.walk(frame.node))]
        if own:
            other = any(mode == GRAD for mode, _ in ends)
            self.left.setdefault(own[0], Left(own[0], self.machine.where(), frame.node, other))

    def block_ends(self, manager: ast.AST, switch: ast.AST) -> None:
        """A block of an object of this class was entered with grad mode on; it is off when the block is left."""
        if any(node is switch for node in ast.walk(manager)):
            self.left.setdefault(switch, Left(switch, self.machine.where(), manager, other=False))

    def conclude(self) -> None:
        """Tell those that a backward would feel; where it is switched on elsewhere too, only those that it did feel."""
        m = self.machine
        for left in self.left.values():
            felt = next((at for at, event in enumerate(m.events) if _feels(event, left.switch)), None)
            if felt is not None:
                loss = m.events[felt].node
                m.events[felt] = ModeLeftOff(
                    left.switch, left.calls, left.function, left.other, loss, raises=True
                )
                m.events[:] = [event for event in m.events if not _feels(event, left.switch)]
                continue
            trains = next((event.node for event in m.events if isinstance(event, Backward)), None)
            if trains is not None and (left.other or not _is_switched_on(m.tree)):
                m.emit(ModeLeftOff(left.switch, left.calls, left.function, left.other, trains, raises=False))


def _feels(event: object, switch: ast.AST) -> bool:
    """Whether this backward has nothing to reach since the switch was off."""
    return (
        isinstance(event, Backward)
        and event.root.requires_grad == NO
        and any(cut.kind == "no_grad" and cut.node is switch for cut in event.cuts)
    )


def _is_switched_on(tree: ast.AST) -> bool:
    """Whether the program switches grad mode to anything but off: it turns it on for what trains."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(ast.Attribute(attr="set_grad_enabled") | ast.Name("set_grad_enabled"), args):
                off = len(args) == 1 and isinstance(args[0], ast.Constant) and args[0].value is False
                if not off:
                    return True
    return False
