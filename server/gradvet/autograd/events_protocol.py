"""What a training step does with its gradients: cleared, clipped, unscaled and used in the right order or not."""

import ast
from dataclasses import dataclass

from gradvet.autograd.events import Event


@dataclass(frozen=True, slots=True)
class GradientNotCleared(Event):
    """`node` adds to a gradient that `step` has used before and nothing has cleared.

    `node` is the backward, or the place where a gradient is read that the program uses by itself (`manual`); `repeated`
    is whether the loop is in this file, `known` whether what steps is known to be an optimizer. `leaves` are the names of
    those that nothing clears, where others are cleared; `left` is the backward of another network's loss that has filled
    them meanwhile.
    """

    step: ast.AST
    manual: bool
    repeated: bool
    known: bool
    leaves: tuple[str, ...] = ()
    left: ast.AST | None = None


@dataclass(frozen=True, slots=True)
class GradientDropped(Event):
    """`node` clears what `backward` has computed before `step` uses it; `loop` is the loop in which each pass does so.

    `known` is whether what steps is known to be an optimizer.
    """

    backward: ast.AST
    step: ast.AST
    loop: ast.AST | None
    known: bool = True


@dataclass(frozen=True, slots=True)
class StepTooEarly(Event):
    """`node` is a step between `clear` and `backward`: there is nothing for it to use.

    `known` is whether what steps is known to be an optimizer, `dropped` whether the next clear drops what `backward` gives.
    """

    clear: ast.AST
    backward: ast.AST
    known: bool
    dropped: bool = True


@dataclass(frozen=True, slots=True)
class ClipMisplaced(Event):
    """`node` clips no gradient, or not the right one.

    `how` is early (no backward has filled it yet), late (a step has used it), other (it is another network's step that
    comes next), scaled (by a scaler) or empty (the generator of parameters is used up). `other` is where the backward,
    the step, the scaling or the using up is; `scaler` and `optimizer` are expressions in the scaler's step that comes later.
    """

    how: str
    other: ast.AST | None
    scaler: ast.expr | None
    optimizer: ast.expr | None
    assumes: frozenset[str]


@dataclass(frozen=True, slots=True)
class ScalerMisused(Event):
    """A gradient scaler is used out of order.

    `how` is bypassed (`optimizer.step()` on scaled gradients), update (a second step without `update()`),
    unscaled (`unscale_` twice), late (`unscale_` after the step); `other` is the first of the two; `sure` whether the scaler
    is known to be enabled.
    """

    how: str
    other: ast.AST | None
    scaler: ast.expr | None
    sure: bool
