"""What every expression held, joined over its visits, whatever kind of thing it was: a run that is watched."""

import ast
import sys
from collections.abc import Iterator, Mapping

from gradvet.autograd.facts import AutogradState, Expression
from gradvet.autograd.kinds import ARRAY, TENSOR, UNKNOWN, kinds_of, reason_of, storage_of
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import (
    ANY_FN,
    ENABLED_INFERENCE,
    GRAD,
    INFERENCE,
    NO,
    NO_GRAD,
    NOTHING,
    YES,
    Tensor,
)
from gradvet.autograd.memory.values import Value
from gradvet.syntax.parse import Module

ANY_STORAGE = "*"
ONE_TENSOR = "it is one tensor, and not several in a tuple or a dict"

_TRUTHS = {NO: "no", YES: "yes"}
_MODES = {GRAD: "grad", NO_GRAD: "no_grad", INFERENCE: "inference", ENABLED_INFERENCE: "inference"}
_NO_VALUES = (ast.Slice, ast.Starred, ast.FormattedValue)
_NOT_RUN = {"annotation", "returns", "type_params"}
# Before Python 3.12 the parser gives wrong places to what stands inside an f-string.
_F_STRING_PLACES = sys.version_info >= (3, 12)


class _Visits:
    """What the visits of one expression had, but for the states of tensors: those the machine notes itself."""

    __slots__ = ("kinds", "modes", "reason", "storage")

    def __init__(self) -> None:
        self.kinds: set[str] = set()
        self.modes = 0
        self.reason = ""
        self.storage = NOTHING


class WatchedMachine(Machine):
    """A machine that also remembers what was no tensor, and in which grad modes it ran."""

    def __init__(self, module: Module) -> None:
        """Nothing has been seen yet."""
        super().__init__(module)
        self._visits: dict[ast.AST, _Visits] = {}
        self._unseen: dict[ast.AST, str] = {}

    def eval(self, node: ast.expr) -> Value:
        """The value of an expression, which is remembered with the grad mode after it."""
        value = super().eval(node)
        visits = self._visits.get(node)
        if visits is None:
            visits = self._visits[node] = _Visits()
        kinds = kinds_of(self, value)
        visits.kinds |= kinds
        visits.modes |= self.mode
        if ARRAY in kinds:
            visits.storage |= storage_of(self, value)
        if UNKNOWN in kinds and not visits.reason:
            visits.reason = reason_of(self, value)
        return value

    def unseen(self, node: ast.AST, reason: str = "calls that go too deep to follow") -> None:
        """Remember that what is in a node also held what was not seen."""
        super().unseen(node, reason)
        self._unseen.update(dict.fromkeys(ast.walk(node), reason))

    def expressions(self) -> tuple[Expression, ...]:
        """All that were visited, in the order of the text."""
        nodes = sorted((node for node in _values_in(self.main) if node in self._visits), key=_place)
        groups: dict[int, int] = {}
        return tuple(self._expression(node, groups) for node in nodes)

    def _expression(self, node: ast.expr, groups: dict[int, int]) -> Expression:
        visits = self._visits[node]
        kinds, modes = visits.kinds, _members(visits.modes, _MODES)
        if node in self._unseen:
            reason = visits.reason or self._unseen[node]
            return Expression(node, UNKNOWN, modes, reason=reason)
        if kinds == {TENSOR}:
            state = self.states[node]
            storage = _groups(state.storage, groups, sure=not state.loose)
            return Expression(node, TENSOR, modes, storage, _in_words(state))
        if kinds == {ARRAY}:
            return Expression(node, ARRAY, modes, _groups(visits.storage, groups))
        if len(kinds) > 1 or UNKNOWN in kinds:
            reason = visits.reason or " or ".join(sorted(kinds - {UNKNOWN}))
            return Expression(node, UNKNOWN, modes, reason=reason)
        return Expression(node, next(iter(kinds)), modes)


def _values_in(tree: ast.Module) -> Iterator[ast.expr]:
    """The expressions of a tree that are run for their value and stand where they say."""
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        stored = isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del))
        if isinstance(node, ast.expr) and not stored and not isinstance(node, _NO_VALUES):
            yield node
        if isinstance(node, ast.JoinedStr) and not _F_STRING_PLACES:
            continue
        for name, part in ast.iter_fields(node):
            if name not in _NOT_RUN:
                parts = part if isinstance(part, list) else [part]
                stack.extend(child for child in parts if isinstance(child, ast.AST))


def _place(node: ast.expr) -> tuple[int, int, int, int]:
    return node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0


def _groups(storage: frozenset[int], groups: dict[int, int], *, sure: bool = True) -> tuple[int | str, ...]:
    """The group numbers of storages; what an older iteration made is in the group of what the newest makes."""
    numbers = {groups.setdefault(address & ~1, len(groups) + 1) for address in sorted(storage)}
    return (*sorted(numbers), *(() if sure and numbers else (ANY_STORAGE,)))


def _members(bits: int, names: Mapping[int, str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for bit, name in names.items() if bits & bit))


def _in_words(state: Tensor) -> AutogradState:
    names = state.grad_fn
    if ANY_FN in names and state.is_leaf & YES:
        names |= {None}
    return AutogradState(
        requires_grad=_TRUTHS.get(state.requires_grad, "maybe"),
        is_leaf=_TRUTHS.get(state.is_leaf, "maybe"),
        is_view=_TRUTHS.get(state.view, "maybe"),
        is_inference=_TRUTHS.get(state.inference, "maybe"),
        grad_fn=(*sorted(name for name in names if name is not None), *([None] if None in names else [])),
        assumes=tuple(sorted(state.assumes | ({ONE_TENSOR} if state.loose else set()))),
    )
