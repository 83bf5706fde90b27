"""At the end of a loop's iteration what was born in it becomes "from an earlier iteration".

Addresses are even when new; the odd one after each stands for all its older namesakes.
"""

from collections.abc import Callable
from operator import is_
from typing import Any

from gradvet.autograd.memory.domain import Alias, Graphed, Node, Tensor
from gradvet.autograd.memory.values import (
    Array,
    Bound,
    Coroutine,
    Data,
    Dict,
    Distribution,
    Each,
    Function,
    Layer,
    Method,
    Opaque,
    Optimizer,
    Partial,
    Pool,
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


def _alias(alias: Alias | None, born: Addresses) -> Alias | None:
    if alias is None or alias.source.isdisjoint(born):
        return alias
    return alias._replace(source=_set(alias.source, born))


def _tensor(x: Tensor, born: Addresses) -> Tensor:
    storage, nodes, leaves = _set(x.storage, born), _set(x.nodes, born), _set(x.leaves, born)
    alias, base = _alias(x.alias, born), _set(x.base, born)
    same = storage is x.storage and nodes is x.nodes and leaves is x.leaves
    if same and alias is x.alias and base is x.base:
        return x
    return x._replace(storage=storage, nodes=nodes, leaves=leaves, alias=alias, base=base)


def _graphed(graphed: frozenset[Graphed], born: Addresses) -> frozenset[Graphed]:
    if all(born.isdisjoint(one) for one in graphed):
        return graphed
    return frozenset(Graphed(*(at + 1 if at in born else at for at in one)) for one in graphed)


def _node(x: Node, born: Addresses) -> Node:
    inputs, leaves = _set(x.inputs, born), _set(x.leaves, born)
    saved, sure, sure_leaves = _set(x.saved, born), _set(x.sure, born), _set(x.sure_leaves, born)
    graphed = _graphed(x.graphed, born) if x.graphed else x.graphed
    same = inputs is x.inputs and leaves is x.leaves and saved is x.saved
    if same and sure is x.sure and sure_leaves is x.sure_leaves and graphed is x.graphed:
        return x
    return x._replace(
        inputs=inputs, leaves=leaves, saved=saved, sure=sure, sure_leaves=sure_leaves, graphed=graphed
    )


def _many(values: tuple[Any, ...], born: Addresses) -> tuple[Any, ...]:
    renamed = [rename(value, born) for value in values]
    return values if all(map(is_, renamed, values)) else tuple(renamed)


def _pairs(pairs: tuple[tuple[Any, Any], ...], born: Addresses) -> tuple[tuple[Any, Any], ...]:
    renamed = [rename(value, born) for _, value in pairs]
    if all(new is old for new, (_, old) in zip(renamed, pairs, strict=True)):
        return pairs
    return tuple([(name, new) for (name, _), new in zip(pairs, renamed, strict=True)])


def _optional(value: Any, born: Addresses) -> Any:
    return None if value is None else rename(value, born)


def _array(x: Array, born: Addresses) -> Array:
    return x._replace(storage=_set(x.storage, born), alias=_alias(x.alias, born))


def _layer(x: Layer, born: Addresses) -> Layer:
    parameters = x.parameters
    if any(at in born for _, at in parameters):
        parameters = tuple((name, at + 1 if at in born else at) for name, at in parameters)
    children, options, rest = _pairs(x.children, born), _pairs(x.options, born), _optional(x.rest, born)
    if parameters is x.parameters and children is x.children and options is x.options and rest is x.rest:
        return x
    return x._replace(parameters=parameters, children=children, options=options, rest=rest)


def _function(x: Function, born: Addresses) -> Function:
    if not x.defaults and not x.inside:
        return x
    defaults, inside = _pairs(x.defaults, born), _many(x.inside, born)
    if defaults is x.defaults and inside is x.inside:
        return x
    return x._replace(defaults=defaults, inside=inside)


def _distribution(x: Distribution, born: Addresses) -> Distribution:
    inputs = _pairs(x.inputs, born)
    return x if inputs is x.inputs else x._replace(inputs=inputs)


def _parts(*names: str) -> Callable[[Any, Addresses], Any]:
    """How to rename something of which these fields hold a value or None, or else values."""

    def renamed(x: Any, born: Addresses) -> Any:
        changed = {}
        for name in names:
            old = getattr(x, name)
            new = _many(old, born) if type(old) is tuple else _optional(old, born)
            if new is not old:
                changed[name] = new
        return x._replace(**changed) if changed else x

    return renamed


_RENAMES: dict[type, Callable[[Any, Addresses], Any]] = {
    Ref: lambda x, born: Ref(x.address + 1) if x.address in born else x,
    Each: _parts("refs"),
    Tuple: _parts("items"),
    Union: lambda x, born: x if (atoms := _many(x.atoms, born)) is x.atoms else join_all(list(atoms)),
    Function: _function,
    Bound: _parts("function", "receiver"),
    Method: _parts("receiver"),
    Partial: lambda x, born: Partial(rename(x.function, born), _many(x.args, born), _pairs(x.keywords, born)),
    Coroutine: _parts("value"),
    Super: _parts("receiver"),
    Tensor: _tensor,
    Node: _node,
    Array: _array,
    Sequence: _parts("items", "rest", "of"),
    Dict: lambda x, born: x._replace(
        items=_pairs(x.items, born), rest=_optional(x.rest, born), keys=_optional(x.keys, born)
    ),
    Layer: _layer,
    Optimizer: lambda x, born: x._replace(owns=_set(x.owns, born)),
    Opaque: _parts("inputs"),
    Distribution: _distribution,
    Range: _parts("element"),
    Data: _parts("parts", "collate"),
    Pool: _parts("value"),
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
