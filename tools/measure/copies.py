"""Fresh copies of a call's arguments, and a flat view of what it returns."""

import copy
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.nn.utils.rnn import PackedSequence

Prepare = Callable[[torch.Tensor, str], torch.Tensor]  # (copy, path) -> what to pass instead
PARAMETERS, BUFFERS = "parameters", "buffers"


@dataclass(frozen=True, eq=False)
class Case:
    """One call of a public name with example arguments."""

    name: str
    call: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    names: tuple[str, ...]  # the parameter of each positional argument
    params: tuple[str, ...] = ()  # the positional parameters of the public name
    form: str = ""
    given: dict[str, str] = field(default_factory=dict)  # the kind of each argument, as a caller sees it
    promotes: bool = False  # whether a Python float is among the arguments


@dataclass
class Inputs:
    """Copies of a case's arguments and the tensors among them, each with its path (`tensors[0]`).

    A module's parameters and buffers count as well: `parameters[weight]`, `buffers[running_mean]`.
    """

    args: list[Any]
    kwargs: dict[str, Any]
    tensors: list[tuple[str, torch.Tensor]]


def parameter(path: str) -> str:
    """The parameter that a path begins with."""
    return path.split("[", maxsplit=1)[0]


def carries(tensor: torch.Tensor) -> bool:
    """Whether a tensor of this dtype can require grad."""
    return tensor.dtype.is_floating_point or tensor.dtype.is_complex


def transposed(tensor: torch.Tensor) -> torch.Tensor:
    """Same values and shape in another memory order, where there is one."""
    if tensor.dim() > 1 and min(tensor.shape[-2:]) > 1:
        return tensor.transpose(-1, -2).contiguous().transpose(-1, -2)
    return tensor


def spaced(tensor: torch.Tensor) -> torch.Tensor:
    """Same values and shape with gaps in memory, as every second column of a matrix has."""
    if not tensor.dim() or not tensor.numel():
        return tensor
    strides = tuple(2 * step for step in tensor.stride())
    return torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype).copy_(tensor)


class _SpacedClone(torch.autograd.Function):
    """A clone that keeps the gaps in memory."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor) -> torch.Tensor:
        return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype).copy_(tensor)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> torch.Tensor:
        return gradients[0]


def _cloned(tensor: torch.Tensor) -> torch.Tensor:
    made = tensor.clone()
    if tensor.layout is not torch.strided or made.stride() == tensor.stride():
        return made
    return _SpacedClone.apply(tensor)  # type: ignore[no-any-return, no-untyped-call]


def fresh(case: Case, grads: Collection[str] = (), prepare: Prepare | None = None) -> Inputs:
    """Copy the arguments; the tensors named in `grads` become non-leaf copies of leaves that require grad.

    A leaf that requires grad in the case itself stays a leaf: some calls treat leaves in their own way.
    """
    tensors: list[tuple[str, torch.Tensor]] = []

    def copied(tensor: Any, path: str) -> Any:
        if isinstance(tensor, torch.nn.Module):
            return copy_module(tensor)
        made = tensor.detach().clone()
        if tensor.layout is torch.strided and prepare is not None:
            made = prepare(made, path)
        if tensor.requires_grad:
            made = made.requires_grad_()
            if tensor.grad is not None:
                made.grad = tensor.grad.clone()
        elif path in grads:
            made = _cloned(made.requires_grad_())
        tensors.append((path, made))
        return made

    def copy_module(module: torch.nn.Module) -> torch.nn.Module:
        made = copy.deepcopy(module)
        for part in made.modules():  # a copy counts as changed, a clone does not
            part._buffers = {name: None if b is None else b.clone() for name, b in part._buffers.items()}
        for path, own in owned(made):
            if path.startswith(PARAMETERS):
                own.requires_grad_(path in grads)
            tensors.append((path, own))
        return made

    args = [walk(value, name, copied) for name, value in zip(case.names, case.args, strict=True)]
    kwargs = {name: walk(value, name, copied) for name, value in case.kwargs.items()}
    return Inputs(args, kwargs, tensors)


def owned(module: torch.nn.Module) -> list[tuple[str, torch.Tensor]]:
    """A module's parameters and buffers with their paths."""
    parameters = [(f"{PARAMETERS}[{name}]", tensor) for name, tensor in module.named_parameters()]
    return [*parameters, *((f"{BUFFERS}[{name}]", tensor) for name, tensor in module.named_buffers())]


def walk(value: Any, path: str, copy: Callable[[Any, str], Any]) -> Any:
    """A value whose tensors and modules are replaced by what `copy` makes of them and their paths."""
    if isinstance(value, (torch.Tensor, torch.nn.Module)):
        return copy(value, path)
    if type(value) in (list, tuple):
        return type(value)(walk(item, f"{path}[{i}]", copy) for i, item in enumerate(value))
    if type(value) is dict:
        return {key: walk(item, f"{path}[{key}]", copy) for key, item in value.items()}
    return value


def storage(tensor: torch.Tensor) -> int | None:
    """A key that two tensors share when they share memory."""
    try:
        held = tensor.untyped_storage()
        return held.data_ptr() if held.nbytes() else None
    except (RuntimeError, NotImplementedError):
        return None


def flatten(result: Any, path: str = "") -> list[tuple[str, torch.Tensor]]:
    """The tensors of a result with their paths: `0`, or `1.0` for `(out, (h, c))`."""
    if isinstance(result, torch.Tensor):
        return [(path or "0", result)]
    if isinstance(result, PackedSequence):
        return [((path + ".data").lstrip("."), result.data)]
    items = (
        result.items()
        if isinstance(result, dict)
        else enumerate(result)
        if isinstance(result, (list, tuple))
        else ()
    )
    found = []
    for key, item in items:
        found += flatten(item, f"{path}.{key}".lstrip("."))
    return found


def changed(inputs: Inputs) -> list[tuple[str, torch.Tensor]]:
    """The inputs that a call has edited in place, as outputs of their own: `=self`."""
    return [(f"={path}", tensor) for path, tensor in inputs.tensors if tensor._version]


def returned(result: Any) -> tuple[str, tuple[str, ...]]:
    """The kind of a result and, for a namedtuple, its field names."""
    kind = type(result)
    fields = getattr(kind, "_fields", None) or (
        kind.__match_args__ if hasattr(kind, "n_sequence_fields") else None
    )
    if fields and not isinstance(result, PackedSequence):
        return f"namedtuple:{kind.__name__}", tuple(fields)
    for types, word in (
        (torch.Tensor, "tensor"),
        (bool, "bool"),
        ((int, float, complex), "number"),
        (tuple, "tuple"),
        (list, "list"),
        (dict, "dict"),
        (str, "str"),
        (type(None), "none"),
    ):
        if isinstance(result, types) and not isinstance(result, PackedSequence):
            return word, ()
    return ("ndarray" if kind.__name__ == "ndarray" else "other"), ()
