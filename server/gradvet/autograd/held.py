"""The tensors that a value holds: itself, or what lies in containers."""

from gradvet.autograd.graph import MOST_DEEP
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import NOTHING, YES, Tensor
from gradvet.autograd.memory.values import (
    Const,
    Dict,
    Distribution,
    Instance,
    Ref,
    Sequence,
    Tuple,
    Union,
    Value,
    atoms,
)


def held_tensors(m: Machine, value: Value, depth: int = 0) -> list[tuple[Ref, Tensor]]:
    """The tensors in a value: itself, or the elements of containers, or what an unknown call was given."""
    found: list[tuple[Ref, Tensor]] = []
    hold(m, value, depth, {}, found)
    return found


_HOLDING = frozenset({Sequence, Dict, Distribution, Instance})


def hold(
    m: Machine, value: Value, depth: int, entered: dict[int, int], found: list[tuple[Ref, Tensor]]
) -> None:
    """Add the tensors in a value; containers that were entered before, no deeper than now, are not entered again."""
    if depth > MOST_DEEP:
        return
    for atom in atoms(value):
        if type(atom) is Tuple:
            for item in atom.items:
                hold(m, item, depth + 1, entered, found)
            continue
        for ref in (atom,) if type(atom) is Ref else getattr(atom, "refs", ()):
            content = m.cells.get(ref.address)
            if type(content) is Tensor:
                found.append((ref, content))
            elif type(content) in _HOLDING and entered.get(ref.address, MOST_DEEP + 1) > depth:
                entered[ref.address] = depth
                inner = depth + 2 if type(content) is Instance else depth + 1
                for item in _parts(m, ref, depth):
                    hold(m, item, inner, entered, found)


def surely_asks(m: Machine, value: Value, depth: int = 0) -> bool:
    """Whether a tensor that requires grad is in a value whichever of its alternatives is the one.

    Alternatives that hold no tensor do not count.
    """
    state = m.tensor(value)
    if state is not None or depth > MOST_DEEP:
        return state is not None and state.requires_grad == YES
    if type(value) is Union:
        held = [atom for atom in value.atoms if held_tensors(m, atom, depth)]
        return bool(held) and all(surely_asks(m, atom, depth + 1) for atom in held)
    if type(value) is Tuple:
        return any(surely_asks(m, item, depth + 1) for item in value.items)
    refs = (value,) if type(value) is Ref else getattr(value, "refs", ())
    return bool(refs) and all(
        any(surely_asks(m, item, depth + 1) for item in _parts(m, ref, depth)) for ref in refs
    )


def surely_held(m: Machine, value: Value, depth: int = 0) -> frozenset[int]:
    """The addresses of the tensors that are in a value whichever of its alternatives is the one."""
    if depth > MOST_DEEP:
        return NOTHING
    if type(value) is Union:
        return frozenset.intersection(*(surely_held(m, atom, depth + 1) for atom in value.atoms))
    if type(value) is Tuple:
        return NOTHING.union(*(surely_held(m, item, depth + 1) for item in value.items))
    refs = (value,) if type(value) is Ref else getattr(value, "refs", ())
    own = frozenset(ref.address for ref in refs if type(m.cells.get(ref.address)) is Tensor)
    return own.union(*(surely_held(m, item, depth + 1) for ref in refs for item in _parts(m, ref, depth)))


def _parts(m: Machine, ref: Ref, depth: int) -> list[Value]:
    """What a container holds; or an object that is no module, inside something else."""
    match m.cells.get(ref.address):
        case Sequence(items=items, rest=rest):
            parts = [*(items or ()), rest]
        case Dict(items=pairs, rest=rest):
            parts = [*(v for _, v in pairs), rest]
        case Distribution(inputs=inputs):
            parts = [value for _, value in inputs]
        case Instance(owner=owner) if not m.classes[owner].is_module and depth:
            parts = [m.cells.get((ref.address, name)) for name in m.attributes.get(ref.address & ~1, ())]
        case _:
            return []
    return [part for part in parts if part is not None and type(part) is not Const]
