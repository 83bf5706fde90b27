"""What a run under torch showed, as plain values that travel as JSON. Knows no torch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple


class Range(NamedTuple):
    """Where an expression stands, as `ast` counts: rows from 1, columns in UTF-8 bytes from 0."""

    row: int
    column: int
    end_row: int
    end_column: int


class State(NamedTuple):
    """What torch held for a tensor at one moment, and the grad mode of that moment.

    `grad_fn` is the name of the node's class, or None. `is_leaf` and `grad_fn` are torch's answer;
    `broken` says that torch refused to give one, as it does for a view whose history is lost.
    """

    requires_grad: bool
    is_leaf: bool
    grad_fn: str | None
    is_view: bool
    is_inference: bool
    grad_mode: str
    broken: bool = False

    def __str__(self) -> str:
        """One line in torch's words."""
        words = [
            f"requires_grad={self.requires_grad} is_leaf={self.is_leaf} grad_fn={self.grad_fn}",
            *(word for word in ("is_view", "is_inference", "broken") if getattr(self, word)),
            f"[{self.grad_mode}]",
        ]
        return " ".join(words)


class Seen(NamedTuple):
    """All that one expression held over the run: states of tensors, the types of other values, and how often."""

    states: frozenset[State]
    others: frozenset[str]
    visits: int = 1


@dataclass(frozen=True, slots=True)
class Failure:
    """How a run ended early; `row` is the innermost line of the program, or None."""

    type: str
    message: str
    row: int | None

    def __str__(self) -> str:
        """For people."""
        return f"{self.type} on line {self.row}: {self.message}"


@dataclass(frozen=True, slots=True)
class Program:
    """A program to run: its text, the name of its file, the folder its imports come from."""

    text: str
    path: str
    folder: str


@dataclass(frozen=True, slots=True)
class Observation:
    """One run: what each expression held, and the exception that ended it, if one did."""

    seen: Mapping[Range, Seen]
    failure: Failure | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain data, in the order of the text."""
        return {
            "expressions": [
                {
                    "range": list(place),
                    "states": [state._asdict() for state in sorted(seen.states, key=str)],
                    "others": sorted(seen.others),
                    "visits": seen.visits,
                }
                for place, seen in sorted(self.seen.items())
            ],
            "failure": None
            if self.failure is None
            else {"type": self.failure.type, "message": self.failure.message, "row": self.failure.row},
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Observation":
        """The observation that `to_json` made this of."""
        seen = {
            Range(*row["range"]): Seen(
                frozenset(State(**state) for state in row["states"]), frozenset(row["others"]), row["visits"]
            )
            for row in data["expressions"]
        }
        return cls(seen, Failure(**data["failure"]) if data["failure"] else None)
