"""Derivatives that are infinite just where a mask leaves a value out: what comes back is 0 * inf, which is NaN.

A mask chooses values. Of those that it leaves out the gradient is a zero, which goes on backwards through the op that
made them; where the op has no finite derivative, nothing is left of the zero (measured on torch 2.13).
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from gradvet.autograd.events_flow import NanBehindMask, RootOfZero
from gradvet.autograd.judging.filled import LOGARITHMS, filled_operand
from gradvet.autograd.judging.flow import (
    DIFFERENCE,
    PRODUCT,
    QUOTIENT,
    SUM,
    Flow,
    Made,
    Part,
    operands_of,
)
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import NO, Tensor
from gradvet.autograd.memory.values import Const, Value

POWERS = frozenset({"pow", "**", "pow_"})
_ROOTS = frozenset({"sqrt", "rsqrt"})
_POINTWISE = (
    SUM | DIFFERENCE | PRODUCT | QUOTIENT | POWERS | LOGARITHMS | _ROOTS
    | {"neg", "exp", "abs", "square", "tanh", "sigmoid", "float", "double", "to", "clone", "contiguous"}
)  # fmt: skip
_SHAPES = frozenset({"unsqueeze", "squeeze", "view", "reshape", "expand", "expand_as", "view_as", "flatten"})
_SAME = _SHAPES | {"float", "double", "to", "type_as", "type", "bool", "detach", "clone", "contiguous", "cpu"}
"""Methods that leave it as it was whether a value is zero, or negative."""
_SMALL = 0.01
"""A bound up to which a comparison is there to leave out a zero."""
_COMPARED = {
    "gt": ast.Gt, "greater": ast.Gt, "ge": ast.GtE, "greater_equal": ast.GtE, "lt": ast.Lt, "less": ast.Lt,
    "le": ast.LtE, "less_equal": ast.LtE, "eq": ast.Eq, "ne": ast.NotEq, "not_equal": ast.NotEq,
}  # fmt: skip
_MIRRORED = {ast.Gt: ast.Lt, ast.GtE: ast.LtE, ast.Lt: ast.Gt, ast.LtE: ast.GtE}
_OPPOSITE = {
    ast.Gt: ast.LtE, ast.GtE: ast.Lt, ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
}  # fmt: skip
_SUMMED = _SHAPES | POWERS | {"square", "sum"}
_MOST = 40  # ops that are looked at behind one mask


@dataclass(slots=True)
class Masked:
    """Looks at each backward for values that are masked after an op, and not before it."""

    flow: Flow
    told: set[ast.AST] = field(default_factory=set)
    bounds: dict[ast.AST, float | None] = field(default_factory=dict)
    """What comparisons compare with, where it is always the same number."""
    of_storage: dict[int, set[ast.AST]] = field(default_factory=dict)
    """The comparisons of what lies on a storage."""
    outdated: set[ast.AST] = field(default_factory=set)
    """Comparisons of what was changed in place since."""

    def changed(self, state: Tensor) -> None:
        """A tensor is changed in place: what was found of it holds no more."""
        for at in state.storage:
            self.outdated |= self.of_storage.get(at & ~1, set())

    def compared(self, site: ast.AST, value: Value, bound: Value) -> None:
        """A tensor is compared with something: it is kept when that is always the same number."""
        for _, state in self.flow.machine.tensors(value):
            for at in state.storage:
                self.of_storage.setdefault(at & ~1, set()).add(site)
        self.outdated.discard(site)
        number = bound.value if type(bound) is Const and bound.kind in ("int", "float") else None
        self.bounds[site] = number if self.bounds.get(site, number) == number else None

    def look(self, nodes: Iterable[int], backward: ast.AST | None) -> None:
        """Look for them on the way of a backward, which may be that of whoever trains a module."""
        for node in nodes:
            made = self.flow.made(node)
            if made is None:
                continue
            if made.name in ("where", "masked_fill", "masked_fill_", "[...]"):
                self._masked(made, backward)
            elif made.name == "nan_to_num":
                self._replaced(made, backward)
            elif made.name == "sqrt" or (made.name in POWERS and made.constants == (0.5,)):
                self._distance(made, backward)

    def _masked(self, made: Made, backward: ast.AST | None) -> None:
        m = self.flow.machine
        for mask, part, inside in _choices(made):
            guards = list(_guards(m, mask, 0, taken=inside))
            for op in self._behind(part):
                if op.site in self.told or not isinstance(op.site, ast.expr):
                    continue
                filled = filled_operand(self.flow, op)
                if filled is not None and _leaves_out(m, mask, filled.mask, taken=inside, filled=filled.true):
                    self.told.add(op.site)
                    m.emit(NanBehindMask(op.site, op.calls, made.site, mask, backward))
                    continue
                for guarded, lets in guards:
                    if self._is_singular(op, guarded, lets):
                        self.told.add(op.site)
                        m.emit(NanBehindMask(op.site, op.calls, made.site, mask, backward))
                        break

    def _replaced(self, made: Made, backward: ast.AST | None) -> None:
        """NaN is replaced by a number, after the op that makes one wherever a mask has filled what it takes."""
        for part in made.parts:
            for op in self._behind(part):
                filled = filled_operand(self.flow, op) if op.site not in self.told else None
                if filled is not None and isinstance(op.site, ast.expr):
                    self.told.add(op.site)
                    event = NanBehindMask(op.site, op.calls, made.site, filled.mask, backward)
                    self.flow.machine.emit(event)

    def _distance(self, root: Made, backward: ast.AST | None) -> None:
        """A root of squared differences of all pairs of some things: of each with itself, it is the root of zero."""
        m, made, squared = self.flow.machine, root, False
        while made.name not in DIFFERENCE:
            squared = squared or made.name == "square" or (made.name in POWERS and made.constants == (2,))
            inner = [part for part in made.parts if part.sure and len(part.nodes) == 1]
            below = self.flow.made(min(inner[0].nodes)) if len(inner) == 1 and len(made.asking) == 1 else None
            if below is None or below.name not in _SUMMED | DIFFERENCE or (made is not root and made.others):
                return
            made = below
        sides = [_without_axes(m, side) for side in operands_of(made.site)]
        known = squared and len(sides) == 2 and isinstance(root.site, ast.expr)  # noqa: PLR2004
        if known and root.site not in self.told and _is_same(m, sides[0], sides[1]):
            self.told.add(root.site)
            m.emit(RootOfZero(root.site, root.calls, made.site, backward))

    def _behind(self, part: Part) -> Iterator[Made]:
        """The ops by which each gradient of an operand surely comes, as long as they take element by element."""
        stack, seen = [at & ~1 for at in part.nodes], set[int]()
        while stack and len(seen) < _MOST:
            at = stack.pop()
            made = self.flow.made(at) if at not in seen else None
            seen.add(at)
            if made is None or made.name not in _POINTWISE | _SHAPES | {"reciprocal"}:
                continue
            yield made
            for inner in made.parts:
                if inner.sure and len(inner.nodes) == 1:
                    stack += [node & ~1 for node in inner.nodes]

    def _is_singular(self, op: Made, guarded: ast.expr, lets: type[ast.cmpop]) -> bool:
        """Whether an op has no finite derivative at what a guard leaves out of its very operand."""
        operand, negative = _singular_operand(op)
        if operand is None or not any(part.sure for part in op.parts):
            return False
        if lets is ast.GtE and not negative:
            return False
        m = self.flow.machine
        signed = _absolute(guarded) if lets is ast.NotEq else None
        return _is_same(m, operand, guarded) or (signed is not None and _is_same(m, operand, signed))


def _choices(made: Made) -> Iterator[tuple[ast.expr, Part, bool]]:
    """A mask with the operand that it chooses from, and whether it is taken where the mask is true."""
    roles = {part.role: part for part in made.parts if part.sure and part.nodes}
    match made.site:
        case ast.Call(func=ast.Attribute(attr="where"), args=[mask, _, _]) if made.name == "where":
            yield from ((mask, roles[role], role == "input") for role in ("input", "other") if role in roles)
        case ast.Call(func=ast.Attribute(attr="where"), args=[mask, _]) if made.name == "where":
            yield from ((mask, roles[role], role == "self") for role in ("self", "other") if role in roles)
        case ast.Call(func=ast.Attribute(attr="masked_fill" | "masked_fill_"), args=[mask, _]) if (
            "self" in roles
        ):
            yield mask, roles["self"], False
        case ast.Subscript(slice=mask) if "self" in roles:
            yield mask, roles["self"], True


def _guards(
    m: Machine, mask: ast.expr, depth: int, *, taken: bool
) -> Iterator[tuple[ast.expr, type[ast.cmpop]]]:
    """What a mask that is (or is not) true says of values: what is compared, and whether it is > 0, >= 0 or != 0."""
    mask = _made_by(m, mask)
    if depth > _MOST // 10 or mask in m.judge.masked.outdated:
        return
    bound = m.judge.masked.bounds.get(mask)
    match mask:
        case ast.UnaryOp(op=ast.Invert(), operand=inner):
            yield from _guards(m, inner, depth + 1, taken=not taken)
        case ast.Call(func=ast.Attribute(value=inner, attr="logical_not"), args=[]):
            yield from _guards(m, inner, depth + 1, taken=not taken)
        case ast.BinOp(left=left, op=op, right=right) if isinstance(op, ast.BitAnd if taken else ast.BitOr):
            yield from _guards(m, left, depth + 1, taken=taken)
            yield from _guards(m, right, depth + 1, taken=taken)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            yield from _compared(left, type(op), right, bound, taken=taken)
        case ast.Call(func=ast.Attribute(value=left, attr=name), args=[right]) if name in _COMPARED:
            yield from _compared(left, _COMPARED[name], right, bound, taken=taken)
        case ast.Call(func=ast.Attribute(attr=name), args=[left, right]) if name in _COMPARED:
            yield from _compared(left, _COMPARED[name], right, bound, taken=taken)
        case ast.Call(func=ast.Attribute(value=inner, attr=name)) if name in _SAME:
            yield from _guards(m, inner, depth + 1, taken=taken)


def _leaves_out(m: Machine, mask: ast.expr, other: ast.expr, *, taken: bool, filled: bool) -> bool:
    """Whether what one mask leaves out is what another has filled."""
    (one, yes), (two, no) = _told_apart(m, mask, taken=taken), _told_apart(m, other, taken=filled)
    return yes is not no and _is_same(m, _without_axes(m, one), _without_axes(m, two))


def _told_apart(m: Machine, mask: ast.expr, *, taken: bool) -> tuple[ast.expr, bool]:
    """What a mask is the negation of, and whether it is meant where that is true."""
    for _ in range(_MOST):
        mask = _without_axes(m, _plain(m, mask))
        match _made_by(m, mask):
            case ast.UnaryOp(op=ast.Invert(), operand=inner):
                mask, taken = inner, not taken
            case ast.Call(func=ast.Attribute(value=inner, attr="logical_not"), args=[]):
                mask, taken = inner, not taken
            case ast.Compare(left=inner, ops=[ast.Eq()], comparators=[ast.Constant(value=0)]):
                mask, taken = inner, not taken
            case ast.Compare(left=inner, ops=[ast.NotEq()], comparators=[ast.Constant(value=0)]):
                mask = inner
            case _:
                break
    return mask, taken


def _compared(
    left: ast.expr,
    op: type[ast.cmpop],
    right: ast.expr,
    bound: float | None,
    *,
    taken: bool,
) -> Iterator[tuple[ast.expr, type[ast.cmpop]]]:
    """A comparison with a number next to zero, as what it lets through."""
    if _number(left) is not None:
        left, op, right = right, _MIRRORED.get(op, op), left
    bound = bound if _number(right) is None else _number(right)
    op = op if taken else _OPPOSITE.get(op, op)
    if bound is None or not 0 <= bound <= _SMALL:
        return
    if op is ast.NotEq and bound == 0:
        yield left, ast.NotEq
    elif op is ast.Gt or (op is ast.GtE and bound > 0):
        yield left, ast.NotEq if _absolute(left) is not None else ast.Gt
    elif op is ast.GtE:
        yield left, ast.GtE


def _number(node: ast.expr) -> float | None:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return value
    return None


def _absolute(node: ast.expr) -> ast.expr | None:
    """What an absolute value is of."""
    match node:
        case ast.Call(func=ast.Attribute(attr="abs"), args=[inner]):
            return inner
        case ast.Call(func=ast.Attribute(value=inner, attr="abs"), args=[]):
            return inner
    return None


def _singular_operand(op: Made) -> tuple[ast.expr | None, bool]:
    """The operand at whose zero an op has no finite derivative, and whether it has none for negative ones either."""
    operands = list(operands_of(op.site))
    if op.name in LOGARITHMS | _ROOTS | {"reciprocal"} and len(operands) > 0:
        taken = operands[-1] if isinstance(op.site, ast.Call) and not op.site.args else operands[0]
        return taken, op.name in _ROOTS
    match op.site:
        case ast.BinOp(op=ast.Div(), right=right):
            return right, False
        case ast.Call(
            func=ast.Attribute(attr="div" | "divide" | "true_divide"), args=[*_, right], keywords=[]
        ):
            return right, False
        case (
            ast.BinOp(op=ast.Pow(), left=base)
            | ast.Call(func=ast.Attribute(attr="pow"), args=[base, _])
            | ast.Call(func=ast.Attribute(value=base, attr="pow"), args=[_])
        ) if len(op.constants) == 1 and op.constants[0] < 1 and op.constants[0] != 0:
            return base, op.constants[0] % 1 != 0
    return None, False


def _made_by(m: Machine, node: ast.expr) -> ast.expr:
    """The expression that computed what a name stands for, if one surely did."""
    state = m.states.get(node) if isinstance(node, (ast.Name, ast.Attribute)) else None
    if type(state) is Tensor and state.origin is not None and len(state.storage) == 1:
        return state.origin.node if isinstance(state.origin.node, ast.expr) else node
    return node


def _plain(m: Machine, node: ast.expr) -> ast.expr:
    """An expression without what leaves its zeros and signs as they were."""
    while True:
        made = _made_by(m, node)
        match made:
            case ast.Call(func=ast.Attribute(value=inner, attr=name)) if name in _SAME and m.states.get(
                inner
            ):
                node = inner
            case _:
                return node


def _is_same(m: Machine, a: ast.expr, b: ast.expr) -> bool:
    """Whether two expressions stand for the same values."""
    a, b = _plain(m, a), _plain(m, b)
    one, other = m.states.get(a), m.states.get(b)
    if type(one) is not Tensor or type(other) is not Tensor:
        return False
    if one.storage == other.storage and len(one.storage) == 1:
        return ast.dump(a) == ast.dump(b) or one.view == other.view == NO
    if ast.dump(a) != ast.dump(b) or isinstance(a, ast.Name):
        return False
    names = [
        (m.states.get(x), m.states.get(y))
        for x, y in zip(ast.walk(a), ast.walk(b), strict=True)
        if isinstance(x, ast.Name) and (m.states.get(x) is not None or m.states.get(y) is not None)
    ]
    return bool(names) and all(x is not None and y is not None and x.storage == y.storage for x, y in names)


def _without_axes(m: Machine, node: ast.expr) -> ast.expr:
    """An expression without the axes of length one that were put into it."""
    while True:
        made = _made_by(m, node)
        match made:
            case ast.Call(func=ast.Attribute(value=inner, attr="unsqueeze")):
                node = inner
            case ast.Subscript(value=inner, slice=ast.Tuple(elts=parts)) if all(map(_is_axis, parts)):
                node = inner
            case ast.Subscript(value=inner, slice=part) if _is_axis(part):
                node = inner
            case _:
                return node


def _is_axis(part: ast.expr) -> bool:
    """Whether a part of a subscript takes a whole axis, or makes one."""
    match part:
        case ast.Slice(lower=None, upper=None, step=None) | ast.Constant(value=None):
            return True
    return isinstance(part, ast.Constant) and part.value is ...
