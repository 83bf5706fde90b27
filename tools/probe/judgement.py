"""Holds what the dry run says against what torch showed, expression by expression."""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gradvet.autograd.memory.domain import ANY_FN, MAYBE, NO, YES, Tensor, truth_word
from gradvet.autograd.reasons import States
from gradvet.autograd.run import run
from gradvet.project import reader
from gradvet.syntax.packages import Read
from gradvet.syntax.parse import Module, parse
from gradvet.text import Source
from tools.probe.instrument import place
from tools.probe.observed import Observation, Program, Range, Seen, State
from tools.probe.visits import Visits, watching

_TRUTHS = {
    "requires_grad": "requires_grad",
    "is_leaf": "is_leaf",
    "is_view": "view",
    "is_inference": "inference",
}
NOT_A_TENSOR = "a tensor"


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A value that torch held and the dry run rules out; `field` may be "a tensor" itself.

    `root` is False for a name, and where a part of the expression contradicts in the same field: the
    fault lies earlier.
    """

    path: str
    place: Range
    text: str
    field: str
    observed: str
    said: str
    root: bool = True

    def __str__(self) -> str:
        """One line that an editor can follow."""
        return (
            f"{self.path}:{self.place.row}:{self.place.column + 1}: `{self.text}` {self.field}: "
            f"torch {self.observed}, the dry run {self.said}"
        )


@dataclass(frozen=True, slots=True)
class Judgement:
    """What became of one program.

    `tensors` counts the expressions that held a tensor; of them, `unknown` where `requires_grad` is
    MAYBE though torch always held the same, `assumed` where the state rests on assumptions, and
    `missing` by why there is no state.
    """

    contradictions: tuple[Contradiction, ...] = ()
    tensors: int = 0
    unknown: int = 0
    assumed: int = 0
    missing: Counter[str] = field(default_factory=Counter)


def modules_around(program: Program) -> Read | None:
    """Gives the texts of the modules that a program imports from its folder, which torch's run imports too."""
    return reader(Path(program.path)) if program.folder else None


def judge(program: Program, observation: Observation) -> Judgement:
    """Run the program dry and compare; what the dry run raises is raised."""
    module = parse(Source(program.path, program.text))
    with watching() as visits:
        states = run(module, read=modules_around(program)).states
    if not isinstance(states, States):
        raise TypeError("the dry run keeps its states in another way")
    return compare(module, {node: states.tensor(node) for node in states}, visits, observation)


def compare(
    module: Module, states: Mapping[ast.AST, Tensor | None], visits: Visits, observation: Observation
) -> Judgement:
    """Join what both say by the places of expressions."""
    nodes = {place(node): node for node in ast.walk(module.tree) if isinstance(node, ast.expr)}
    against: dict[ast.expr, list[tuple[str, str, str]]] = {}
    missing: Counter[str] = Counter()
    tensors = unknown = assumed = 0
    for where, seen in sorted(observation.seen.items()):
        node = nodes[where]
        said = states.get(node)
        tensors += bool(seen.states)
        if said is None:
            if seen.states:
                missing[_why(node, visits)] += 1
        elif said.assumes or said.loose:
            assumed += bool(seen.states)
        else:
            answers = {state.requires_grad for state in seen.states}
            unknown += said.requires_grad == MAYBE and len(answers) == 1
            against[node] = list(_against(said, seen, visits.get(node, set())))
    return Judgement(tuple(_told(module, against)), tensors, unknown, assumed, missing)


def _told(module: Module, against: Mapping[ast.expr, list[tuple[str, str, str]]]) -> Iterator[Contradiction]:
    for node, found in against.items():
        parts = [part for part in ast.walk(node) if isinstance(part, ast.expr) and part is not node]
        inherited = {words[0] for part in parts for words in against.get(part, ())}
        text = " ".join(module.text(node).split())
        for name, observed, said in found:
            root = not isinstance(node, ast.Name) and name not in inherited
            yield Contradiction(module.source.path, place(node), text, name, observed, said, root)


def _why(node: ast.expr, visits: Visits) -> str:
    kinds = visits.get(node)
    return "not visited" if kinds is None else " or ".join(sorted(kinds))


def _against(said: Tensor, seen: Seen, kinds: set[str]) -> Iterator[tuple[str, str, str]]:
    """The fields in which torch held what the state rules out: field, observed, said.

    `kinds` are the kinds of value that the dry run met at the place.
    """
    if not seen.states and kinds <= {"Tensor"}:
        yield NOT_A_TENSOR, "held " + ", ".join(sorted(seen.others)), said.describe()
    found: dict[tuple[str, str, str], None] = {}
    for state in sorted(seen.states, key=str):
        found |= dict.fromkeys(_state_against(said, state))
    yield from found


def _state_against(said: Tensor, state: State) -> Iterator[tuple[str, str, str]]:
    for name, attribute in _TRUTHS.items():
        if state.broken and name == "is_leaf":
            continue
        observed, possible = getattr(state, name), getattr(said, attribute)
        if not possible & (YES if observed else NO):
            yield name, str(observed), truth_word(possible)
    if not state.broken and ANY_FN not in said.grad_fn and state.grad_fn not in said.grad_fn:
        yield "grad_fn", str(state.grad_fn), "|".join(sorted(str(name) for name in said.grad_fn))
