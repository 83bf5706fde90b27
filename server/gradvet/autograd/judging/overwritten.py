"""Modules that work in place on what they are given, while the function that gave it reads it again."""

import ast
from dataclasses import dataclass, field
from typing import TypeGuard

from gradvet.autograd.events import InputOverwritten
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.values import Ref, Value
from gradvet.autograd.python.names import lookup

Calls = tuple[ast.AST, ...]


@dataclass(slots=True)
class OverwriteNotes:
    """Told of each tensor that a module changes in place, with the place where that module was made."""

    machine: Machine
    told: dict[ast.AST, InputOverwritten] = field(default_factory=dict)
    reads: dict[tuple[ast.Call, str], ast.expr | None] = field(default_factory=dict)

    def changed(self, site: ast.AST, value: Value, maker: ast.AST | None) -> None:
        """A module that was made at `maker` changes this tensor; `site` is the call that brought it there."""
        m = self.machine
        if maker is None or not isinstance(site, ast.Call) or site in self.told or type(value) is not Ref:
            return
        for given in site.args:
            if isinstance(given, ast.Name) and lookup(m, given.id) == value:
                key = (site, given.id)  # many passes and calls come by here, and the text stays as it is
                if key not in self.reads:
                    self.reads[key] = _read_again(m.frames[-1].node, site, given.id)
                read = self.reads[key]
                if read is not None:
                    self.told[site] = InputOverwritten(site, m.where(), given, maker, read)

    def perhaps(self, before: int) -> None:
        """Whatever was told since there were so many is done by just one of several modules that may be called."""
        for site in list(self.told)[before:]:
            del self.told[site]

    def conclude(self) -> None:
        """Tell of them."""
        for event in self.told.values():
            self.machine.emit(event)


def _read_again(function: ast.AST, call: ast.Call, name: str) -> ast.expr | None:
    """Where a function reads a name after a call, or beside it in one expression, with the value that it has then."""
    inside = set(ast.walk(call))
    statement = next(
        (part for part in ast.walk(function) if _is_simple(part) and call in set(ast.walk(part))), None
    )
    if statement is None:
        return None
    beside = [part for part in ast.walk(statement) if _loads(part, name) and part not in inside]
    if beside:
        return beside[0] if _is_summand(statement, call, beside[0]) else None
    if any(_stores(part, name) for part in ast.walk(statement)):
        return None
    later = [
        part
        for part in ast.walk(function)
        if isinstance(part, ast.Name) and part.id == name and part not in inside
    ]
    after = sorted((part for part in later if part.lineno > (statement.end_lineno or 0)), key=_place)
    return after[0] if after and isinstance(after[0].ctx, ast.Load) else None


def _is_simple(node: ast.AST) -> TypeGuard[ast.stmt]:
    return isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Expr))


def _is_summand(statement: ast.AST, call: ast.Call, read: ast.AST) -> bool:
    """Whether the value is combined with the result of the call, as in `x + self.block(x)`."""
    return any(
        isinstance(part, ast.BinOp) and {call, read} <= set(ast.walk(part)) for part in ast.walk(statement)
    )


def _loads(node: ast.AST, name: str) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)


def _stores(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)


def _place(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset
