"""The public names of torch that the table speaks of, and what they stand for."""

import importlib
import inspect
from functools import cache
from types import ModuleType

import torch

NAMESPACES = (
    "torch",
    "torch.Tensor",
    "torch.nn.functional",
    "torch.linalg",
    "torch.fft",
    "torch.special",
    "torch.nn.init",
    "torch.nn.utils",
    "torch.nn.utils.rnn",
)
# Python's own protocol, which says nothing of tensors.
PROTOCOL = frozenset(
    """__annotations__ __class__ __delattr__ __dict__ __doc__ __getattribute__ __getstate__ __init__
    __init_subclass__ __module__ __new__ __reduce__ __setattr__ __setstate__ __sizeof__ __subclasshook__
    __weakref__ __torch_dispatch__ __torch_function__ __dir__ __array_priority__ __cuda_array_interface__
    __dlpack_c_exchange_api__ __dlpack_device__ __array_wrap__ __delitem__ __static_attributes__
    __firstlineno__ __slotnames__""".split()  # noqa: SIM905
)


@cache
def resolve(name: str) -> object | None:
    """What a qualified name stands for: `torch.Tensor.T` gives the descriptor."""
    root, *parts = name.split(".")
    value: object = torch if root == "torch" else importlib.import_module(root)
    for part in parts:
        try:
            value = inspect.getattr_static(value, part) if value is torch.Tensor else getattr(value, part)
        except AttributeError:
            return getattr(value, part, None) if value is torch.Tensor else None
    return value


def area(name: str) -> str:
    """The namespace of a name: `torch.linalg` for `torch.linalg.inv`."""
    return name.rpartition(".")[0]


def public_names(namespace: str) -> list[str]:
    """Every public callable of a namespace; for `torch.Tensor` its dunders and properties as well."""
    owner = resolve(namespace)
    found = []
    for name in sorted(set(dir(owner))):
        qualified = f"{namespace}.{name}"
        value = getattr(owner, name, None)
        if namespace == "torch.Tensor":
            if name not in PROTOCOL and (name.startswith("__") or not name.startswith("_")):
                found.append(qualified)
        elif not name.startswith("_") and _is_function(value):
            found.append(qualified)
    return found


def _is_function(value: object) -> bool:
    return callable(value) and not inspect.isclass(value) and not isinstance(value, ModuleType)


def is_public(name: str) -> bool:
    """Whether people write this name: no private part, no `torch.ops`."""
    parts = name.split(".")
    dunder = parts[-1].startswith("__") and parts[-1].endswith("__")
    return parts[1:2] != ["ops"] and not any(
        p.startswith("_") for p in parts[:-1] + ([] if dunder else parts[-1:])
    )


def is_operation(value: object) -> bool:
    """Whether this can be called or read on a tensor: `torch.float` is a dtype, not an operation."""
    return callable(value) or inspect.isdatadescriptor(value)
