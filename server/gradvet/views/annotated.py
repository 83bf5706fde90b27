"""What to write below each line of a source: the states of the expressions that begin there, said once."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gradvet.analysis import States
from gradvet.autograd.facts import AutogradState, Expression
from gradvet.syntax.parse import Module

_LONGEST = 44
_MOST_SHARERS = 3
_SAID = {
    "requires_grad": {"yes": "requires grad", "no": "does not require grad", "maybe": "may require grad"},
    "is_leaf": {"yes": "leaf", "no": "not a leaf", "maybe": "may be a leaf"},
    "is_view": {"yes": "a view", "maybe": "may be a view"},
    "is_inference": {"yes": "an inference tensor", "maybe": "may be an inference tensor"},
}
_MODES = {"grad": "grad mode on", "no_grad": "no_grad", "inference": "inference_mode"}


@dataclass(frozen=True, slots=True)
class Remark:
    """An expression that begins on a row, on one line and not too long, and its state in words."""

    row: int
    code: str
    words: str


@dataclass(frozen=True, slots=True)
class Remarks:
    """What to write below the rows; `assumed` are the assumptions that the words refer to by number."""

    below: Sequence[Remark]
    assumed: Sequence[str]


def remarks(states: States) -> Remarks:
    """The states that differ from what was said before of the same words, inner expressions first."""
    assumed: dict[str, int] = {}
    said: dict[str, str] = {}
    below = []
    expressions = states.expressions or ()
    owners, bound = _owners(expressions), _bound(states.module)
    for expression in sorted(expressions, key=_order):
        code = " ".join(states.module.text(expression.node).split())
        words = " · ".join(_words(states.module, expression, owners, assumed))
        if words and said.get(code) != words:
            said.update(dict.fromkeys((code, *bound.get(expression.node, ())), words))
            short = code if len(code) <= _LONGEST else code[: _LONGEST - 1] + "…"
            below.append(Remark(expression.node.lineno, short, words))
    return Remarks(below, tuple(assumed))


def _order(expression: Expression) -> tuple[int, int, int, int]:
    node = expression.node
    return node.lineno, node.end_lineno or 0, node.end_col_offset or 0, -node.col_offset


def _words(
    module: Module, expression: Expression, owners: dict[int, Expression], assumed: dict[str, int]
) -> Iterator[str]:
    state = expression.state
    match expression.kind:
        case "tensor" if state is not None:
            yield from _state_words(state)
            yield " or ".join(_MODES[mode] for mode in expression.grad_mode)
        case "ndarray":
            yield "a numpy array"
        case "module" if isinstance(expression.node, (ast.Name, ast.Attribute)):
            yield "a module"
        case "unknown":
            yield f"unknown: {expression.reason}" if expression.reason else "unknown"
    yield from _sharing(module, expression, owners)
    if state is not None and state.assumes:
        numbers = [f"[{assumed.setdefault(words, len(assumed) + 1)}]" for words in state.assumes]
        yield f"assuming {' '.join(numbers)}"


def _state_words(state: AutogradState) -> Iterator[str]:
    yield _SAID["requires_grad"][state.requires_grad]
    yield _SAID["is_leaf"][state.is_leaf]
    if state.grad_fn != (None,):
        yield "grad_fn " + " or ".join("unknown" if name == "*" else str(name) for name in state.grad_fn)
    for field in ("is_view", "is_inference"):
        if (truth := getattr(state, field)) != "no":
            yield _SAID[field][truth]


def _bound(module: Module) -> dict[ast.AST, list[str]]:
    """The names to which an assignment binds the value of an expression, so that they need not be told of."""
    return {
        node.value: [target.id for target in node.targets if isinstance(target, ast.Name)]
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Assign)
    }


def _owners(expressions: Sequence[Expression]) -> dict[int, Expression]:
    """For each storage the first name or attribute in the text that may hold it."""
    owners: dict[int, Expression] = {}
    for expression in expressions:
        if isinstance(expression.node, (ast.Name, ast.Attribute)):
            for group in expression.storage:
                if isinstance(group, int):
                    owners.setdefault(group, expression)
    return owners


def _sharing(module: Module, expression: Expression, owners: dict[int, Expression]) -> Iterator[str]:
    """With which names above, or within, an expression shares storage."""
    own = module.text(expression.node)
    sharers: dict[str, Expression] = {}
    for group in expression.storage:
        owner = owners.get(group) if isinstance(group, int) else None
        if owner is not None and _start(owner) <= _start(expression) and module.text(owner.node) != own:
            sharers.setdefault(module.text(owner.node), owner)
    if not sharers:
        return
    rows = {name: module.source.row_words(owner.node.lineno) for name, owner in sharers.items()}
    names = [f"{name} ({row})" for name, row in rows.items()][:_MOST_SHARERS]
    others = [*expression.storage, *(group for owner in sharers.values() for group in owner.storage)]
    verb = "shares" if len(set(others)) == 1 else "may share"
    yield f"{verb} storage with {', '.join(names)}{' and others' * (len(sharers) > _MOST_SHARERS)}"


def _start(expression: Expression) -> tuple[int, int]:
    return expression.node.lineno, expression.node.col_offset
