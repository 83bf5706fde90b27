"""Backwards that promised to be the last and are differentiated all the same."""

import ast
from dataclasses import dataclass, field
from typing import NamedTuple

from gradvet.autograd.events_function import DifferentiatedTwice
from gradvet.autograd.graph import GRADIENT, gradient_surely_asks
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import Node, Tensor


class Promise(NamedTuple):
    """A Function whose backward is `@once_differentiable`."""

    owner: str
    backward: ast.AST


@dataclass(slots=True)
class Twice:
    """Told of such Functions where they are applied, and of each backward pass.

    What such a backward gives has no graph while the gradient that comes to it asks for none; else it has one in
    which a later pass raises (measured on torch 2.13).
    """

    machine: Machine
    promises: dict[ast.AST, Promise] = field(default_factory=dict)
    """By where they are applied."""
    broken: dict[ast.AST, Promise] = field(default_factory=dict)
    """By the `autograd.grad` that came by one with a gradient that asks."""
    told: set[tuple[ast.AST, ast.AST]] = field(default_factory=set)

    def applied(self, site: ast.AST, owner: str, backward: ast.AST) -> None:
        """A Function of this name is applied."""
        self.promises[site] = Promise(owner, backward)

    def passed(self, site: ast.AST, root: Tensor, found: dict[int, Node], sure: list[int]) -> None:
        """A backward pass goes surely through these nodes, nearest first."""
        if not self.promises:
            return
        m = self.machine
        for at in sure:
            node = found[at]
            broken = self.broken.get(node.node) if node.name == GRADIENT else None
            if broken is not None and (site, node.node) not in self.told:
                self.told.add((site, node.node))
                m.emit(DifferentiatedTwice(site, m.where(), broken.owner, node.node, broken.backward))
        for at in sure:
            promise = self.promises.get(found[at].node)
            if promise is not None and gradient_surely_asks(m, root, frozenset({at})):
                self.broken[site] = promise
