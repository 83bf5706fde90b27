"""What a rule says: a finding, its reasons and its fixes. Places are `ast` nodes, never offsets."""

import ast
import enum
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from gradvet.autograd.events import CutPath
from gradvet.autograd.memory.domain import YES, Tensor
from gradvet.autograd.reasons import chain
from gradvet.syntax.parse import Module
from gradvet.text import Edit


class Severity(enum.Enum):
    """How bad it is.

    ERROR: torch raises, or a gradient is silently wrong, and the run proves it.
    WARNING: memory, a likely wrong gradient, or a fault that rests on an assumption.
    INFO: a better habit.
    """

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Tag(enum.Enum):
    """How editors may show the place of a rule's findings, where that says something by itself.

    UNNECESSARY: what stands there does nothing, and could go. DEPRECATED: torch has left it behind.
    """

    UNNECESSARY = "unnecessary"
    DEPRECATED = "deprecated"


class Applicability(enum.Enum):
    """SAFE leaves every value and every wanted gradient as it was; UNSAFE does not, and says how."""

    SAFE = "safe"
    UNSAFE = "unsafe"


@dataclass(frozen=True, slots=True)
class Note:
    """A line under the message: a `label` of one word (why, held, cut, assuming), a text, a place."""

    label: str
    text: str
    node: ast.AST | None = None


@dataclass(frozen=True, slots=True)
class Fix:
    """A change that makes the finding go away.

    `title` says what to do, `effect` what that changes. `edits` is called only when the fix is
    asked for.
    """

    title: str
    effect: str
    applicability: Applicability
    edits: Callable[[Module], Sequence[Edit]]


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault at one place. `severity` overrides the rule's own."""

    node: ast.AST
    message: str
    notes: tuple[Note, ...] = ()
    fixes: tuple[Fix, ...] = ()
    severity: Severity | None = None


LONGEST = 60


def weakened(severity: Severity, tensor: Tensor) -> Severity:
    """A fault that rests on an assumption is a warning, however sure the rest is."""
    return Severity.WARNING if tensor.assumes and severity is Severity.ERROR else severity


def code(node: ast.AST) -> str:
    """An expression as a reader sees it in a message: one line, in back quotes, cut when it is long."""
    text = " ".join(ast.unparse(node).split())
    return f"`{text}`" if len(text) <= LONGEST else f"`{text[: LONGEST - 3]}...`"


def why(label: str, tensor: Tensor, skip: ast.AST | None = None) -> tuple[Note, ...]:
    """The chain of reasons behind a tensor's state, a line each, and what it rests on."""
    steps = [step for step in chain(tensor.origin) if step[1] is not skip]
    words = "requires grad: " if tensor.requires_grad == YES else ""
    lines = [
        Note(label if at == 0 else "", f"{words}{text}" if at == 0 else text, node)
        for at, (text, node) in enumerate(steps)
    ]
    assumed = [Note("assuming", words) for words in sorted(tensor.assumes)]
    return (*lines, *assumed)


def called_from(calls: tuple[ast.AST, ...]) -> tuple[Note, ...]:
    """The call that led to a finding inside a function."""
    return (Note("called", code(calls[-1]), calls[-1]),) if calls and isinstance(calls[-1], ast.Call) else ()


MOST_NAMES = 4


def named(names: Sequence[str]) -> str:
    """A few names in a row, in back quotes; the rest is not told one by one."""
    told = [name if "`" in name else f"`{name}`" for name in names[:MOST_NAMES]]
    return ", ".join(told) + (", ..." if len(names) > MOST_NAMES else "")


def without_gradient(event: CutPath) -> str:
    """What a cut means for the loss: a term that is a constant, or parameters that no gradient reaches."""
    if event.term:
        return f"{event.result or 'this term'} is a constant in the loss and adds no gradient"
    return f"no gradient reaches {named(event.leaves) or 'what comes before it'}"


def of_the_loss(event: CutPath) -> tuple[Note, ...]:
    """The loss that a cut belongs to, whose parameters they are, the call that led there, and what is assumed."""
    words = "the term has no effect in {}" if event.term else "{} cannot reach them"
    if event.form == "residual":
        words = "no gradient goes through it in {}"
    notes = [Note("loss", words.format(code(event.loss)), event.loss)]
    if event.owner is not None:
        notes.append(Note("owned", f"by the optimizer {code(event.owner)}", event.owner))
    return (*notes, *called_from(event.calls), *(Note("assuming", words) for words in event.assumes))


def gravity(event: CutPath) -> Severity:
    """An error where none of an optimizer's parameters gets a gradient and nothing is assumed."""
    return Severity.ERROR if event.all_cut and not event.assumes else Severity.WARNING


def cut_off(event: CutPath, message: str, fixes: Iterable[Fix] = ()) -> Finding:
    """The finding of a rule on a cut: where it is, the loss that it belongs to, and how grave that is."""
    return Finding(event.node, message, of_the_loss(event), tuple(fixes), gravity(event))


_OPERATORS = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.Pow: "pow",
    ast.MatMult: "matmul",
    ast.FloorDiv: "//",
    ast.Mod: "%",
}


def operation(node: ast.AST) -> str:
    """The name of the op that an expression runs: `mul` for `a * b`, `tanh` for `torch.tanh(x)`."""
    match node:
        case ast.BinOp(op=op) | ast.AugAssign(op=op):
            return f"`{_OPERATORS.get(type(op), 'an operator')}`"
        case ast.Call(func=ast.Attribute(attr=name)) | ast.Call(func=ast.Name(id=name)):
            return f"`{name}`"
        case ast.Compare():
            return f"the comparison {code(node)}"
    return code(node)


def operations(nodes: tuple[ast.AST, ...]) -> str:
    """The names of a few ops, in the order of the source: `softmax` and `matmul`."""
    ordered = sorted(nodes, key=lambda node: (getattr(node, "lineno", 0), getattr(node, "col_offset", 0)))
    names = list(dict.fromkeys(operation(node) for node in ordered))
    return " and ".join(names[:2])
