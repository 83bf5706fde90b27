"""What a module of which nothing is known gives beside its loss: a count or a mask as well as outputs with a graph."""

import ast

from gradvet.autograd.backward_pass import LEARN
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import ANY_FN, MAYBE, Tensor
from gradvet.autograd.memory.values import Ref, Value
from gradvet.autograd.python.names import lookup


def unpacked(m: Machine, value: Value, address: int, state: Tensor) -> Tensor:
    """A part at an address is taken out of what a module gave: beside a loss it may or may not have a graph."""
    if type(value) is not Ref:
        return state
    together = m.unpacked.setdefault(value.address & ~1, set())
    together.add(address & ~1)
    m.taken_out[address & ~1] = value.address & ~1
    others = together & m.losses
    return _open(state) if others and address & ~1 not in others else state


def _open(state: Tensor) -> Tensor:
    return state._replace(requires_grad=MAYBE, is_leaf=MAYBE, grad_fn=frozenset({ANY_FN, None}))


def _learn(m: Machine, value: Value, site: ast.AST) -> None:
    """A backward starts from a part, or from what was computed of it first."""
    if type(value) is not Ref or value.address & ~1 not in m.taken_out:
        named = _subject(site)
        value = lookup(m, named.id) if named is not None and m.unpacked else None
    if type(value) is not Ref or value.address & ~1 not in m.taken_out:
        return
    m.losses.add(value.address & ~1)
    for at in m.unpacked[m.taken_out[value.address & ~1]] - {value.address & ~1}:
        state = m.cells.get(at)
        if type(state) is Tensor and at not in m.losses:
            m.write(Ref(at), _open(state))


def _subject(site: ast.AST) -> ast.Name | None:
    """The name from which a backward is run: `loss` in `(loss / n).backward()`; a mean is of what is no loss itself."""
    node: ast.AST | None = site
    while not isinstance(node, ast.Name | None):
        match node:
            case ast.BinOp(left=left):
                node = left
            case ast.Call(func=ast.Attribute(attr="backward" | "scale"), args=[first, *_]):
                node = first
            case ast.Call(func=ast.Attribute(value=inner, attr="backward")):
                node = inner
            case _:
                node = None
    return node


LEARN.append(_learn)
