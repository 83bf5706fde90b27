"""Parameter names: those of a callable, and those that the arguments of one call go to."""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import torch
import torch.overrides

Overload = tuple[tuple[str, str], ...]  # (name, type) of each positional parameter
STAR = "*"
KINDS: Mapping[str, tuple[type, ...]] = {
    "tensor": (torch.Tensor,),
    "number": (int, float, complex),
    "str": (str,),
    "list": (list, tuple),
}


def parameters(name: str) -> tuple[str, ...]:
    """The positional parameters in order; `dim|other` where overloads disagree, `*tensors` for the rest."""
    from tools.measure.names import resolve

    value = resolve(name)
    if name.startswith("torch.Tensor.") and not callable(value):
        return ("self",)  # a property
    fake = _override(value)
    starred = fake if any(p.startswith(STAR) for p in fake) else ()
    found = _python(value) or starred or _schemas_merged(name) or fake or _documented(value)
    if name.startswith("torch.Tensor.") and callable(value):
        found = ("self", *(p for p in found if p != "self")) if "self" in found else ("self", *found[1:])
    return found


def argument_names(name: str, args: Sequence[Any]) -> list[str]:
    """The parameter that each positional argument of a call goes to."""
    public = parameters(name)
    method = name.startswith("torch.Tensor.")
    rigid = _is_python(name) or any(p.startswith(STAR) for p in public)
    for overload in [] if rigid else _overloads(name):
        if _fits(overload, args):
            spoken = [n for n, _ in overload]
            if method and "self" in spoken:  # `x.where(condition, y)` is `where(condition, x, y)`
                spoken = ["self", *(n for n in spoken if n != "self")]
            names = [_spoken(n, name, i) for i, n in enumerate(spoken)]
            return (names + names[-1:] * len(args))[: len(args)]
    names = []
    for i in range(len(args)):
        if i < len(public) and not public[i].startswith(STAR):
            names.append("self" if method and i == 0 else public[i].split("|")[0])
        elif public and public[-1].startswith(STAR):
            names.append(public[-1][1:])
        else:
            names.append(f"arg{i}")
    return names


def returns_list(name: str) -> bool:
    """Whether torch's schema of a name gives a list of tensors, however many there are in one call."""
    return any(str(r.type) == "List[Tensor]" for s in _schemas(name) for r in s.returns)


def kind_of(value: Any) -> str:
    """What a caller can see of an argument: none, true, false, one of `KINDS`, or other."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    return next((word for word, kinds in KINDS.items() if isinstance(value, kinds)), "other")


def given(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, str]:
    """The parameters that a call names or fills, with the kind of each argument."""
    positions = parameters(name)
    found = {}
    for i, value in enumerate(args):
        if i < len(positions):
            found[positions[i].lstrip(STAR).split("|")[0]] = kind_of(value)
    return found | {key: kind_of(value) for key, value in kwargs.items()}


def _is_python(name: str) -> bool:
    from tools.measure.names import resolve

    return bool(_python(resolve(name)))


def _positional(call: Callable[..., Any]) -> tuple[str, ...]:
    found = []
    for p in inspect.signature(call).parameters.values():
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            found.append(p.name)
        elif p.kind is p.VAR_POSITIONAL:
            found.append(STAR + p.name)
    return tuple(found)


def _python(value: object) -> tuple[str, ...]:
    if not inspect.isfunction(value):
        return ()
    value = _dispatched(value)
    try:
        names = _positional(value)
    except (TypeError, ValueError):
        return ()
    return () if names in ((), ("*args",)) else names


def _dispatched(value: Callable[..., Any]) -> Callable[..., Any]:
    """`F.max_pool2d` chooses between two functions by `return_indices`: take the one that lists it."""
    cells = [cell.cell_contents for cell in value.__closure__ or ()]
    targets = [c for c in cells if inspect.isfunction(c)]
    hidden = "arg_name" in value.__code__.co_freevars and bool(targets)
    return max(targets, key=lambda f: len(inspect.signature(f).parameters)) if hidden else value


@cache
def _overrides() -> Mapping[Any, Callable[..., Any]]:
    return torch.overrides.get_testing_overrides()


def _override(value: object) -> tuple[str, ...]:
    try:
        fake = _overrides().get(value)
    except TypeError:
        return ()
    return _positional(fake) if fake is not None else ()


def _documented(value: object) -> tuple[str, ...]:
    """The parameters in the first line of a docstring: `from_numpy(ndarray) -> Tensor`."""
    first = ((getattr(value, "__doc__", None) or "").strip().splitlines() or [""])[0]
    found = re.match(r"[\w.]+\(([^()]*)\)", first)
    if found is None:
        return ()
    names = [p.split("=")[0].strip() for p in found.group(1).split(", *,")[0].split(",")]
    return tuple(n for n in names if n.lstrip(STAR).isidentifier())


@cache
def _overloads(name: str) -> tuple[Overload, ...]:
    """The positional parameters of torch's schemas, longest first, without `out=` and named dimensions."""
    found: list[Overload] = []
    for schema in _schemas(name):
        listed = [(a.name, str(a.type)) for a in schema.arguments if not a.kwarg_only]
        writes = any(
            a.kwarg_only and a.alias_info is not None and a.alias_info.is_write for a in schema.arguments
        )
        scripted = not any("Tensor" in kind for _, kind in listed) and bool(listed)
        if not writes and not scripted and not any("str" in kind and n == "dim" for n, kind in listed):
            found.append(tuple(listed))
    return tuple(sorted(found, key=len, reverse=True))


def _schemas(name: str) -> list[Any]:
    space, _, base = name.rpartition(".")
    prefix = {"torch.linalg": "linalg_", "torch.fft": "fft_", "torch.special": "special_"}.get(space, "")
    found: list[Any] = torch._C._jit_get_schemas_for_operator(f"aten::{prefix}{base}")
    return found


def _spoken(parameter: str, name: str, position: int) -> str:
    """`self` of a schema is `input` in a function and `self` in a method."""
    if name.startswith("torch.Tensor."):
        return "self" if position == 0 and parameter == "input" else parameter
    return "input" if parameter == "self" else parameter


def _schemas_merged(name: str) -> tuple[str, ...]:
    overloads = _overloads(name)
    if not overloads:
        return ()
    merged = []
    for i in range(len(overloads[0])):
        at = dict.fromkeys(_spoken(o[i][0], name, i) for o in overloads if i < len(o))
        merged.append("|".join(at))
    return tuple(merged)


def _fits(overload: Overload, args: Sequence[Any]) -> bool:
    if len(args) > len(overload) and not (overload and "int[]" in overload[-1][1].lower()):
        return False
    for (_, wanted), value in zip(overload, args, strict=False):
        tensors = isinstance(value, (list, tuple)) and any(isinstance(v, torch.Tensor) for v in value)
        if (
            isinstance(value, torch.Tensor) != (wanted in ("Tensor", "Optional[Tensor]"))
            and value is not None
        ):
            return False
        if tensors != ("List[" in wanted and "Tensor" in wanted):
            return False
        if isinstance(value, str) and "str" not in wanted:
            return False
    return True
