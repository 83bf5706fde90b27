"""Experiments on backward: which operands it reads again, whether it runs twice, whether it gives zeros."""

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial

import torch
from torch.autograd.graph import increment_version, saved_tensors_hooks

from tools.measure.copies import Case, parameter, storage
from tools.measure.execute import Run, attempt, backward, run
from tools.measure.seen import Seen

MOST_OPERANDS, MOST_OUTPUTS, SEEDS = 8, 4, 4
MODIFIED, FREED = "modified by an inplace operation", "backward through the graph a second time"


def probe_backward(case: Case, seen: Seen, grads: Collection[str], alone: list[str]) -> None:
    """Change each operand after the call, one at a time, and see whether backward notices."""
    for source in alone or [""]:
        only = {source} if source else grads
        needer = parameter(source)
        shape = run(case, only)
        roots = _roots(case, only, len(shape.outs))
        seen.no_backward[needer] = seen.no_backward.get(needer, False) or not roots
        if not roots:
            continue
        seen.probed = True
        for i, (path, tensor) in enumerate(shape.inputs.tensors[:MOST_OPERANDS]):
            if tensor.numel() and _notices(case, only, roots, partial(_input, i)):
                seen.saves_in.setdefault(parameter(path), set()).add(needer)
        for i, (path, tensor) in enumerate(shape.outs[:MOST_OUTPUTS]):
            if tensor.numel() and _notices(case, only, roots, partial(_out, i)):
                seen.saves_out.setdefault(path, set()).add(needer)
    if seen.probed:
        seen.hidden = _keeps_hidden(case, grads)
        done = run(case, grads)
        roots = _roots(case, grads, len(done.outs))
        again = _some(done, roots)
        if roots and attempt(lambda: backward(again)) is None:
            error = attempt(lambda: backward(again))
            seen.twice = FREED in str(error) if isinstance(error, Exception) else False
        seen.flat = _is_flat(run(case, grads), roots)


def _roots(case: Case, grads: Collection[str], count: int) -> list[int]:
    """The outputs to go back from: all, or where that is refused those that can be gone back from alone."""
    every = list(range(count))
    choices = [every, *([i] for i in every[:MOST_OUTPUTS] if len(every) > 1)]
    return next((roots for roots in choices if _goes_back(run(case, grads), roots)), [])


def _goes_back(done: Run, roots: list[int]) -> bool:
    outs = _some(done, roots)
    return any(t.requires_grad for _, t in outs) and attempt(lambda: backward(outs)) is None


def _some(done: Run, roots: list[int]) -> list[tuple[str, torch.Tensor]]:
    return [done.outs[i] for i in roots]


def _input(index: int, done: Run) -> torch.Tensor:
    return done.inputs.tensors[index][1]


def _out(index: int, done: Run) -> torch.Tensor:
    return done.outs[index][1]


def _keeps_hidden(case: Case, grads: Collection[str]) -> bool:
    kept: list[torch.Tensor] = []

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept.append(tensor.detach())
        return kept[-1]

    def hooked() -> Run:
        with saved_tensors_hooks(keep, lambda tensor: tensor):
            return run(case, grads)

    done = attempt(hooked)
    if isinstance(done, Exception):
        return False
    seen = {storage(t) for _, t in (*done.inputs.tensors, *done.outs)}
    return any(storage(t) not in seen for t in kept if t.numel())


def _notices(
    case: Case, grads: Collection[str], roots: list[int], operand: Callable[[Run], torch.Tensor]
) -> bool:
    done = run(case, grads)
    increment_version(operand(done))
    error = attempt(lambda: backward(_some(done, roots)))
    return isinstance(error, Exception) and MODIFIED in str(error)


def _is_flat(done: Run, roots: list[int]) -> bool | None:
    outs = [t for _, t in _some(done, roots) if t.requires_grad and t.layout is torch.strided]
    leaves = [leaf for t in outs for leaf in _leaves(t)]
    weights = [torch.ones_like(t.detach()) for t in outs]
    taken = attempt(lambda: torch.autograd.grad(outs, leaves, weights, create_graph=True, allow_unused=True))
    if isinstance(taken, Exception) or not leaves:
        return None
    return not any(g is not None and g.requires_grad for g in taken)


def zero_gradients(case: Case, seen: Seen, grads: Collection[str]) -> None:
    """Mark the outputs whose gradients are all zero, under several random states."""
    for path, before in list(seen.outs.items()):
        if before.grad and not before.leaf and not before.empty:
            zero = _is_zero(run(case, grads), path)
            for seed in range(1, SEEDS if zero else 0):
                zero = zero and _is_zero(run(case, grads, seed=seed), path) is not False
            seen.outs[path] = replace(before, zero=zero)


def _is_zero(done: Run, path: str) -> bool | None:
    out = dict(done.outs).get(path)
    if out is None or not out.requires_grad or out.layout is not torch.strided:
        return None
    leaves = [t for t in _leaves(out) if t.numel()]
    weights = torch.randn_like(out.detach())
    taken = attempt(lambda: torch.autograd.grad(out, leaves, weights, allow_unused=True))
    if isinstance(taken, Exception) or not leaves:
        return None
    return not any(g is not None and bool((g != 0).any()) for g in taken)


def _leaves(tensor: torch.Tensor) -> list[torch.Tensor]:
    """The leaves behind a tensor."""
    found, todo, met = [], [tensor.grad_fn], set()
    while todo:
        node = todo.pop()
        if node is None or node in met:
            continue
        met.add(node)
        if hasattr(node, "variable"):
            found.append(node.variable)
        todo += [n for n, _ in node.next_functions]
    return found
