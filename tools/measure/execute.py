"""Runs a case on fresh copies of its arguments, forward and backward."""

import signal
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from tools.measure.copies import Case, Inputs, Prepare, changed, flatten, fresh

SECONDS = 60
T = TypeVar("T")


@dataclass
class Run:
    """One execution: its inputs and its outputs."""

    inputs: Inputs
    result: Any
    outs: list[tuple[str, torch.Tensor]]


def head(error: BaseException) -> str:
    """The first sentence of an error, short enough for a table."""
    lines = str(error).splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"[:110].rstrip()


@contextmanager
def limited(seconds: int = SECONDS) -> Iterator[None]:
    """Quiet, on one random seed, and stopped after a while."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"no answer in {seconds} s")

    old = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, old)
        torch.set_grad_enabled(True)


def run(case: Case, grads: Collection[str] = (), prepare: Prepare | None = None, seed: int = 0) -> Run:
    """Call it on fresh copies, from a fixed random state."""
    inputs = fresh(case, grads, prepare)
    torch.manual_seed(seed)
    result = case.call(*inputs.args, **inputs.kwargs)
    return Run(inputs, result, flatten(result) or changed(inputs))


def backward(outs: list[tuple[str, torch.Tensor]]) -> None:
    """Backward through every output that requires grad, leaving the graph freed."""
    unique = {id(t): t for _, t in outs if t.requires_grad and t.layout is torch.strided}
    torch.autograd.backward(list(unique.values()), [torch.ones_like(t) for t in unique.values()])


def attempt(make: Callable[[], T]) -> T | Exception:
    """The result, or the error that came instead."""
    try:
        return make()
    except TimeoutError:
        raise
    except Exception as error:
        return error
