"""What autograd may hold: sets of possibilities, and their joins. Joining two paths is union.

The sets that are asked for most (truth, grad mode, dtype class) are bit sets in plain integers: the
interpreter joins them at every statement.
"""

import ast
from typing import Any, NamedTuple

# Truth: the answers that are still possible.
NO = 1
YES = 2
MAYBE = NO | YES

# Grad mode.
GRAD = 1
NO_GRAD = 2
INFERENCE = 4
ENABLED_INFERENCE = 8
"""Inference mode with grad mode switched on inside it: no op is recorded, a custom Function is."""
INFERRING = INFERENCE | ENABLED_INFERENCE
FUNCTIONS_RECORD = GRAD | ENABLED_INFERENCE
"""The grad modes in which a custom Function is recorded."""

# Dtype class: only FLOAT (floating point and complex) can require grad.
FLOAT = 1
INTEGER = 2
ANY_DTYPE = FLOAT | INTEGER

# How a view came to be, as far as torch asks when it is changed in place.
ORDINARY = 1
ONE_OF_MANY = 2
UNRECORDED = 4
EXPANDED = 8

ANY_FN = "*"
"""Stands for any grad_fn in a set of names."""

NO_FN: frozenset[str | None] = frozenset({None})
NOTHING: frozenset[int] = frozenset()
NO_WORDS: frozenset[str] = frozenset()


def switched(before: int, to: int) -> int:
    """The grad modes when these are switched to grad mode on or off; inference mode, which no switch turns off, stays."""
    inside = to if before & ~INFERRING else 0
    if before & INFERRING:
        inside |= (ENABLED_INFERENCE if to & GRAD else 0) | (INFERENCE if to & NO_GRAD else 0)
    return inside


_TRUTH_WORDS = {0: "MAYBE", NO: "NO", YES: "YES", MAYBE: "MAYBE"}


def truth_word(truth: int) -> str:
    """The word for a truth: NO, YES or MAYBE."""
    return _TRUTH_WORDS[truth]


class Origin:
    """Where a state comes from: the node that made it, in words, and the origins of its inputs.

    Two origins are equal when they speak of one node, however they came there: otherwise a loop
    would never settle.
    """

    __slots__ = ("inputs", "node", "text")

    def __init__(self, node: ast.AST, text: str, inputs: "tuple[Origin, ...]" = ()) -> None:
        """`text` is what was done, such as `detach()` or `parameter of Net`."""
        self.node = node
        self.text = text
        self.inputs = inputs

    def __eq__(self, other: object) -> bool:
        """Whether both speak of one node."""
        return isinstance(other, Origin) and self.node is other.node

    def __hash__(self) -> int:
        """By node."""
        return id(self.node)


class Alias(NamedTuple):
    """How a tensor came to share storage behind autograd's back.

    `kind` is detach, data, numpy, copy (by `copy.copy`) or state_dict; `source` the addresses of the tensors it was
    taken from.
    """

    kind: str
    source: frozenset[int]
    node: ast.AST


class Tensor(NamedTuple):
    """What autograd may hold for one tensor. Each field is a set of possibilities.

    `storage`: allocations it may share. `nodes`: graph nodes that may have made it. `leaves`: the
    leaves that a gradient from here would reach. `cuts`: where a path to a leaf was stopped on the
    way here. `assumes`: what has to be true of the unknown parts of the program. `loose`: known
    only as "what a module gave", so it may be a tuple or a dict of tensors. `made_as`: how a view came
    to be, for those who want to change it in place. `base`: of a view, the tensors it may be a view of.
    `counted`: it may have a version counter though it is an inference tensor, so that it can be changed anywhere.
    """

    requires_grad: int = NO
    is_leaf: int = YES
    grad_fn: frozenset[str | None] = NO_FN
    dtype: int = FLOAT
    storage: frozenset[int] = NOTHING
    view: int = NO
    inference: int = NO
    nodes: frozenset[int] = NOTHING
    leaves: frozenset[int] = NOTHING
    cuts: frozenset[int] = NOTHING
    alias: Alias | None = None
    origin: Origin | None = None
    assumes: frozenset[str] = NO_WORDS
    loose: bool = False
    parameter: int = NO
    dead: frozenset[int] = NOTHING
    made_as: int = ORDINARY
    base: frozenset[int] = NOTHING
    counted: bool = False

    def describe(self) -> str:
        """One line in torch's words."""
        names = [ANY_FN] if ANY_FN in self.grad_fn else sorted(str(name) for name in self.grad_fn)
        return (
            f"requires_grad={truth_word(self.requires_grad)} is_leaf={truth_word(self.is_leaf)} "
            f"grad_fn={'|'.join(names)}"
        )

    @property
    def has_graph(self) -> bool:
        """Whether it must hold a graph: it requires grad and was computed."""
        return self.requires_grad == YES and self.is_leaf == NO


