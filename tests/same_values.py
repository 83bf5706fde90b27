"""Compares what two programs hold at their end: values, and the gradients that have arrived."""

import math
from collections import deque
from types import FunctionType, ModuleType
from typing import Any

import torch
from torch import nn

_PLAIN = (str, bytes, bool, type(None))
_SEQUENCES = (list, tuple, deque)
_SKIPPED = (type, ModuleType, FunctionType)


def differences(ours: dict[str, Any], theirs: dict[str, Any]) -> list[str]:
    """Where the two namespaces hold other values, in words; names that only one of them has do not count."""
    names = sorted(name for name in ours.keys() & theirs.keys() if not name.startswith("__"))
    return [place for name in names for place in _differ(name, ours[name], theirs[name], set())]


def _differ(where: str, a: Any, b: Any, visited: set[int]) -> list[str]:
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return _tensors_differ(where, a, b)
    if (
        isinstance(a, torch.Tensor)
        or isinstance(b, torch.Tensor)
        or type(a).__qualname__ != type(b).__qualname__
    ):
        return [f"{where} is of another type"]
    if isinstance(a, _PLAIN):
        return [] if a == b else [f"{where} differs"]
    if isinstance(a, int | float):
        return [] if a == b or (math.isnan(a) and math.isnan(b)) else [f"{where} differs"]
    if isinstance(a, _SKIPPED) or id(a) in visited:
        return []
    visited.add(id(a))
    return [place for key, x, y in _children(a, b) for place in _differ(f"{where}{key}", x, y, visited)]


def _tensors_differ(where: str, a: torch.Tensor, b: torch.Tensor) -> list[str]:
    if a.shape != b.shape or a.dtype != b.dtype or not torch.equal(a.detach(), b.detach()):
        return [f"{where} differs"]
    if not (a.is_leaf and b.is_leaf) or (a.grad is None and b.grad is None):
        return []
    if a.grad is None or b.grad is None:
        return [f"{where}.grad is there in only one"]
    return [] if torch.equal(a.grad, b.grad) else [f"{where}.grad differs"]


def _children(a: Any, b: Any) -> list[tuple[str, Any, Any]]:
    """What two things of one type hold, pairwise, each with how it is reached."""
    if isinstance(a, _SEQUENCES):
        lengths = [(".length", len(a), len(b))]
        return [*lengths, *((f"[{i}]", x, y) for i, (x, y) in enumerate(zip(a, b, strict=False)))]
    if isinstance(a, dict):
        return [(f"[{key!r}]", a[key], b.get(key)) for key in a if isinstance(key, str | int)]
    if isinstance(a, nn.Module):
        named = [*a.named_parameters(), *a.named_buffers()]
        others = dict([*b.named_parameters(), *b.named_buffers()])
        return [(f".{name}", x, others.get(name)) for name, x in named] + _attributes(a, b)
    return _attributes(a, b)


def _attributes(a: Any, b: Any) -> list[tuple[str, Any, Any]]:
    held = getattr(a, "__dict__", {})
    return [(f".{name}", held[name], getattr(b, name, None)) for name in held if not name.startswith("_")]
