"""What the dry run made of every expression, be it a tensor or not: a look over its shoulder."""

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.values import Opaque, Ref, Unknown, Value, atoms

Visits = dict[ast.expr, set[str]]


@contextmanager
def watching() -> Iterator[Visits]:
    """While it is on, what each expression evaluates to is noted, in words."""
    visits: Visits = {}
    evaluate = Machine.eval

    def watched(machine: Machine, node: ast.expr) -> Value:
        value = evaluate(machine, node)
        visits.setdefault(node, set()).update(_kind(machine, atom) for atom in atoms(value))
        return value

    with patch.object(Machine, "eval", watched):
        yield visits


def _kind(machine: Machine, atom: Value) -> str:
    content: object = machine.cells.get(atom.address) if type(atom) is Ref else atom
    if isinstance(content, (Unknown, Opaque)):
        return f"unknown: {content.reason or 'for no known reason'}"
    return type(content).__name__
