"""What may lie in a leaf's `.grad`, seen from the training step's protocol: cleared, filled, used, filled again."""

from typing import NamedTuple

from gradvet.autograd.memory.domain import NO, YES

CLEAR = 1
"""Nothing: cleared after it was used, or never filled."""
FRESH = 2
"""The gradients of one or more backwards, and no step has used them."""
USED = 4
"""A step has used it, and nothing has cleared it since."""
MIXED = 8
"""A backward has added to what a step had used already."""
DROPPED = 16
"""Nothing: it was cleared before any step could use it."""
PARTIAL = 32
"""What a backward gave after what other backwards gave was dropped."""
UNSEEN = 64
"""Anything: somebody else may have changed it."""
BEFORE = 128
"""Anything: nothing of this run has touched it yet, and what came before is not in this file."""

Numbers = frozenset[int]
NONE: Numbers = frozenset()


class Gradient(NamedTuple):
    """Sets of possibilities: the phases, and by number the backwards in it, the last clears and steps.

    `lost` pairs a backward with the clear that dropped what it gave, since the last step.

    `scaled` is whether it is still multiplied by a scaler's scale; `read` whether the program has looked at it, or
    somebody unseen may have filled it.
    """

    phases: int = CLEAR
    backwards: Numbers = NONE
    lost: frozenset[tuple[int, int]] = frozenset()
    clears: Numbers = NONE
    steps: Numbers = NONE
    scaled: int = NO
    read: bool = False


_BACKWARD = {
    CLEAR: FRESH,
    FRESH: FRESH,
    USED: MIXED,
    MIXED: MIXED,
    DROPPED: PARTIAL,
    PARTIAL: PARTIAL,
    UNSEEN: FRESH,
    BEFORE: FRESH,
}
_STEP = {
    CLEAR: CLEAR,
    FRESH: USED,
    USED: USED,
    MIXED: USED,
    DROPPED: CLEAR,
    PARTIAL: USED,
    UNSEEN: USED,
    BEFORE: USED,
}
_CLEARED = {
    CLEAR: CLEAR,
    FRESH: DROPPED,
    USED: CLEAR,
    MIXED: DROPPED,
    DROPPED: DROPPED,
    PARTIAL: DROPPED,
    UNSEEN: CLEAR,
    BEFORE: CLEAR,
}
HOLDS_NEW = FRESH | MIXED | PARTIAL
MAY_HOLD = HOLDS_NEW | USED | UNSEEN | BEFORE


def _move(phases: int, table: dict[int, int]) -> int:
    out = 0
    for phase, following in table.items():
        if phases & phase:
            out |= following
    return out


def after_backward(g: Gradient, number: int, scaled: int) -> Gradient:
    """A backward has added to it."""
    held = g.backwards if g.phases & (HOLDS_NEW | USED) else NONE
    empty = not g.phases & MAY_HOLD
    return g._replace(
        phases=_move(g.phases, _BACKWARD),
        backwards=held | {number},
        scaled=scaled if empty else g.scaled | scaled,
        read=False,
    )


def after_step(g: Gradient, number: int) -> Gradient:
    """A step has used it."""
    return g._replace(phases=_move(g.phases, _STEP), lost=frozenset(), steps=frozenset({number}))


def after_clear(g: Gradient, number: int) -> Gradient:
    """It was cleared."""
    dropped = g.backwards if g.phases & HOLDS_NEW and not g.read else NONE
    lost = g.lost | {(backward, number) for backward in dropped}
    return g._replace(
        phases=_move(g.phases, _CLEARED),
        backwards=NONE,
        lost=lost,
        clears=frozenset({number}),
        scaled=NO,
        read=False,
    )


def after_unseen_backward(g: Gradient) -> Gradient:
    """Something that is not seen may have run a backward: what was empty may be filled."""
    if not g.phases & (CLEAR | DROPPED):
        return g
    # What is known to have filled it was used: what is new is not from there, and nothing known is lost with it.
    return g._replace(phases=g.phases | FRESH, read=g.read or not g.phases & HOLDS_NEW)


def given() -> Gradient:
    """`p.grad = …`: the program has put something there itself."""
    return Gradient(FRESH)


def unseen(phase: int = UNSEEN) -> Gradient:
    """It may be anything."""
    return Gradient(phase, scaled=NO | YES)


def join_gradients(a: Gradient, b: Gradient) -> Gradient:
    """The union of two. A gradient that is empty is neither scaled nor unscaled."""
    if a == b:
        return a
    filled = [g.scaled for g in (a, b) if g.phases & MAY_HOLD] or [a.scaled, b.scaled]
    return Gradient(
        a.phases | b.phases,
        a.backwards | b.backwards,
        a.lost | b.lost,
        a.clears | b.clears,
        a.steps | b.steps,
        filled[0] | filled[-1],
        a.read or b.read,
    )
