"""What kind of thing a value is, in one of a few words that can be held against torch."""

from typing import Any

from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import Tensor
from gradvet.autograd.memory.values import (
    NESTED,
    Array,
    Const,
    Data,
    Dict,
    External,
    Instance,
    Layer,
    Method,
    Number,
    Opaque,
    Pool,
    Range,
    Ref,
    Sequence,
    Tuple,
    Unknown,
    Value,
)

TENSOR = "tensor"
MODULE = "module"
CONTAINER = "container"
ARRAY = "ndarray"
NUMBER = "number"
OTHER = "other"
UNKNOWN = "unknown"

_KINDS: dict[type, str] = {
    Tensor: TENSOR,
    Layer: MODULE,
    Sequence: CONTAINER,
    Dict: CONTAINER,
    Range: CONTAINER,
    Data: OTHER,
    Pool: OTHER,
    Tuple: CONTAINER,
    Array: ARRAY,
    Number: NUMBER,
    Opaque: UNKNOWN,
    Unknown: UNKNOWN,
    Method: UNKNOWN,  # nothing calls it here, so it may be a plain attribute
    type(None): UNKNOWN,
}
_NUMBERS = {"int", "float", "complex", "bool"}
_KNOWN_PACKAGES = {"builtins", "torch", "numpy", "gradvet"}
_FLAGS_AND_CONSTANTS = {"backends", "version", "e", "nan", "inf", "pi", "euler_gamma"}
_PLAIN_BASES = ("torch.", "abc.", "builtins.object", "typing.Protocol", "typing.Generic")
_TENSOR_BASES = {"Tensor", "Parameter"}


def kinds_of(m: Machine, value: Value) -> set[str]:
    """The kinds of thing that a value may be."""
    return {_kind(m, _content(m, atom)) for atom in m.alternatives(value)}


def reason_of(m: Machine, value: Value) -> str:
    """Why a value is not known, where that can be told."""
    for atom in m.alternatives(value):
        content = _content(m, atom)
        if isinstance(content, (Opaque, Unknown)) and content.reason:
            return content.reason
        if isinstance(content, External) and _kind(m, content) == UNKNOWN:
            return f"`{content.name}`, which is not in this file"
    return ""


def storage_of(m: Machine, value: Value) -> frozenset[int]:
    """The storages that an array may share with tensors."""
    contents = [_content(m, atom) for atom in m.alternatives(value)]
    return frozenset[int]().union(*(c.storage for c in contents if isinstance(c, Array)))


def _content(m: Machine, atom: Value) -> Any:
    """The object that an atom refers to, or the atom itself."""
    return m.cells.get(atom.address) if type(atom) is Ref else atom


def _kind(m: Machine, content: Any) -> str:
    kind = type(content)
    if kind is Const:
        return NUMBER if content.kind in _NUMBERS else OTHER
    if kind is Number and content.kind == NESTED:
        return UNKNOWN
    if kind is Instance:
        return _kind_of_instance(m, content)
    if kind is External:
        return _kind_of_external(content.name)
    return _KINDS.get(kind, OTHER)


def _kind_of_instance(m: Machine, instance: Instance) -> str:
    """An instance of a class of the file; what it inherits from elsewhere may make it anything."""
    info = m.classes[instance.owner]
    if info.is_module:
        return MODULE
    plain = all(
        name.startswith(_PLAIN_BASES) and name.rpartition(".")[2] not in _TENSOR_BASES
        for name in info.external
    )
    return OTHER if plain and not info.unknown_base else UNKNOWN


def _kind_of_external(name: str) -> str:
    """Functions, classes and modules of the packages that are known; what others hold is not."""
    first, *rest = name.split(".")
    if rest and (first not in _KNOWN_PACKAGES or not _FLAGS_AND_CONSTANTS.isdisjoint(rest)):
        return UNKNOWN
    return OTHER
