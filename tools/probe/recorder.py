"""Takes a snapshot of every value that passes by. Keeps words and flags, never a tensor."""

from collections.abc import Sequence
from typing import TypeVar

import torch
from torch._subclasses.fake_tensor import FakeTensor

from tools.probe.observed import Range, Seen, State

T = TypeVar("T")


class Recorder:
    """Collects what each numbered expression holds."""

    def __init__(self, places: Sequence[Range]) -> None:
        """`places[number]` is where the expression with that number stands."""
        self._places = places
        self._states: list[set[State]] = [set() for _ in places]
        self._others: list[set[str]] = [set() for _ in places]
        self._visits = [0] * len(places)

    def see(self, number: int, value: T) -> T:
        """Note what a value holds right now, and hand it on; what a compiler traces with is no tensor of the program."""
        if isinstance(value, FakeTensor):
            return value
        self._visits[number] += 1
        if isinstance(value, torch.Tensor):
            self._states[number].add(snapshot(value))
        else:
            self._others[number].add(type(value).__name__)
        return value

    def seen(self) -> dict[Range, Seen]:
        """What was noted so far; a program may go on meanwhile in another thread."""
        return {
            place: Seen(frozenset(tuple(states)), frozenset(tuple(others)), visits)
            for place, states, others, visits in zip(
                self._places, self._states, self._others, self._visits, strict=True
            )
            if states or others
        }


def snapshot(tensor: torch.Tensor) -> State:
    """What autograd holds for a tensor at this moment."""
    # Subclasses and torch function modes of the program must not notice that they are looked at.
    with torch._C.DisableTorchFunction():
        requires_grad, inference = tensor.requires_grad, tensor.is_inference()
        view = bool(tensor._is_view())
        mode = grad_mode()
        try:
            grad_fn, leaf = _graph(tensor) if mode != "inference" else _graph_outside_inference_mode(tensor)
        except RuntimeError:
            return State(requires_grad, False, None, view, inference, mode, broken=True)
    name = None if grad_fn is None else type(grad_fn).__name__
    return State(requires_grad, leaf, name, view, inference, mode)


def _graph(tensor: torch.Tensor) -> tuple[object, bool]:
    return tensor.grad_fn, tensor.is_leaf


def _graph_outside_inference_mode(tensor: torch.Tensor) -> tuple[object, bool]:
    """The same, where that changes nothing.

    In inference mode, who asks a view that was changed for its grad_fn fails, and leaves it without one.
    """
    with torch.inference_mode(mode=False):
        return _graph(tensor)


def grad_mode() -> str:
    """The grad mode of this moment and thread."""
    if torch.is_inference_mode_enabled():
        return "inference"
    return "grad" if torch.is_grad_enabled() else "no_grad"
