"""A gradient that flows where none is meant to go."""

import ast
from dataclasses import dataclass

from gradvet.autograd.events import Event


@dataclass(frozen=True, slots=True)
class TargetInGraph(Event):
    """Something a loss only compares or weights with still leads a gradient back to where it was computed.

    `kind` is bootstrap (data plus a part of a network's own value), weight (of a log-probability), teacher, branch (of a
    loss that only pulls two branches together), follower (a network that is set from another one), itself (a network that
    is compared with itself) or option (what the option that detaches others leaves as it is). `operand` is
    its expression in `use`, the op (or the backward) that takes it; `source` is where it comes from; `owned` whether
    an optimizer owns parameters that are reached this way. `trained` is the distance that trains what it was computed
    from, where that alone tells that it has a graph.
    """

    kind: str
    operand: ast.expr | None
    use: ast.AST
    source: ast.AST | None
    owned: bool
    trained: ast.AST | None = None


@dataclass(frozen=True, slots=True)
class StateCut(Event):
    """In each pass of a `loop` the state of a recurrent cell, called at `cell`, is cut, and a backward comes later."""

    cell: ast.AST
    loop: ast.AST | None


@dataclass(frozen=True, slots=True)
class NanBehindMask(Event):
    """An op has no finite derivative where its result is left out by `mask` at `masked`, and `backward` comes by it.

    There is none in the file where whoever trains a module runs it.
    """

    masked: ast.AST
    mask: ast.expr
    backward: ast.AST | None


@dataclass(frozen=True, slots=True)
class RootOfZero(Event):
    """A root is taken of the squared differences of all pairs of some things, those of each with itself among them."""

    difference: ast.AST
    backward: ast.AST | None


@dataclass(frozen=True, slots=True)
class FakeInGraph(Event):
    """`node`, which another network made, enters a network with its graph, and `backward`, meant for that one, walks it all.

    `call` is where it enters; `step` the step of the other's optimizer, and `mixed` whether that uses what `backward` has
    left; otherwise it was cleared before. `needed` is the backward, if there is one, that finds the other's graph freed,
    or that has freed it before when it is `gone`; `assumes` is what has to be true of networks that are not known.
    """

    call: ast.AST
    backward: ast.AST
    step: ast.AST
    mixed: bool
    needed: ast.AST | None
    assumes: frozenset[str] = frozenset()
    gone: bool = False


@dataclass(frozen=True, slots=True)
class ReferenceWithGrad(Event):
    """A model that is only consulted is run as if it were to be trained.

    Either `node` puts it into eval mode, `related` is a call of it, and `backward` fills the gradients of its parameters,
    which nobody uses, on its way to others. Or nothing has to pass through it: `node` is the call, `related` puts it into
    eval mode, and `cut` detaches what it gave at once, or `backward` goes back into it for nothing.
    """

    related: ast.AST
    backward: ast.AST | None
    cut: ast.AST | None
    nothing_passes: bool
