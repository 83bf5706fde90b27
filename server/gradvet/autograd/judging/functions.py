"""Custom autograd Functions: what their `forward` leaves on `ctx`."""

import ast
from dataclasses import dataclass, field

from gradvet.autograd.events import FunctionHolds
from gradvet.autograd.events_function import SavedWrong
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.values import Const, Dict, Number, Ref, Sequence, Text, Tuple, Value, atoms

MOST_DEEP = 3
_PLAIN = frozenset({"int", "float", "bool", "str"})


@dataclass(slots=True)
class FunctionNotes:
    """Told of each call of a custom Function once its forward has run."""

    machine: Machine
    told: set[ast.AST] = field(default_factory=set)
    inside: frozenset[ast.AST] = frozenset()

    def applied(
        self,
        ctx: Ref,
        inputs: tuple[Value, ...],
        result: Value,
        sites: dict[str, ast.AST],
        forward: ast.AST | None,
    ) -> None:
        """Look for inputs and outputs among the attributes that were set on `ctx`; `sites` tells where they were."""
        self.inside = frozenset(ast.walk(forward)) if sites and forward is not None else frozenset()
        given = {at for at in self._tensors(Tuple(inputs)) if self._is_tensor(at)}
        made = {at for at in self._tensors(result) if self._is_tensor(at) or self._is_computed(at)}
        for name, site in sites.items():
            held = self._tensors(self.machine.cells.get((ctx.address, name)))
            role = "output" if held & made else "input" if held & given else ""
            if role and site not in self.told:
                self.told.add(site)
                alone = len([n for n in sites if n not in {"saved_tensors", "needs_input_grad"}]) == 1
                saves = (ctx.address, "saved_tensors") in self.machine.cells
                self.machine.emit(
                    FunctionHolds(site, self.machine.where(), name, role, plain=alone and not saves)
                )

    def saved(self, site: ast.AST, values: tuple[Value, ...]) -> None:
        """`save_for_backward` was given these: whether some of them are numbers, whichever they are."""
        given = site.args if isinstance(site, ast.Call) else []
        if len(given) != len(values) or any(isinstance(part, ast.Starred) for part in given):
            return
        for part, value in zip(given, values, strict=True):
            plain = all(
                type(atom) in (Number, Text) or (type(atom) is Const and atom.kind in _PLAIN)
                for atom in atoms(value)
            )
            if plain and not isinstance(part, ast.Constant) and part not in self.told:
                self.told.add(part)
                self.machine.emit(SavedWrong(part, self.machine.where(), "number", part))

    def _tensors(self, value: Value, depth: int = 0) -> set[int]:
        """The addresses of what a value is, or holds in tuples, lists and dicts."""
        found: set[int] = set()
        for atom in atoms(value) if value is not None and depth < MOST_DEEP else ():
            parts: tuple[Value, ...] = ()
            if type(atom) is Tuple:
                parts = atom.items
            elif type(atom) is Ref:
                content = self.machine.cells.get(atom.address)
                if type(content) is Sequence:
                    parts = (*(content.items or ()), content.rest)
                elif type(content) is Dict:
                    parts = tuple(part for _, part in content.items)
                else:
                    found.add(atom.address)
            for part in parts:
                found |= self._tensors(part, depth + 1)
        return found

    def _is_tensor(self, address: int) -> bool:
        """Whether it is one tensor, and does not stand for each of several."""
        state = self.machine.tensor(Ref(address))
        if state is None or state.loose:
            return False
        each = (c.rest for c in self.machine.cells.values() if type(c) is Sequence and c.items is None)
        return not any(Ref(address) in atoms(rest) for rest in each if rest is not None)

    def _is_computed(self, address: int) -> bool:
        """Whether something unknown is what one expression of forward gave, and no part of something unknown."""
        site = self.machine.site_of(address)
        return isinstance(site, (ast.Call, ast.BinOp, ast.UnaryOp)) and site in self.inside
