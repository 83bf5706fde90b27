"""What kind of thing a value is, in one of a few words that can be held against torch."""

from typing import Any

from gradvet.autograd.machine import Machine
from gradvet.autograd.values import (
    Array,
    Const,
    Dict,
    Each,
    External,
    Instance,
    Layer,
    Method,
    Number,
    Opaque,
    Range,
    Sequence,
    Tuple,
    Unknown,
    Value,
    refs,
)
from gradvet.autograd.domain import Tensor

TENSOR = "tensor"
MODULE = "module"
CONTAINER = "container"
ARRAY = "ndarray"
NUMBER = "number"
OTHER = "other"
UNKNOWN = "unknown"

_KINDS = {
    Tensor: TENSOR,
    Layer: MODULE,
    Sequence: CONTAINER,
    Dict: CONTAINER,
    Range: CONTAINER,
    Tuple: CONTAINER,
    Array: ARRAY,
    Number: NUMBER,
    Opaque: UNKNOWN,
    Unknown: UNKNOWN,
    Method: UNKNOWN,  # it is looked at and not called, so it may be a plain attribute
    type(None): UNKNOWN,
}
_NUMBERS = ("int", "float", "complex", "bool")
_OPEN_BASES = ("Tensor", "Parameter")


def kinds_of(m: Machine, value: Value) -> set[str]:
    """The kinds of thing that a value may be."""
    return {_kind(m, atom) for atom in m.alternatives(value)}


def reason_of(m: Machine, value: Value) -> str:
    """Why a value is not known, as far as anybody can tell."""
    contents = (content_of(m, atom) for atom in m.alternatives(value))
    return next((c.reason for c in contents if isinstance(c, (Opaque, Unknown)) and c.reason), "")


def content_of(m: Machine, atom: Value) -> Any:
    """What a value is: itself, or the object on the heap that it refers to."""
    address = getattr(atom, "address", None)
    return m.cells.get(address) if any(True for _ in refs(atom)) else atom
