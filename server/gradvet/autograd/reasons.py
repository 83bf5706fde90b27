"""The chain of reasons behind a state, told from the nearest cause to the farthest."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from gradvet.autograd.events import Cut
from gradvet.autograd.facts import ExpressionState, Way
from gradvet.autograd.memory.domain import ANYTHING, NO, YES, Node, Origin, Tensor, join_tensors

MOST_REASONS = 6
MOST_OPS = 200
"""Ops of a way that are told: nobody reads more."""
_TRUTHS = {NO: "no", YES: "yes"}


def chain(origin: Origin | None) -> tuple[tuple[str, ast.AST | None], ...]:
    """The steps that led to a state: what was done, and where."""
    steps: list[tuple[str, ast.AST | None]] = []
    seen: set[int] = set()
    while origin is not None and len(steps) < MOST_REASONS and id(origin.node) not in seen:
        seen.add(id(origin.node))
        steps.append((_words(origin), origin.node if hasattr(origin.node, "lineno") else None))
        origin = next((o for o in origin.inputs if id(o.node) not in seen), None)
    return tuple(steps)


def _words(origin: Origin) -> str:
    node = origin.node
    if isinstance(node, ast.expr) and not origin.text.startswith(
        ("param", "a ", "weight", "bias", "the ", "in_proj")
    ):
        text = " ".join(ast.unparse(node).split())
        return f"`{text}`" if len(text) <= 60 else f"`{text[:57]}...`"  # noqa: PLR2004
    return origin.text


def _truth(truth: int) -> str:
    return _TRUTHS.get(truth, "maybe")


class States(Mapping[ast.AST, ExpressionState]):
    """The state of every tensor expression, put into words only when it is asked for."""

    def __init__(
        self,
        states: dict[ast.AST, Tensor],
        vague: set[ast.AST],
        cells: Mapping[Any, Any] | None = None,
        cuts: Sequence[Cut] = (),
        leaf_names: Mapping[int, str] | None = None,
    ) -> None:
        """Take over what the machine noted; `vague` are the expressions that also held something unknown.

        `cells` are its memory as the run left it, `cuts` the places where gradients were stopped, by number,
        and `leaf_names` the names of parameters by address.
        """
        self._cells = cells or {}
        self._cuts = cuts
        self._leaf_names = leaf_names or {}
        self._states = {
            node: join_tensors(state, ANYTHING) if node in vague else state for node, state in states.items()
        }

    def __getitem__(self, node: ast.AST) -> ExpressionState:
        """The state of an expression; KeyError when it never held a tensor."""
        state = self._states[node]
        return ExpressionState(
            state.describe(),
            chain(state.origin),
            requires_grad=_truth(state.requires_grad),
            is_leaf=_truth(state.is_leaf),
            is_view=_truth(state.view),
            is_inference=_truth(state.inference),
            storage=frozenset(address & ~1 for address in state.storage),
            cuts=tuple(self._cuts[number] for number in sorted(state.cuts)),
            saved_by=self._saved_by(state),
            reaches=self._reached(state),
        )

    def _saved_by(self, state: Tensor) -> tuple[ast.AST, ...]:
        """The ops that keep this storage for backward."""
        found = {node: None for storage in state.storage for node in self._savers.get(storage & ~1, ())}
        return tuple(found)

    @cached_property
    def _savers(self) -> dict[int, list[ast.AST]]:
        found: dict[int, list[ast.AST]] = {}
        for content in self._cells.values():
            if type(content) is Node and content.freed != YES:
                for storage in content.saved:
                    found.setdefault(storage & ~1, []).append(content.node)
        return found

    def _reached(self, state: Tensor) -> tuple[str, ...]:
        """The leaves by the names of parameters, or by how they were made."""
        names: dict[str, None] = {}
        for leaf in sorted(state.leaves):
            if name := self._leaf(leaf):
                names[name] = None
        return tuple(names)

    def _leaf(self, leaf: int) -> str:
        """The name of a leaf; empty where nothing is known of it."""
        content = self._cells.get(leaf)
        if type(content) is not Tensor:
            return self._leaf_names.get(leaf & ~1, "").replace("`", "")
        origin = content.origin
        name = self._leaf_names.get(leaf & ~1) or (_words(origin) if origin is not None else "")
        return name.replace("`", "")

    def way(self, node: ast.AST) -> Way | None:
        """The way of a gradient from an expression, as the run left the graph."""
        state = self._states.get(node)
        if state is None:
            return None
        leaves = set(state.leaves) if state.is_leaf & YES and state.requires_grad & YES else set()
        ops: dict[tuple[str, ast.AST], None] = {}
        seen: set[int] = set()
        # Each node twice: before its inputs, and, when those are done, to be told.
        stack = [(address, False) for address in sorted(state.nodes)]
        while stack and len(seen) < MOST_OPS:
            address, done = stack.pop()
            content = self._cells.get((address, "#node"))
            if type(content) is not Node:
                continue
            if done:
                ops[content.name, content.node] = None
            elif address not in seen:
                seen.add(address)
                leaves |= content.leaves
                stack += [
                    (address, True),
                    *((inner, False) for inner in sorted(content.inputs, reverse=True)),
                ]
        names = {leaf: self._leaf(leaf) for leaf in sorted(leaves)}
        told = {
            name: content.origin if type(content := self._cells.get(leaf)) is Tensor else None
            for leaf, name in names.items()
            if name
        }
        return Way(
            tuple((name, None if origin is None else origin.node) for name, origin in told.items()),
            tuple(ops),
            whole=not stack,
        )

    def tensor(self, node: ast.AST) -> Tensor | None:
        """The whole state of an expression, joined over every visit; None when it never held a tensor."""
        return self._states.get(node)

    def __iter__(self) -> Iterator[ast.AST]:
        """All expressions that held a tensor."""
        return iter(self._states)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._states)
