"""The conversions section: what the ways out of autograd do to a tensor that requires grad."""

import contextlib
import copy
import io
import math
import pickle
import random
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from tools.measure.execute import head
from tools.measure.fold import Record

LIST = Path(__file__).with_name("conversions.txt")
SCOPE: dict[str, Any] = {
    "torch": torch, "nn": nn, "F": nn.functional, "np": np,
    "io": io, "math": math, "copy": copy, "pickle": pickle, "random": random,
}  # fmt: skip
CONTEXTS = {
    "nonleaf": (False, True),
    "leaf": (True, True),
    "nonleaf, no_grad": (False, False),
    "leaf, no_grad": (True, False),
}


def expressions() -> dict[str, str]:
    """Each expression over `t`, with `scalar` or `vector` for what `t` is."""
    found = {}
    for line in LIST.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            shape, _, expression = line.partition(" ")
            found[expression] = shape
    return found


def measure(expression: str) -> Record:
    """What the expression does with a non-leaf in grad mode, and where the other contexts differ from it."""
    shape = expressions()[expression]
    rows = {
        context: _one(expression, shape, leaf=leaf, grad=grad) for context, (leaf, grad) in CONTEXTS.items()
    }
    base = rows["nonleaf"]
    return {context: row for context, row in rows.items() if context == "nonleaf" or row != base}


def _one(expression: str, shape: str, *, leaf: bool, grad: bool) -> Record:
    torch.manual_seed(0)
    random.seed(0)
    torch.set_warn_always(True)
    start = torch.tensor(0.7) if shape == "scalar" else torch.tensor([0.7, -0.2, 0.4])
    t = start.requires_grad_() if leaf else start.requires_grad_() * 1
    row: Record = {}
    with warnings.catch_warnings(record=True) as caught, torch.set_grad_enabled(grad):
        warnings.simplefilter("always")
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                row |= _told(eval(expression, SCOPE | {"t": t}), t)  # noqa: S307
        except Exception as error:
            row["raises"] = head(error)
    torch.set_warn_always(False)
    said = sorted({str(w.message).splitlines()[0][:100] for w in caught if w.category is not ResourceWarning})
    return row | ({"warns": said} if said else {})


def _told(value: Any, t: torch.Tensor) -> Record:
    row: Record = {} if type(value) is torch.Tensor else {"type": type(value).__name__}
    if isinstance(value, np.ndarray):
        row["shares"] = value.__array_interface__["data"][0] == t.data_ptr()
    elements = value if isinstance(value, (list, tuple)) and value else [value]
    if not isinstance(elements[0], torch.Tensor):
        return row
    first = elements[0]
    row["requires_grad"] = first.requires_grad
    if first.is_leaf is first.requires_grad:
        row["leaf"] = first.is_leaf  # otherwise it follows: what requires grad came from an operation
    shared = first.numel() > 0 and first.untyped_storage().data_ptr() == t.untyped_storage().data_ptr()
    row |= {"shares": True} if shared else {}
    row |= {"same": True} if first is t else {}
    row |= {"fn": type(first.grad_fn).__name__} if first.grad_fn is not None else {}
    return row
