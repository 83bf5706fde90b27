"""At the end of a loop's iteration what was born in it becomes "from an earlier iteration".

Addresses are even when new; the odd one after each stands for all its older namesakes.
"""

from collections.abc import Callable
from typing import Any

from gradvet.autograd.memory.domain import Node, Tensor
from gradvet.autograd.memory.values import (
    Array,
    Bound,
    Coroutine,
    Dict,
    Distribution,
    Each,
    Layer,
    Method,
    Opaque,
    Optimizer,
    Partial,
    Range,
    Ref,
    Sequence,
    Super,
    Tuple,
    Union,
    join_all,
)

Addresses = set[int]


def _set(addresses: frozenset[int], born: Addresses) -> frozenset[int]:
    if addresses.isdisjoint(born):
        return addresses
    return frozenset(address + 1 if address in born else address for address in addresses)


def _tensor(x: Tensor, born: Addresses) -> Tensor:
    alias = x.alias
    if alias is not None:
        alias = alias._replace(source=_set(alias.source, born))
    return x._replace(
        storage=_set(x.storage, born), nodes=_set(x.nodes, born), leaves=_set(x.leaves, born), alias=alias
    )


def _node(x: Node, born: Addresses) -> Node:
    saved = frozenset((place + 1 if place in born else place, version) for place, version in x.saved)
    return x._replace(inputs=_set(x.inputs, born), leaves=_set(x.leaves, born), saved=saved)


def _many(values: tuple[Any, ...], born: Addresses) -> tuple[Any, ...]:
    return tuple(rename(value, born) for value in values)


def _pairs(pairs: tuple[tuple[Any, Any], ...], born: Addresses) -> tuple[tuple[Any, Any], ...]:
    return tuple((name, rename(value, born)) for name, value in pairs)


def _optional(value: Any, born: Addresses) -> Any:
    return None if value is None else rename(value, born)


def _array(x: Array, born: Addresses) -> Array:
    alias = x.alias and x.alias._replace(source=_set(x.alias.source, born))
    return Array(_set(x.storage, born), x.cuts, alias)


_RENAMES: dict[type, Callable[[Any, Addresses], Any]] = {
    Ref: lambda x, born: Ref(x.address + 1) if x.address in born else x,
    Each: lambda x, born: Each(_many(x.refs, born)),
    Tuple: lambda x, born: Tuple(_many(x.items, born), x.fields),
    Union: lambda x, born: join_all([rename(atom, born) for atom in x.atoms]),
    Bound: lambda x, born: Bound(rename(x.function, born), rename(x.receiver, born)),
    Method: lambda x, born: x._replace(receiver=rename(x.receiver, born)),
    Partial: lambda x, born: Partial(rename(x.function, born), _many(x.args, born), _pairs(x.keywords, born)),
    Coroutine: lambda x, born: Coroutine(rename(x.value, born)),
    Super: lambda x, born: x._replace(receiver=rename(x.receiver, born)),
    Tensor: _tensor,
    Node: _node,
    Array: _array,
    Sequence: lambda x, born: x._replace(
        items=None if x.items is None else _many(x.items, born), rest=_optional(x.rest, born)
    ),
    Dict: lambda x, born: x._replace(
        items=_pairs(x.items, born), rest=_optional(x.rest, born), keys=_optional(x.keys, born)
    ),
    Layer: lambda x, born: x._replace(
        parameters=tuple((name, at + 1 if at in born else at) for name, at in x.parameters),
        children=_pairs(x.children, born),
        rest=_optional(x.rest, born),
        options=_pairs(x.options, born),
    ),
    Optimizer: lambda x, born: x._replace(owns=_set(x.owns, born)),
    Opaque: lambda x, born: x._replace(inputs=_many(x.inputs, born)),
    Distribution: lambda x, born: x._replace(inputs=_many(x.inputs, born)),
    Range: lambda x, born: x._replace(element=rename(x.element, born)),
}


def rename(content: Any, born: Addresses) -> Any:
    """The same content, with every address that was born in the iteration aged."""
    how = _RENAMES.get(type(content))
    return content if how is None else how(content, born)


def rename_key(key: Any, born: Addresses) -> Any:
    """The key under which a cell lies after ageing."""
    if type(key) is int:
        return key + 1 if key in born else key
    if type(key) is tuple and key[0] in born:
        return (key[0] + 1, key[1])
    return key
