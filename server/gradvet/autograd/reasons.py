"""The chain of reasons behind a state, told from the nearest cause to the farthest."""

import ast
from collections.abc import Iterator, Mapping

from gradvet.autograd.facts import ExpressionState
from gradvet.autograd.memory.domain import ANYTHING, Origin, Tensor, join_tensors

MOST_REASONS = 6


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


class States(Mapping[ast.AST, ExpressionState]):
    """The state of every tensor expression, put into words only when it is asked for."""

    def __init__(self, states: dict[ast.AST, Tensor], vague: set[ast.AST]) -> None:
        """Take over what the machine noted; `vague` are the expressions that also held something unknown."""
        self._states = {
            node: join_tensors(state, ANYTHING) if node in vague else state for node, state in states.items()
        }

    def __getitem__(self, node: ast.AST) -> ExpressionState:
        """The state of an expression; KeyError when it never held a tensor."""
        state = self._states[node]
        return ExpressionState(state.describe(), chain(state.origin))

    def tensor(self, node: ast.AST) -> Tensor | None:
        """The whole state of an expression, joined over every visit; None when it never held a tensor."""
        return self._states.get(node)

    def __iter__(self) -> Iterator[ast.AST]:
        """All expressions that held a tensor."""
        return iter(self._states)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._states)
