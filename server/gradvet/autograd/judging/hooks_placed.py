"""Hooks that each iteration puts on a module that outlives it: one more each time, and all of them run."""

import ast

from gradvet.autograd.events_call import HookPiled
from gradvet.autograd.library.hooks import placed_key
from gradvet.autograd.machine import Loop, Machine
from gradvet.autograd.memory.values import TRUE


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
