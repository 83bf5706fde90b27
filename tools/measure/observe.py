"""Measures one call: what comes out of it, what autograd records, what backward needs afterwards."""

import re
from collections.abc import Collection
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tools.measure.copies import BUFFERS, Case, carries, fresh, parameter, returned, storage
from tools.measure.execute import Run, attempt, head, limited, run
from tools.measure.kinds import output_kinds
from tools.measure.probe import probe_backward, zero_gradients
from tools.measure.seen import Out, Seen
from tools.measure.vary import untracked, varied

MOST_INPUTS = 4
GRADLESS = re.compile("requires_grad=False|(does not|doesn't) require grad")


def observe(case: Case, *, brief: bool = False) -> Seen:
    """Everything that the table wants to know of one call, or if `brief` only what comes out of it.

    Raises what the plain call raises.
    """
    with limited():
        plain = attempt(lambda: run(case))
        needs_grad = isinstance(plain, Exception) and GRADLESS.search(str(plain)) is not None
        if needs_grad:
            plain = run(case, {p for p, t in fresh(case).tensors if carries(t)})
        if isinstance(plain, Exception):
            raise plain
        ret, fields = returned(plain.result)
        seen = Seen(case, ret, fields, tuple(p for p, _ in plain.outs), False)
        seen.needs_grad, seen.brief = needs_grad, brief
        tensors = plain.inputs.tensors
        candidates = [
            p for p, t in tensors if carries(t) and t.layout is torch.strided and parameter(p) != BUFFERS
        ]
        seen.inputs = {parameter(p) for p, _ in tensors}
        seen.mutates = {parameter(p) for p, t in tensors if t._version}
        seen.differentiable = bool(candidates) or any(t.requires_grad for _, t in tensors)
        if not brief:
            seen.first, seen.kinds = output_kinds(
                case, lambda prepare: run(case, (), prepare).outs, plain.outs
            )
        alone = _one_by_one(case, seen, candidates[:MOST_INPUTS])
        grads = {p for p in candidates if p in alone or p not in candidates[:MOST_INPUTS]}
        together = attempt(lambda: run(case, grads))
        if not isinstance(together, Run):
            grads = set(list(alone)[:1])
            together = run(case, grads)
        seen.outs = {p: output(together, t) for p, t in together.outs}
        seen.varied = [
            _outputs(seen, done) for done in (*alone.values(), *varied(case, grads, shapes=not brief))
        ]
        seen.untracked = [_outputs(seen, done) for done in untracked(case, grads)]
        if brief:
            return seen
        seen.no_grad_inside = _no_grad_inside(case, grads)
        seen.leaf_ok = bool(seen.mutates) and _allowed_on_leaves(case, seen.mutates)
        if _any_grad(together):
            probe_backward(case, seen, grads, [p for p, done in alone.items() if _any_grad(done)])
            zero_gradients(case, seen, grads)
        return seen


def _outputs(seen: Seen, done: Run) -> dict[str, Out]:
    """What came out, unless it is another kind of thing."""
    return {p: output(done, t) for p, t in done.outs} if returned(done.result)[0] == seen.ret else {}


def _one_by_one(case: Case, seen: Seen, candidates: list[str]) -> dict[str, Run]:
    """Run with one input at a time requiring grad; those that refuse are noted and left out."""
    found: dict[str, Run] = {}
    for path in candidates:
        name = parameter(path)
        done = attempt(lambda: run(case, {path}))  # noqa: B023  (called at once)
        if isinstance(done, Run):
            found[path] = done
            seen.grad_from[name] = seen.grad_from.get(name, False) or _any_grad(done)
        else:
            seen.raises[name] = head(done)
    return found


def _any_grad(done: Run) -> bool:
    return any(t.requires_grad for _, t in done.outs)


def output(done: Run, tensor: torch.Tensor) -> Out:
    """How one output of a run stands to its inputs and to autograd."""
    key, origin = storage(tensor), None
    for path, given in done.inputs.tensors:
        if given is tensor or (key is not None and storage(given) == key):
            origin = parameter(path)
            break
    same = any(given is tensor for _, given in done.inputs.tensors)
    node, inside = tensor.grad_fn, not same and tensor._is_view()
    return Out(
        grad=tensor.requires_grad,
        same=same,
        share=origin is not None,
        view=origin is not None and inside,
        inner=origin is None and inside,
        of=origin,
        fn=type(node).__name__
        if node is not None and (not same or "Clone" not in type(node).__name__)
        else None,
        leaf=tensor.requires_grad and node is None and not same,
        empty=not tensor.numel(),
        zero=None,
    )


def _allowed_on_leaves(case: Case, mutated: Collection[str]) -> bool:
    inputs = fresh(case)
    edited = [
        t for p, t in inputs.tensors if parameter(p) in mutated and carries(t) and parameter(p) != BUFFERS
    ]
    if not edited:
        return False
    for tensor in edited:
        tensor.requires_grad_()
    return not isinstance(attempt(lambda: case.call(*inputs.args, **inputs.kwargs)), Exception)


def _no_grad_inside(case: Case, grads: Collection[str]) -> bool:
    modes: list[bool] = []

    class Spy(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            modes.append(torch.is_grad_enabled())
            return func(*args, **(kwargs or {}))

    inputs = fresh(case, grads)
    torch.manual_seed(0)

    def spied() -> None:
        with Spy():  # type: ignore[no-untyped-call]
            case.call(*inputs.args, **inputs.kwargs)

    attempt(spied)
    return bool(modes) and not any(modes)
