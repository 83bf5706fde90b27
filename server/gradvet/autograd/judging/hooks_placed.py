"""Hooks that each iteration puts on a module that outlives it: one more each time, and all of them run."""

import ast

from gradvet.autograd.events_call import HookPiled, HookStacked
from gradvet.autograd.library.hooks import placed_key
from gradvet.autograd.machine import Loop, Machine
from gradvet.autograd.memory.domain import NO_GRAD
from gradvet.autograd.memory.values import TRUE, Ref


def end_of_pass(m: Machine, loop: Loop) -> None:
    """Tell the hooks that this iteration has put on a module which it then ran, and has not taken away."""
    for (module, handle), (order, site, calls) in m.hooks.placed.items():
        made = m.site_of(module)
        if (
            handle in loop.allocs
            and module not in loop.allocs
            and not module & 1
            and m.hooks.ran.get(module, 0) > order
            and m.cells.get(placed_key(module, handle)) == TRUE
            and isinstance(made, ast.Call)
        ):
            m.emit(HookPiled(site, calls, made, loop.node))


def added(m: Machine, site: ast.AST, holder: Ref) -> None:
    """Something was added to a container: whether by the hook of a forward, in a loop, while grad mode is off."""
    loops = [loop for loop in m.loops if not {holder.address & ~1} & (loop.allocs | loop.born)]
    if m.hooks.forwards and m.mode == NO_GRAD and loops:
        m.hooks.stacked.setdefault(holder.address & ~1, (site, m.where(), m.mode_place()))


def conclude(m: Machine) -> None:
    """Tell of what such hooks add for a backward to take out again: while grad mode is off none comes."""
    told: set[ast.AST] = set()
    for address, (site, calls, mode) in m.hooks.stacked.items():
        if m.hooks.taken.get(address) == {True} and site not in told:
            told.add(site)
            m.emit(HookStacked(site, calls, mode))