def _joined(a: frozenset[Any], b: frozenset[Any]) -> frozenset[Any]:
    return a if b is a or b <= a else a | b


def _dead(a: Tensor, b: Tensor) -> frozenset[int]:
    """The cuts of terms that are constants on whichever path they were added."""
    return (a.dead | b.dead) - (a.cuts - a.dead) - (b.cuts - b.dead)


def join_tensors(a: Tensor, b: Tensor) -> Tensor:
    """The union of two states; `a` itself when it already holds all of `b`."""
    if a is b:
        return a
    joined: tuple[Any, ...] = (
        a.requires_grad | b.requires_grad,
        a.is_leaf | b.is_leaf,
        _joined(a.grad_fn, b.grad_fn),
        a.dtype | b.dtype,
        _joined(a.storage, b.storage),
        a.view | b.view,
        a.inference | b.inference,
        _joined(a.nodes, b.nodes),
        _joined(a.leaves, b.leaves),
        _joined(a.cuts, b.cuts),
        a.alias or b.alias,
        a.origin or b.origin,
        _joined(a.assumes, b.assumes),
        a.loose or b.loose,
        a.parameter | b.parameter,
        a.dead if a.dead == b.dead else _dead(a, b),
        a.made_as | b.made_as,
        _joined(a.base, b.base),
        a.counted or b.counted,
    )
    if joined == a:
        return a
    return Tensor._make(joined)


ANYTHING = Tensor(
    requires_grad=MAYBE,
    is_leaf=MAYBE,
    grad_fn=frozenset({ANY_FN, None}),
    dtype=ANY_DTYPE,
    view=MAYBE,
    inference=MAYBE,
    loose=True,
)
"""The state of a tensor of which nothing is known."""


class Graphed(NamedTuple):
    """That the gradient which a node gives to an input surely has a graph, and to which node or leaf that leads.

    Both are 0 where that is not known.
    """

    input: int
    node: int = 0
    leaf: int = 0


class Node(NamedTuple):
    """A node of the graph: what made it, where it leads, what it saved, whether a backward freed it.

    `saved` are storages that it keeps, whichever way it was made, and `spoiled` is whether one of them
    was changed in place since, which torch sees by its version counter; `leaves` are the leaves it leads to
    directly. `keeps` is whether it keeps anything for backward at all. `sure` are those of the
    inputs that a backward through this node must visit, on whichever path it was made; `gone` is
    whether a backward must have visited the node and freed it. `sure_leaves` are those of its leaves to
    which it leads on every path; `higher` is whether a tensor that requires grad is among what it
    keeps, so that its own gradient has a graph, and `graphed` those inputs of which the gradient surely has one,
    with what is behind it.
    """

    name: str
    node: ast.AST
    inputs: frozenset[int]
    leaves: frozenset[int]
    saved: frozenset[int]
    freed: int = NO
    keeps: int = MAYBE
    sure: frozenset[int] = NOTHING
    gone: int = NO
    spoiled: int = NO
    sure_leaves: frozenset[int] = NOTHING
    higher: int = MAYBE
    graphed: frozenset[Graphed] = frozenset()


def join_nodes(a: Node, b: Node) -> Node:
    """The union of two nodes made at one place."""
    if a is b:
        return a
    joined = Node(
        a.name,
        a.node,
        a.inputs | b.inputs,
        a.leaves | b.leaves,
        a.saved if a.saved is b.saved else a.saved & b.saved,
        a.freed | b.freed,
        a.keeps | b.keeps,
        a.sure if a.sure is b.sure else a.sure & b.sure,
        a.gone | b.gone,
        a.spoiled | b.spoiled,
        a.sure_leaves & b.sure_leaves,
        a.higher | b.higher,
        a.graphed & b.graphed,
    )
    return a if joined == a else joined
