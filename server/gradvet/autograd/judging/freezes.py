"""Parameters that are frozen and then, before anything was computed with them, all made to train again."""

import ast
from dataclasses import dataclass, field

from gradvet.autograd.events import FreezeUndone
from gradvet.autograd.machine import Frame, Machine
from gradvet.autograd.memory.domain import Tensor
from gradvet.syntax.parents import Parents

Calls = tuple[ast.AST, ...]


@dataclass(frozen=True, slots=True)
class Frozen:
    """Where a parameter was frozen last, after how much work, and in which outermost call."""

    site: ast.AST
    calls: Calls
    work: int
    outermost: Frame | None


@dataclass(slots=True)
class FreezeNotes:
    """Told of each flag that is set, and of each use after which a freeze has had its effect."""

    machine: Machine
    work: int = 0
    frozen: dict[int, Frozen] = field(default_factory=dict)
    of_site: dict[tuple[ast.AST, Calls], set[int]] = field(default_factory=dict)
    undone: dict[tuple[tuple[ast.AST, Calls], tuple[ast.AST, Calls]], set[int]] = field(default_factory=dict)
    thawed: dict[int, tuple[int, set[int]]] = field(default_factory=dict)
    """After how much work a parameter was made to train again, and with which others."""
    asked: set[int] = field(default_factory=set)
    """The parameters that were made to train after they had been frozen."""
    ever_asked: set[int] = field(default_factory=set)
    """The parameters that were made to train at any time."""

    def used(self) -> None:
        """A module was called, a backward or a step was made, an optimizer was given its parameters."""
        self.work += 1

    def flag_set(self, site: ast.AST, leaf: int, *, trains: bool) -> None:
        """The flag of a parameter is set."""
        outermost = self.machine.frames[1] if len(self.machine.frames) > 1 and self.machine.alone else None
        before, place = self.frozen.get(leaf), (site, self.machine.where())
        if trains:
            self.ever_asked.add(leaf)
        if trains and before is not None:
            self.asked.add(leaf)
        elif not trains:
            self.asked.discard(leaf)
        if not trains:
            work, together = self.thawed.pop(leaf, (-1, set[int]()))
            if work == self.work:
                together.discard(leaf)  # it was to train only for whoever looks at the flag in between
            self.frozen[leaf] = Frozen(*place, self.work, outermost)
            self.of_site.setdefault(place, set()).add(leaf)
        elif (
            before is not None
            and (before.work, before.outermost) == (self.work, outermost)
            and _is_plain(*place)
        ):
            together = self.undone.setdefault(((before.site, before.calls), place), set())
            together.add(leaf)
            self.thawed[leaf] = (self.work, together)

    def some_train(self, leaf: int) -> None:
        """Some of the parameters for which a leaf stands are made to train."""
        self.ever_asked.add(leaf)
        if leaf in self.frozen:
            self.asked.add(leaf)

    def parted(self, whole: int, part: int) -> None:
        """Some of the parameters for which a leaf stands are looked at by themselves."""
        if whole in self.frozen:
            self.frozen.setdefault(part, self.frozen[whole])

    def edited(self, state: Tensor) -> None:
        """A frozen parameter was changed in place, which torch refuses while it trains: that was what it was frozen for."""
        for at in state.storage:
            self.frozen.pop(at, None)

    def conclude(self, parents: Parents) -> None:
        """Tell of those places that leave nothing of a freeze, whichever way the program takes."""
        for (frozen, thawed), leaves in self.undone.items():
            freeze, (thaw, calls) = frozen[0], thawed
            if freeze is thaw:  # by a function for both: where it is called they are two
                pairs = enumerate(zip(frozen[1], thawed[1], strict=False))
                at = next((at for at, (one, other) in pairs if one is not other), None)
                if at is None:
                    continue
                freeze, thaw, calls = frozen[1][at], thawed[1][at], thawed[1][:at]
            one = _is_one_item(thaw) and not _is_one_item(freeze)
            if leaves >= self.of_site[frozen] and not one and not _is_a_choice(thaw, freeze, parents):
                self.machine.emit(FreezeUndone(thaw, calls, freeze))


def _is_a_choice(thaw: ast.AST, freeze: ast.AST, parents: Parents) -> bool:
    """Whether parameters are made to train only on one way on from where they were frozen, or on another way."""
    around = {freeze}
    above = parents.get(freeze)
    while above is not None:
        around.add(above)
        above = parents.get(above)
    below, above = thaw, parents.get(thaw)
    while above is not None and above not in around:
        if isinstance(above, (ast.If, ast.match_case)):
            return True
        below, above = above, parents.get(above)
    if isinstance(above, ast.If):
        return (below in above.body) is not any(one in around for one in above.body)
    return isinstance(above, ast.Match)


def _is_one_item(site: ast.AST) -> bool:
    """Whether a flag is set of the item under an index that is written out: `weights[0].requires_grad = True`."""
    match site:
        case (
            ast.Assign(targets=[ast.Attribute(value=ast.Subscript(slice=ast.Constant()))])
            | ast.Call(func=ast.Attribute(value=ast.Subscript(slice=ast.Constant())))
        ):
            return True
    return False


def _is_plain(site: ast.AST, calls: Calls) -> bool:
    """Whether it is said here that parameters are to train: `= True`, `set_trainable(True)`; others restore a flag."""
    match site:
        case ast.Assign(value=ast.Constant(value=True)):
            return True
        case ast.Assign(value=ast.Name()) if calls:
            return _says_true(calls[-1])
        case ast.Call(args=[], keywords=[]):
            return True
        case ast.Call(args=[ast.Name()], keywords=[]) if calls:
            return _says_true(calls[-1])
        case ast.Call():
            return _says_true(site)
    return False


def _says_true(call: ast.AST) -> bool:
    """Whether a call is given `True` and no other constant, as its last argument."""
    match call:
        case ast.Call(args=[*_, ast.Constant(value=True)], keywords=[]):
            return True
        case ast.Call(keywords=[ast.keyword(value=ast.Constant(value=True))]):
            return True
    return False
