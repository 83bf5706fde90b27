"""Performs one job under torch: the program in its own namespace, the proof after it, another to compare."""

import builtins
import contextlib
import io
import random
import sys
import traceback
import warnings
from collections.abc import Iterator
from typing import Any

import torch

from same_values import differences

PROGRAM = "<program>"
PROOF = "<proof>"

torch.set_num_threads(1)
torch.set_warn_always(True)


def perform(job: dict[str, str]) -> dict[str, Any]:
    """What the near side's `Outcome` holds, as plain data."""
    seen: list[tuple[int, bool, bool, str | None]] = []
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        namespace = _fresh(seen)
        error = _run(job["program"], PROGRAM, namespace)
        proof = _prove(job["proof"], namespace) if job["proof"] else None
        unlike: list[str] = []
        if job["like"] and not error:
            other = _fresh([])
            _run(job["like"], PROGRAM, other)
            unlike = differences(namespace, other)
    return {
        "error": error,
        "proof": proof,
        "seen": seen,
        "warnings": [f"{warning.category.__name__}: {warning.message}" for warning in warned],
        "differences": unlike,
    }


def _fresh(seen: list[tuple[int, bool, bool, str | None]]) -> dict[str, Any]:
    """A namespace for a program, with torch as it is at the start."""
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)
    torch.manual_seed(0)
    random.seed(0)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(0)

    def reveal_grad(value: torch.Tensor) -> None:
        """Record what autograd holds for a tensor, and on which line."""
        row = sys._getframe(1).f_lineno
        name = type(value.grad_fn).__name__ if value.grad_fn is not None else None
        seen.append((row, value.requires_grad, value.is_leaf, name))

    return {"__name__": "__main__", "__builtins__": vars(builtins), "reveal_grad": reveal_grad}


def _run(text: str, name: str, namespace: dict[str, Any]) -> dict[str, Any] | None:
    """Execute a text; its exception, if there is one."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(text, name, "exec", dont_inherit=True), namespace)  # noqa: S102  to run it is the point
    except Exception as error:
        rows = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == name]
        return {"type": type(error).__name__, "message": str(error), "row": rows[-1] if rows else None}
    return None


def _prove(text: str, namespace: dict[str, Any]) -> dict[str, Any] | None:
    """Execute a proof where the program left off, with the two words that proofs may use."""
    torch.set_grad_enabled(True)
    return _run(text, PROOF, namespace | {"nodes": nodes, "raises": raises})


def nodes(*tensors: torch.Tensor) -> int:
    """How many nodes the graphs of the tensors hold; each counts once."""
    found: set[Any] = set()
    waiting = [tensor.grad_fn for tensor in tensors]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in found:
            found.add(node)
            waiting += [following for following, _ in node.next_functions]
    return len(found)


@contextlib.contextmanager
def raises(kind: type[Exception], text: str = "") -> Iterator[None]:
    """The block must raise such an exception, with the text in its message."""
    try:
        yield
    except kind as error:
        if text not in str(error):
            raise AssertionError(f"{error!r} does not say {text!r}") from error
    else:
        raise AssertionError(f"{kind.__name__} was not raised")
