"""The same call under other circumstances, of which only the outputs are looked at."""

import copy
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from tools.measure.copies import Case, Prepare, carries, fresh, spaced, transposed, walk
from tools.measure.execute import Run, attempt, run

Change = Callable[[torch.Tensor], torch.Tensor]


def varied(case: Case, grads: Collection[str], *, shapes: bool) -> Iterator[Run]:
    """Runs whose inputs `grads` require grad: other memory order, precision, dimensions."""
    yield from _runs(case, grads, _changing(transposed))
    if _gives_views(case, grads):  # gaps choose how it is viewed; kernels are not always made for them
        yield from _runs(case, grads, _changing(spaced))
    single = replaced(case, _to_single)
    yield from _runs(single, grads)
    with torch.backends.mkldnn.flags(enabled=False):  # its kernels are nodes of their own
        yield from _runs(single, grads)
    for numbers in _complex(case):
        yield from _runs(numbers, grads)
    with torch.autocast("cpu"):  # what it casts on the way has nodes as well
        yield from _runs(single, grads)
    for change in (_row, _batched, _pair) if shapes and not _indexed(case) else ():
        yield from _runs(case, grads, _changing(change))
        yield from _runs(single, grads, _changing(change))


def _gives_views(case: Case, grads: Collection[str]) -> bool:
    return any(tensor._is_view() for done in _runs(case, grads) for _, tensor in done.outs)


def untracked(case: Case, grads: Collection[str]) -> Iterator[Run]:
    """Runs that record nothing: no input requires grad, or grad mode is off."""
    for changed in (case, replaced(case, _to_single), *_complex(case)):
        yield from _runs(changed, ())
        with torch.no_grad():
            yield from _runs(changed, grads)


def replaced(case: Case, change: Change) -> Case:
    """The case with other tensors, its modules' included."""

    def one(value: Any, _: str) -> Any:
        if not isinstance(value, torch.nn.Module):
            return change(value)
        made = copy.deepcopy(value)
        return made._apply(change)  # type: ignore[no-untyped-call]

    args = tuple(walk(value, "", one) for value in case.args)
    return replace(case, args=args, kwargs={k: walk(v, "", one) for k, v in case.kwargs.items()})


def _runs(case: Case, grads: Collection[str], prepare: Prepare | None = None) -> Iterator[Run]:
    done = attempt(partial(run, case, grads, prepare))
    if isinstance(done, Run):
        yield done


def _changing(change: Change) -> Prepare:
    return lambda tensor, _: change(tensor)


def _indexed(case: Case) -> bool:
    """Whether there are whole numbers among the inputs: not every kernel checks that they stay within bounds."""
    return any(not carries(t) and t.dtype is not torch.bool for _, t in fresh(case).tensors)


def _to_single(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.dtype is not torch.float64:
        return tensor
    return tensor.detach().float().requires_grad_(tensor.requires_grad)


def _complex(case: Case) -> Iterator[Case]:
    """The case with complex numbers; convolutions of them are other nodes, and too rare to blur what is said."""
    if "conv" not in case.name.lower():
        yield replaced(case, _to_complex)


def _to_complex(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.dtype is not torch.float64 or tensor.layout is not torch.strided:
        return tensor
    return torch.complex(tensor.detach(), -tensor.detach()).requires_grad_(tensor.requires_grad)


def _row(tensor: torch.Tensor) -> torch.Tensor:
    return tensor[0].clone() if tensor.dim() and len(tensor) else tensor


def _batched(tensor: torch.Tensor) -> torch.Tensor:
    return tensor[None].clone()


def _pair(tensor: torch.Tensor) -> torch.Tensor:
    return torch.stack([tensor, tensor])
