"""Calls that go past `DistributedDataParallel` to the module in it: their backward exchanges no gradients."""

import ast

from gradvet.autograd.events_call import WrapperBypassed
from gradvet.autograd.judging.judge import Judge, ModuleCall
from gradvet.autograd.library.layers import members
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import GRAD
from gradvet.autograd.memory.values import Ref

_BY_HAND = "all_reduce"
"""What a program mentions that exchanges the gradients itself."""


def bypassed(m: Machine, judge: Judge) -> None:
    """Emit the calls of `wrapped.module` that a backward goes through, where no backward goes through the wrapper."""
    if not m.parallel or m.mentions(_BY_HAND):
        return
    wrapped = {part.address & ~1: at for at in m.parallel for _, part in members(m, Ref(at)).modules} | {
        at & ~1: at for at in m.parallel
    }
    past: dict[ast.Call, tuple[ModuleCall, int, tuple[ast.AST, ...]]] = {}
    for call in judge.modules:
        at = wrapped.get(call.module.address & ~1)
        if at is None or call.mode != GRAD or not _is_trained(judge, call):
            continue
        steps = (*call.calls, call.site)
        found = next((n for n, site in enumerate(steps) if _is_inner(site)), None)
        if found is None:
            return  # the wrapper itself is called as well, or what it wraps by a name of its own
        site = steps[found]
        if isinstance(site, ast.Call):
            past.setdefault(site, (call, at, steps[:found]))
    for site, (call, at, calls) in past.items():
        backward = next(iter(judge.losses_of.get(min(call.tensor.leaves, default=0), ())), None)
        m.emit(WrapperBypassed(site, calls, m.parallel[at], backward))


def _is_trained(judge: Judge, call: ModuleCall) -> bool:
    return any(at in judge.surely_used or at | 1 in judge.surely_used for at in call.nodes)


def _is_inner(site: ast.AST) -> bool:
    """Whether a call is one of `wrapped.module`, or of a method of it."""
    func = site.func if isinstance(site, ast.Call) else None
    while isinstance(func, ast.Attribute):
        if func.attr == "module":
            return True
        func = func.value
    return False
