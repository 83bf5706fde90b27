"""What a run found out: the state of every expression and the events in order. Read-only."""

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gradvet.autograd.events import Cut, Event
from gradvet.syntax.parse import Module


@dataclass(frozen=True, slots=True)
class ExpressionState:
    """What an expression held, joined over every visit.

    `text` is one line in torch's words: `requires_grad=YES is_leaf=NO grad_fn=MulBackward0`.
    `reasons` tell the chain from the expression back to its causes, nearest first, each with the
    node it speaks of. `requires_grad`, `is_leaf`, `is_view` and `is_inference` are yes, no or maybe.

    `storage` holds numbers: expressions that may share storage have one in common. `cuts` are the places
    where a gradient was stopped on the way here, `saved_by` the ops that saved this storage for a
    backward still to come when the run ended, `reaches` names of the leaves that a gradient from here
    would reach.
    """

    text: str
    reasons: tuple[tuple[str, ast.AST | None], ...]
    requires_grad: str = "maybe"
    is_leaf: str = "maybe"
    is_view: str = "maybe"
    is_inference: str = "maybe"
    storage: frozenset[int] = frozenset()
    cuts: tuple[Cut, ...] = ()
    saved_by: tuple[ast.AST, ...] = ()
    reaches: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AutogradState:
    """What torch would tell of a tensor: `yes`, `no` or `maybe`, and the names that its grad_fn may have.

    None is among the names where there may be no grad_fn, `*` stands for any name. `assumes` is what
    has to be true of the unknown parts of the program.
    """

    requires_grad: str
    is_leaf: str
    is_view: str
    is_inference: str
    grad_fn: tuple[str | None, ...]
    assumes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Expression:
    """Any expression that was run, joined over every visit.

    `kind` is one of the words in `kinds`, `unknown` too when the visits were of several kinds; `reason`
    then tells why. `grad_mode` are the modes it was run in. Tensors and arrays that may share storage
    have a number of `storage` in common; `*` is any number.
    """

    node: ast.expr
    kind: str
    grad_mode: tuple[str, ...]
    storage: tuple[int | str, ...] = ()
    state: AutogradState | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Way:
    """The way of a gradient from an expression: the leaves at its end, by name, and the ops between, these first.

    An op is the name of its grad_fn and where it was run. `whole` is False when there are more.
    """

    leaves: tuple[tuple[str, ast.AST | None], ...]
    ops: tuple[tuple[str, ast.AST], ...]
    whole: bool = True


def _no_way(_node: ast.AST) -> Way | None:
    return None


@dataclass(frozen=True, slots=True)
class Facts:
    """The outcome of a run; `expressions` are there only when it was watched.

    Events may have happened in modules that are only `imported`; states are those of the analysed one.
    `mixed` are expressions that held a tensor on one visit and a number on another. `way` finds the way of
    a gradient from an expression, None where that held no tensor. `stand_ins` are nodes of the run's own, each
    with the one where it stands.
    """

    events: Sequence[Event]
    states: Mapping[ast.AST, ExpressionState]
    limits: Sequence[str] = ()
    expressions: Sequence[Expression] = ()
    imported: Sequence[Module] = ()
    mixed: frozenset[ast.AST] = frozenset()
    way: Callable[[ast.AST], Way | None] = _no_way
    stand_ins: Mapping[ast.AST, ast.AST] = field(default_factory=dict)


_STORAGE_BITS = 32  # more than a run has addresses


class _Together(Mapping[ast.AST, ExpressionState]):
    """The states of several parts, of which none shares storage with another."""

    def __init__(self, parts: Sequence[Facts]) -> None:
        self._parts = parts
        self._part_of = {node: number for number, part in enumerate(parts) for node in part.states}

    def __getitem__(self, node: ast.AST) -> ExpressionState:
        number = self._part_of[node]
        state = self._parts[number].states[node]
        return replace(state, storage=frozenset((number << _STORAGE_BITS) + one for one in state.storage))

    def __iter__(self) -> Iterator[ast.AST]:
        return iter(self._part_of)

    def __len__(self) -> int:
        return len(self._part_of)

    def way(self, node: ast.AST) -> Way | None:
        """The way of a gradient from an expression, in the part that it is in."""
        number = self._part_of.get(node)
        return None if number is None else self._parts[number].way(node)


def together(parts: Sequence[Facts]) -> Facts:
    """What runs of several parts of one module found out."""
    if len(parts) == 1:
        return parts[0]
    states = _Together(parts)
    return Facts(
        [event for part in parts for event in part.events],
        states,
        tuple(dict.fromkeys(limit for part in parts for limit in part.limits)),
        [expression for part in parts for expression in part.expressions],
        [module for part in parts for module in part.imported],
        frozenset().union(*(part.mixed for part in parts)),
        states.way,
        {node: there for part in parts for node, there in part.stand_ins.items()},
    )


class _Without(Mapping[ast.AST, ExpressionState]):
    """States but for those of some nodes."""

    def __init__(self, states: Mapping[ast.AST, ExpressionState], gone: frozenset[ast.AST]) -> None:
        self._states = states
        self._nodes = {node: None for node in states if node not in gone}

    def __getitem__(self, node: ast.AST) -> ExpressionState:
        self._nodes[node]
        return self._states[node]

    def __iter__(self) -> Iterator[ast.AST]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)


def without(facts: Facts, gone: frozenset[ast.AST]) -> Facts:
    """What is known, but for what some nodes held, which are not in the text any more."""
    return replace(facts, states=_Without(facts.states, gone)) if gone else facts


def follow(facts: Facts) -> None:
    """Put what stands for other nodes where those are now."""
    for node, there in facts.stand_ins.items():
        ast.copy_location(node, there)
