"""How the dtype kind of an output follows from that of the inputs."""

from collections.abc import Callable, Iterable
from functools import partial

import torch

from tools.measure.copies import Case, Prepare, carries, fresh, parameter

Outs = list[tuple[str, torch.Tensor]]
CASTS = {"int": torch.int64, "bool": torch.bool, "complex": torch.complex128}


def kind(tensor: torch.Tensor) -> str:
    """`float`, `complex`, `bool` or `int`."""
    if tensor.dtype.is_complex:
        return "complex"
    return "float" if tensor.dtype.is_floating_point else "bool" if tensor.dtype is torch.bool else "int"


def output_kinds(
    case: Case, again: Callable[[Prepare], Outs], plain: Outs
) -> tuple[str, dict[str, dict[str, str]]]:
    """The kind of the first tensor, and per scenario the kind of each output.

    Scenarios: the inputs as they are, every float tensor as int, bool or complex, and `mixed`: the first
    as int beside others that stay float.
    """
    tensors = sorted(fresh(case).tensors, key=lambda given: _position(case, given[0]))
    first = kind(tensors[0][1]) if tensors else ""
    found = {"plain": {path: kind(t) for path, t in plain}}
    floats = [path for path, t in tensors if kind(t) == "float"]
    if not floats or first == "complex":
        return first, found
    for word, dtype in CASTS.items():
        scenario = "mixed" if case.promotes and word != "complex" else word  # a Python float stays a float
        found[scenario] = _cast(again, partial(_floats_as, dtype))
    if len(floats) > 1 and not found.get("mixed"):
        found["mixed"] = _cast(again, lambda t, path: t.to(torch.int64) if path == floats[0] else t)
    return first, {word: kinds for word, kinds in found.items() if kinds}


def _position(case: Case, path: str) -> int:
    """Where the parameter of a path stands, in the order of the call."""
    names = [name.lstrip("*").split("|")[0] for name in case.params]
    name = parameter(path)
    return names.index(name) if name in names else len(names)


def _floats_as(dtype: torch.dtype, tensor: torch.Tensor, path: str) -> torch.Tensor:
    return tensor.to(dtype) if carries(tensor) else tensor


def _cast(again: Callable[[Prepare], Outs], prepare: Prepare) -> dict[str, str]:
    try:
        return {path: kind(t) for path, t in again(prepare)}
    except TimeoutError:
        raise
    except Exception:
        return {}


def rule(path: str, seen: Iterable[tuple[str, dict[str, dict[str, str]]]]) -> str:
    """One word for how an output's kind follows from the inputs, or `maybe`."""
    firsts: set[str] = set()
    by: dict[str, set[str]] = {}
    alike = True
    for first, scenarios in seen:
        firsts.add(first)
        alike = alike and scenarios.get("plain", {}).get(path, first) == first
        for word, kinds in scenarios.items():
            if path in kinds:
                by.setdefault(word, set()).add(kinds[path])
    plain, as_int = by.get("plain", set()), by.get("int", set())
    if len(plain) != 1:
        return "same" if firsts and alike else "maybe"
    (word,) = plain
    mixed = by.get("mixed", set())
    if word != "float":
        others = set().union(*by.values())
        return word if others == plain else "same" if firsts == plain else "maybe"
    if not as_int and mixed:
        return "promote" if mixed == {"float"} else "maybe"
    if as_int <= {"float"}:
        return "float" if as_int or firsts != {"float"} else "same"
    if as_int == {"int"}:
        return "promote" if mixed == {"float"} or firsts != {"float"} else "same"
    return "maybe"
