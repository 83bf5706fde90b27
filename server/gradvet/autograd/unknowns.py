"""What lies behind values of which nothing is known: what went into the calls that could not be followed."""

import ast

from gradvet.autograd.graph import MOST_DEEP, node_key, unknown_key
from gradvet.autograd.held import hold
from gradvet.autograd.knowledge.lookup import load
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import MAYBE, NOTHING, YES, Node, Tensor
from gradvet.autograd.memory.values import (
    SETTING,
    Const,
    Layer,
    Number,
    Opaque,
    Ref,
    Tuple,
    Value,
    atoms,
)


def opaque_inputs(m: Machine, *values: Value) -> list[Tensor]:
    """The tensors that went into calls which could not be followed, on the way to these values."""
    found: list[tuple[Ref, Tensor]] = []
    entered: dict[int, int] = {}
    gone_into: set[int] = set()
    level = list(values)
    for _ in range(MOST_DEEP):
        inner: list[Value] = []
        for atom in (atom for one in level for atom in atoms(one)):
            address = getattr(atom, "address", -1)
            content = m.cells.get(address)
            if type(content) is Opaque and address not in gone_into:
                gone_into.add(address)
                inner += content.inputs
        if not inner:
            break
        level = list(dict.fromkeys(inner))
        for item in level:
            hold(m, item, 0, entered, found)
    return list({ref.address: state for ref, state in found}.values())


MOST_TERMS = 6


def added_numbers(
    m: Machine, value: Value, depth: int = 0, entered: dict[int, int] | None = None
) -> frozenset[int]:
    """The cuts of numbers that were added to something unknown, also where they were weighted before.

    What was `entered` before, no deeper than now, is not entered again.
    """
    cuts = NOTHING
    entered = {} if entered is None else entered
    for atom in atoms(value):
        address = getattr(atom, "address", -1)
        content = m.cells.get(address)
        if type(atom) is Number:
            cuts |= atom.cuts
        elif type(content) is Opaque and depth < entered.get(address, MOST_TERMS):
            entered[address] = depth
            match content.origin.node if content.origin is not None else None:
                case ast.BinOp(op=ast.Add() | ast.Sub()):
                    parts = content.inputs
                case ast.BinOp(op=ast.Mult() | ast.Div()) if all(
                    is_weight(m, part) for part in content.inputs
                ):
                    parts = content.inputs
                case _:
                    parts = ()
            for part in parts:
                cuts |= added_numbers(m, part, depth + 1, entered)
    return cuts


_DATA = ("argument ", "a batch")
"""How the reasons begin of what a function, or a loop in it, is given."""


def is_data(m: Machine, value: Value) -> bool:
    """Whether something unknown was given and not computed: arguments and what lies in them carry no graph."""
    contents = [m.cells.get(getattr(atom, "address", -1)) for atom in atoms(value)]
    return all(type(content) is Opaque and content.reason.startswith(_DATA) for content in contents)


def is_of_data(m: Machine, value: Value, depth: int = 0) -> bool:
    """Whether a tensor was computed of what was given and of constants alone: it requires grad only if data does."""
    state, address = m.tensor(value), m.only(value)
    node, unknown = m.cells.get(node_key(address)), m.cells.get(unknown_key(address))
    if state is None or state.requires_grad != MAYBE or state.leaves or type(node) is not Node:
        return False
    return (
        depth <= MOST_TERMS
        and address in state.nodes
        and all(is_made_of_data(m, part) for part in (unknown.items if type(unknown) is Tuple else ()))
        and all(is_of_data(m, Ref(at), depth + 1) for at in node.inputs)
    )


def is_made_of_data(m: Machine, value: Value, depth: int = 0) -> bool:
    """Whether something unknown was given, or is what a method of a tensor makes of what was given: `target.sum()`."""
    if is_data(m, value):
        return True
    content = m.cells.get(getattr(value, "address", -1))
    if type(content) is not Opaque or content.origin is None or depth > MOST_TERMS:
        return False
    match content.origin.node:
        case ast.Call(func=ast.Attribute(attr=name)) if load().method(name) is not None:
            return all(is_made_of_data(m, part, depth + 1) for part in content.inputs if type(part) is Ref)
    return False


def is_setting(m: Machine, value: Value) -> bool:
    """Whether something unknown was read from the command line: it is no tensor."""
    content = m.cells.get(getattr(value, "address", -1))
    return type(content) is Opaque and content.reason == SETTING


def is_weight(m: Machine, value: Value, depth: int = 0) -> bool:
    """Whether a factor may be a weight: a number, something that was given, an attribute, or computed from such."""
    contents = [m.cells.get(getattr(atom, "address", -1), atom) for atom in atoms(value)]
    return all(
        type(content) in (Const, Number)
        or (
            type(content) is Opaque
            and (
                content.reason.startswith((*_DATA, "a part of", SETTING)) or _is_of_weights(m, content, depth)
            )
        )
        for content in contents
    )


def weights_in(m: Machine, value: Value, depth: int = 0) -> frozenset[int]:
    """The unknown things that a factor is, or is computed from."""
    found = NOTHING
    for atom in atoms(value):
        address = getattr(atom, "address", -1)
        content = m.cells.get(address)
        if type(content) is Opaque and depth < MOST_TERMS:
            found |= {address & ~1}
            for part in content.inputs:
                found |= weights_in(m, part, depth + 1)
    return found


def _is_of_weights(m: Machine, content: Opaque, depth: int) -> bool:
    node = content.origin.node if content.origin is not None else None
    return (
        isinstance(node, (ast.BinOp, ast.UnaryOp))
        and depth < MOST_TERMS
        and all(is_weight(m, part, depth + 1) for part in content.inputs)
    )


def unknown_behind(m: Machine, *values: Value) -> frozenset[int]:
    """What values of which little is known were computed from: results of unknown calls, and what was called."""
    if m.judge is None:
        return NOTHING
    found: set[int] = set()
    unknown_of = m.judge.cut_notes.unknown_of
    gone_into: set[int] = set()
    cells = m.cells
    level = values
    for depth in range(MOST_DEEP + 1):
        inner: list[Value] = []
        for one in level:
            for atom in (one,) if type(one) is Ref else atoms(one):
                address = getattr(atom, "address", -1)
                if address in gone_into:
                    continue
                content = cells.get(address)
                if type(content) is Tensor:
                    gone_into.add(address)
                    found |= unknown_of.get(address & ~1, NOTHING)
                elif type(content) is Opaque:
                    results = content.reason.startswith("the result of")
                    if results:
                        found.add(address & ~1)
                        called = getattr(content.inputs[0], "address", -1) if content.inputs else -1
                        if type(cells.get(called)) in (Opaque, Layer):
                            found.add(called & ~1)
                    if results or depth:
                        gone_into.add(address)
                        inner += content.inputs
        if not inner:
            break
        level = tuple(inner)
    return frozenset(found)


def unknown_cut(m: Machine, value: Value, kind: str, words: str, site: ast.AST) -> frozenset[int]:
    """The cuts of a value of which only this is known, that it was cut here: it may have had a graph."""
    cuts, leaves, nodes = NOTHING, NOTHING, NOTHING
    for state in opaque_inputs(m, value):
        cuts |= state.cuts
        if state.requires_grad & YES:
            leaves, nodes = leaves | state.leaves, nodes | state.nodes
    number = m.cut(kind, words, site, leaves, nodes, cuts)
    if m.judge is not None:
        m.judge.cut_notes.behind.setdefault(number, set()).update(unknown_behind(m, value))
        if kind == "detach":
            m.judge.cut_notes.may_train(value)
    return cuts | {number}
