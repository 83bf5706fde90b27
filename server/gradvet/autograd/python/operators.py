"""Operators: on numbers, strings and containers as Python does, on tensors as torch does."""

import ast
import operator
from collections.abc import Callable
from typing import Any

from gradvet.autograd.events_exit import ScalarConverted
from gradvet.autograd.knowledge.lookup import load
from gradvet.autograd.library import arrays, forgotten
from gradvet.autograd.library.inputs import made_in, scalar_cuts
from gradvet.autograd.library.kept import Operand
from gradvet.autograd.library.made_tensors import combined, numbers_in
from gradvet.autograd.library.operations import ON_UNKNOWN, perform
from gradvet.autograd.library.results import tensor_like
from gradvet.autograd.library.tensor_methods import to_numpy
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import FLOAT, INTEGER, MAYBE, NO, NOTHING, YES, Tensor
from gradvet.autograd.memory.values import (
    NAME,
    Array,
    Bound,
    Class,
    Const,
    Dict,
    External,
    Function,
    Layer,
    Method,
    Number,
    Ref,
    Sequence,
    Text,
    Tuple,
    Union,
    Unknown,
    Value,
    atoms,
    const,
    join_all,
)
from gradvet.autograd.python.calls import Call, call_value, method_of
from gradvet.autograd.python.objects import element_of, items_of

_NAMES = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.Pow: "pow", ast.MatMult: "matmul", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
    ast.LShift: "lshift", ast.RShift: "rshift",
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
    ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert",
}  # fmt: skip
SYMBOLS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "**", ast.MatMult: "@",
}  # fmt: skip
_PURE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_LARGEST = 10**6
LONGEST_LITERAL = 16
LONGEST_TEXT = 100


def _tensor_op(
    m: Machine,
    node: ast.AST,
    kind: Any,
    left: Value,
    right: Value,
    target: ast.expr | None = None,
    prefix: str = "",
) -> Value | None:
    """An operator of which an operand is a tensor; None when neither is."""
    name = _NAMES[kind]
    words = f"{SYMBOLS.get(kind, name)}{'=' if prefix else ''}"
    knowledge = load()
    if m.tensor(left) is not None:
        if _is_array(m, right):
            return _with_array(m, node, kind, left, right)
        op = knowledge.method(f"__{prefix}{name}__")
        if op is None and prefix:
            op = knowledge.method(f"__{name}__")
        return None if op is None else perform(m, node, op, (left, right), {}, name=words, target=target)
    if m.tensor(right) is not None and not (type(left) is Union and m.tensors(left)):
        op = knowledge.method(f"__r{name}__") or knowledge.method(f"__{name}__")
        if op is None:
            return combined(m, node, words, [left, right])
        if m.is_unknown(left):
            return combined(m, node, words, [left, right], op=None)
        return perform(m, node, op, (right, left), {}, name=words)
    return None


def _with_array(m: Machine, node: ast.AST, kind: Any, left: Value, right: Value) -> Value:
    """`tensor * array`: a new tensor, where the tensor does not require grad. A comparison raises."""
    to_numpy_operand(m, node, left)
    state = m.tensor(left)
    if state is None or state.requires_grad == YES or kind not in SYMBOLS:
        return arrays.fresh(m, node)
    cuts = state.cuts | numbers_in(m, right)
    return tensor_like(m, node, SYMBOLS[kind], dtype=FLOAT | INTEGER, inference=made_in(m), cuts=cuts)


def to_numpy_operand(m: Machine, node: ast.AST, value: Value) -> None:
    """`tensor * array`: numpy asks the tensor for its values."""
    state = m.tensor(value)
    if state is not None:
        to_numpy(m, node, state, "arithmetic with a numpy array", getattr(node, "left", None))


def _is_array(m: Machine, value: Value) -> bool:
    return type(m.cells.get(getattr(value, "address", -1))) is Array


def binary(m: Machine, node: ast.AST, op: ast.operator, left: Value, right: Value) -> Value:
    """`left op right`."""
    kind = type(op)
    if type(left) is Const and type(right) is Const:
        return _constants(kind, left, right)
    left, right = _not_none(left), _not_none(right)
    forgotten.used(m, left, node)
    forgotten.used(m, right, node)
    if kind is ast.Sub and m.judge is not None:
        m.judge.snapshots.compared(node, left, right)
    if m.grads and m.judge is not None:
        m.judge.kept_gradients.combined(node, left, right)
    made = _any_length(m, node, left, right) if kind is ast.Add else None
    if made is None:
        made = _own_operator(m, node, kind, left, right)
    if made is None:
        made = _tensor_op(m, node, kind, left, right)
    if made is not None:
        return made
    if type(left) is Union or type(right) is Union:
        return _each_pair(m, node, op, left, right)
    left_content = m.cells.get(getattr(left, "address", -1))
    right_content = m.cells.get(getattr(right, "address", -1))
    if type(right_content) is Array and m.is_unknown(left):
        return _of_unknown(m, node, op, left, right)  # a tensor takes numpy's numbers
    if type(left_content) is Array or type(right_content) is Array:
        cuts = getattr(left_content, "cuts", NOTHING) | getattr(right_content, "cuts", NOTHING)
        return arrays.fresh(m, node, cuts)
    if type(left_content) is Sequence or type(right_content) is Sequence:
        return _sequences(m, node, kind, left_content, right_content, left, right)
    if type(left) is Tuple and type(right) is Tuple and kind is ast.Add:
        return Tuple((*left.items, *right.items))
    if type(left) is Tuple and kind is ast.Mult:
        if type(right) is Const and right.kind == "int" and right.value * len(left.items) <= LONGEST_LITERAL:
            return Tuple(left.items * max(right.value, 0))
        return m.new(node, Sequence("tuple", None, join_all(list(left.items))))
    if kind is ast.Mod and (type(left) is Text or (type(left) is Const and left.kind == "str")):
        return Text()
    if type(left_content) is Dict and type(right_content) is Dict and kind is ast.BitOr:
        merged = left_content
        for key, value in right_content.items:
            merged = merged.put(key, value)
        return m.new(node, merged)
    if {type(left), type(right)} <= {Const, Number}:
        return _numbers(kind, left, right)
    if type(left) in (Text, Const) and type(right) in (Text, Const):
        return Text()
    if type(left) is External or type(left) is Function:
        return Unknown("an operator on a function or type")
    return _of_unknown(m, node, op, left, right)


def _of_unknown(m: Machine, node: ast.AST, op: ast.operator, left: Value, right: Value) -> Ref:
    """What an operator gives of which an operand is not known."""
    return m.unknown(node, ON_UNKNOWN, (left, right), "binary", adds=isinstance(op, (ast.Add, ast.Sub)))


def _not_none(value: Value) -> Value:
    """What an operand is where the line does not raise: None takes no part in arithmetic."""
    if type(value) is not Union or const(None) not in value.atoms:
        return value
    return join_all([atom for atom in value.atoms if atom != const(None)]) or value


def _any_length(m: Machine, node: ast.AST, left: Value, right: Value) -> Value | None:
    """Tuples of several lengths put together in a pass that stands for many: how long they are by then is not known."""
    if type(left) is not Union or not (m.loops and m.loops[-1].stands_for_many):
        return None
    left, right = _not_none(left), _not_none(right)
    elements: list[Value] = []
    for atom in (*atoms(left), *atoms(right)):
        content = m.cells.get(getattr(atom, "address", -1))
        if type(atom) is Tuple:
            elements += atom.items
        elif type(content) is Sequence and content.kind == "tuple":
            elements += [] if content.element is None else [content.element]
        else:
            return None
    longer = any(type(atom) is not Tuple or atom.items for atom in atoms(right))
    return m.new(node, Sequence("tuple", None, join_all(elements), nonempty=longer)) if elements else None


def _special(m: Machine, value: Value, name: str) -> Value | None:
    """A special method of an object of the file, bound to it; None for anything else."""
    found = method_of(m, value, name) if type(value) is Ref else None
    return None if found is None else Bound(found, value)


def _own_operator(m: Machine, node: ast.AST, kind: type[ast.AST], left: Value, right: Value) -> Value | None:
    """An operator that the class of an operand defines; a tensor leaves it to the other where that is no tensor."""
    own = _special(m, left, f"__{_NAMES[kind]}__")
    if own is not None:
        return call_value(m, own, Call(node, (right,)))
    reflected = _special(m, right, _REFLECTED.get(kind) or f"__r{_NAMES[kind]}__")
    return None if reflected is None else call_value(m, reflected, Call(node, (left,)))


_REFLECTED: dict[type[ast.AST], str] = {
    ast.Eq: "__eq__", ast.NotEq: "__ne__", ast.Lt: "__gt__", ast.LtE: "__ge__", ast.Gt: "__lt__", ast.GtE: "__le__",
}  # fmt: skip
"""What a comparison asks of its right operand."""


def _each_pair(m: Machine, node: ast.AST, op: ast.operator, left: Value, right: Value) -> Value:
    """Operands that may be of several kinds: every sensible pair, joined. None takes no part: it would raise."""
    found = []
    pairs = [pair for a in _operands(m, left) for b in _operands(m, right) for pair in _pairs(m, a, b)]
    for number, (a, b) in enumerate(pairs):
        with m.numbered(node, number):
            if _are_opaque(m, a) or _are_opaque(m, b):
                found.append(_of_unknown(m, node, op, a, b))
            elif type(a) is Union and type(b) is Union and m.tensor(a) is None and m.tensor(b) is None:
                return Unknown("an operator on something unknown")
            else:
                found.append(binary(m, node, op, a, b))
    return join_all(found) if found else Unknown("an operator on None")


def _pairs(m: Machine, a: Value, b: Value) -> list[tuple[Value, Value]]:
    """Two operands, of which one may be any of several unknown things: with such a one or a number they give one."""
    one, other = _are_opaque(m, a), _are_opaque(m, b)
    if all(_are_opaque(m, side) or m.is_unknown(side) or type(side) in (Const, Number) for side in (a, b)):
        return [(a, b)]
    return [(x, y) for x in (atoms(a) if one else (a,)) for y in (atoms(b) if other else (b,))]


def _are_opaque(m: Machine, value: Value) -> bool:
    """Whether a value is one of several things of which nothing is known."""
    return type(value) is Union and all(type(a) is Ref and m.is_unknown(a) for a in value.atoms)


def _groups(m: Machine, value: Value) -> list[Value]:
    """The alternatives of a value, all its tensors as one."""
    tensors = [a for a in atoms(value) if m.tensor(a) is not None]
    others: list[Value] = [a for a in atoms(value) if m.tensor(a) is None]
    together = join_all(tensors)
    return others if together is None else [*others, together]


def _operands(m: Machine, value: Value) -> list[Value]:
    """The same, with all of which nothing is known as one. None takes no part in arithmetic: it would raise."""
    groups = [group for group in _groups(m, value) if group != const(None)]
    opaque = [a for a in groups if type(a) is Ref and m.is_unknown(a)]
    together = join_all(opaque)
    return groups if together is None else [*(a for a in groups if a not in opaque), together]


def _constants(kind: type, left: Const, right: Const) -> Value:
    if NAME in (left.kind, right.kind):
        return Number("bool") if kind in (ast.Eq, ast.NotEq) else Text()
    pure = _PURE.get(kind)
    if pure is not None and left.value is not None and right.value is not None:
        try:
            value = pure(left.value, right.value)
        except (TypeError, ValueError, ArithmeticError):
            return Unknown("an operator that raises")
        if isinstance(value, (int, float)) and abs(value) > _LARGEST:
            return Number(type(value).__name__)
        if isinstance(value, str) and len(value) > LONGEST_TEXT:
            return Text()
        return const(value)
    if "str" in (left.kind, right.kind):
        return Text()
    return Number("number")


def _numbers(kind: type, left: Value, right: Value) -> Value:
    if "str" in (left.kind, right.kind):
        return Text()
    cuts = getattr(left, "cuts", NOTHING) | getattr(right, "cuts", NOTHING)
    word = "int" if left.kind == right.kind == "int" and kind is not ast.Div else "number"
    return Number(word, cuts)


def _sequences(m: Machine, node: ast.AST, kind: type, a: Any, b: Any, left: Value, right: Value) -> Value:
    """`list + list`, `list * number`, and lists with something unknown."""
    content, other = (a, right) if type(a) is Sequence else (b, left)
    if kind is ast.Mult:
        items = content.items
        if (
            items is not None
            and type(other) is Const
            and other.kind == "int"
            and len(items) * other.value <= LONGEST_LITERAL
        ):
            return m.new(node, Sequence(content.kind, items * max(other.value, 0)))
        return m.new(node, Sequence(content.kind, None, content.element))
    if type(a) is Sequence and type(b) is Sequence:
        if kind in (ast.Sub, ast.BitAnd, ast.BitXor):
            return m.new(node, of_sets(a, b, _NAMES[kind]))
        if a.items is not None and b.items is not None and a.rest is None and b.rest is None:
            return m.new(node, Sequence(a.kind, (*a.items, *b.items)))
        parts = [v for v in (a.element, b.element) if v is not None]
        return m.new(node, Sequence(a.kind, None, join_all(parts)))
    parts = [content.element, *(other.items if type(other) is Tuple else ())]
    kept = content.kind if type(other) is Tuple else "list"  # only a tuple takes a tuple
    return m.new(node, Sequence(kept, None, join_all([p for p in parts if p is not None])))


def of_sets(a: Sequence, b: Sequence, how: str) -> Sequence:
    """What one set has and another has not (`sub`), what both have (`and`), what just one has (`xor`).

    Where it is not known of each element whether it is one of the other's, any may be there.
    """
    if a.items is None or b.items is None or a.rest is not None or b.rest is not None:
        parts = [a.element, b.element if how == "xor" else None]
        return Sequence(a.kind, None, join_all([part for part in parts if part is not None]))
    if all(map(_is_one, (*a.items, *b.items))):
        mine = [item for item in a.items if (item in b.items) == (how == "and")]
        others = [item for item in b.items if item not in a.items] if how == "xor" else ()
        return Sequence(a.kind, (*mine, *others))
    return Sequence(a.kind, None, join_all([*a.items, *(b.items if how == "xor" else ())]))


def _is_one(value: Value) -> bool:
    """Whether a value is one thing, which is the same as another only where they are equal."""
    if type(value) is Tuple:
        return all(map(_is_one, value.items))
    return type(value) is Const or (type(value) is Ref and not value.address & 1)


def unary(m: Machine, node: ast.AST, op: ast.unaryop, value: Value) -> Value:
    """`-value`, `+value`, `~value`."""
    kind = type(op)
    if m.tensor(value) is not None:
        known = load().method(f"__{_NAMES[kind]}__")
        if known is not None:
            return perform(m, node, known, (value,), {}, name=_NAMES[kind])
    own = _special(m, value, f"__{_NAMES[kind]}__")
    if own is not None:
        return call_value(m, own, Call(node, ()))
    if type(value) is Const:
        if kind is ast.USub and value.kind in ("int", "float"):
            return const(-value.value)
        return Number("number")
    if type(value) is Number:
        return value
    if _is_array(m, value):
        return value
    if type(value) is Union:
        return join_all([unary(m, node, op, group) for group in _groups(m, value)])
    return m.unknown(node, ON_UNKNOWN, (value,), "unary")


def _never_equal(value: Value) -> bool:
    """Whether a tensor says that it is not equal to this, instead of comparing each of its values."""
    if type(value) is Const:
        return value.value is None or value.kind == "str"
    return type(value) in (Function, External, Tuple)


def compare(m: Machine, node: ast.AST, op: ast.cmpop, left: Value, right: Value) -> Value:
    """`left op right` for one comparison that is not an identity."""
    kind = type(op)
    if kind in (ast.In, ast.NotIn):
        own = _special(m, right, "__contains__")
        if own is not None:
            call_value(m, own, Call(node, (left,)))
        return _contains(m, kind, left, right)
    own = _own_operator(m, node, kind, left, right)
    if own is not None:
        return own
    if type(left) is Const and type(right) is Const and kind in _PURE:
        return _constants(kind, left, right)
    if kind not in (ast.Eq, ast.NotEq):
        forgotten.used(m, left, node)
        forgotten.used(m, right, node)
    if kind in (ast.Eq, ast.NotEq) and any(
        m.tensor(one) is not None and _never_equal(other) for one, other in ((left, right), (right, left))
    ):
        return const(kind is ast.NotEq)
    if kind in (ast.Eq, ast.NotEq) and m.judge is not None:
        m.judge.snapshots.compared(node, left, right)
    made = _tensor_op(m, node, kind, left, right)
    if made is not None:
        return made
    if type(left) in (External, Class) and type(right) in (External, Class) and kind in (ast.Eq, ast.NotEq):
        known = same_class(left, right)
        return Number("bool") if known == MAYBE else const((known == YES) is (kind is ast.Eq))
    if any(_is_array(m, atom) for atom in (*atoms(left), *atoms(right))):
        return arrays.fresh(m, node)
    cuts = NOTHING
    for atom in (*atoms(left), *atoms(right)):
        if type(atom) is Number:
            cuts |= atom.cuts
    if m.is_unknown(left) or m.is_unknown(right):
        return m.unknown(node, "a comparison with something unknown", (left, right), "compare")
    return Number("bool", cuts)


def same_class(left: Value, right: Value) -> int:
    """Whether two classes are one: of torch.nn and of the file their names tell."""
    if type(left) is Class or type(right) is Class:
        return YES if left == right else NO if type(right) in (Class, External) else MAYBE
    told = all(type(each) is External and each.name.startswith("torch.nn.") for each in (left, right))
    return YES if left == right else NO if told else MAYBE


def _contains(m: Machine, kind: type, left: Value, right: Value) -> Value:
    content = m.cells.get(getattr(right, "address", -1))
    known: bool | None = None
    if type(left) is Const and type(content) is Dict and content.rest is None:
        known = content.get(left) is not None
        if not known and (left.kind == NAME or getattr(right, "address", 0) & 1):
            known = None
    elif type(left) is Const and left.kind == NAME:
        known = None
    elif type(left) in (External, Class) and type(right) is Tuple:
        answers = {same_class(left, item) for item in right.items}
        known = True if YES in answers else None if MAYBE in answers else False
    elif type(left) is Const and type(right) is Tuple and all(type(item) is Const for item in right.items):
        known = left in right.items
    elif type(left) is Const and type(right) is Const and left.kind == right.kind == "str":
        known = left.value in right.value
    elif (
        type(left) is Const
        and type(content) is Sequence
        and content.rest is None
        and content.items is not None
        and all(type(item) is Const for item in content.items)
    ):
        known = left in content.items
    if known is None:
        return Number("bool")
    return const(known if kind is ast.In else not known)


def in_place(m: Machine, node: ast.AugAssign, op: ast.operator, current: Value, value: Value) -> Value:
    """`current op= value`: the object that the target is bound to afterwards."""
    if type(op) is ast.Add and (longer := _any_length(m, node, current, value)) is not None:
        return longer
    if type(current) is Union and m.tensor(current) is None:
        groups = [group for group in _groups(m, current) if group != const(None)]
        with m.one_of(groups):
            made = [in_place(m, node, op, group, value) for group in groups]
        return join_all(made or [Unknown("an operator on None")])
    if m.tensor(current) is not None:
        forgotten.used(m, value, node)
        if type(value) is Union and m.tensor(value) is None:
            groups = [group for group in _groups(m, value) if group != const(None)]
            # Where it may be a number as well as an array, it is a number: with an array the line would raise.
            values = [group for group in groups if not _is_array(m, group)] or groups
            return join_all([in_place(m, node, op, current, group) for group in values] or [current])
        done = _tensor_op(m, node, type(op), current, value, target=node.target, prefix="i")
        if done is not None:
            return done
    content = m.cells.get(getattr(current, "address", -1))
    if type(content) is Sequence and type(op) is ast.Add and content.kind != "tuple":
        extend(m, current, value, node)
        return current
    if type(content) is Array:
        arrays.written(m, current, content, node)
        return current
    own = _special(m, current, f"__i{_NAMES[type(op)]}__")
    if own is not None:
        return call_value(m, own, Call(node, (value,)))
    if type(content) is Layer and type(op) is ast.Add:
        return call_value(
            m, Method(current, "extend", node), Call(node, (value,))
        )  # `nn.ModuleList.__iadd__`
    return binary(m, node, op, current, value)


def extend(m: Machine, holder: Value, value: Value, node: ast.AST) -> None:
    """Add all elements of a value to a list."""
    items = items_of(m, value)
    element = None if items is not None else element_of(m, value, node)
    for atom in atoms(holder):
        if type(atom) is Ref:
            grow(m, atom, list(items) if items is not None else [element], node, known=items is not None)


def grow(
    m: Machine, ref: Ref, new: list[Value], node: ast.AST, *, known: bool = True, front: bool = False
) -> None:
    """Add elements to a list."""
    in_loop = any(not _born_in(m, ref, loop) for loop in m.loops)

    def change(content: object) -> object:
        if type(content) is not Sequence:
            return content
        if content.items is not None and content.rest is None and known and not in_loop:
            items = (*new, *content.items) if front else (*content.items, *new)
            if content.most is not None:
                items = items[: content.most] if front else items[max(len(items) - content.most, 0) :]
            return content._replace(items=items, nonempty=True, thinned=False)
        if content.items and content.kind == "list" and not front:
            # What it began with is still in it, whatever is added now.
            rest = join_all([v for v in (content.rest, *new) if v is not None])
            return content._replace(rest=rest, nonempty=True, thinned=False)
        rest = join_all([v for v in (content.element, *new) if v is not None])
        shortest = content.least + 1 if known and content.least is not None else None
        return content._replace(items=None, rest=rest, nonempty=True, thinned=False, shortest=shortest)

    m.update(ref, change)
    for value in new:
        forgotten.kept(m, value, node)
        if m.judge is not None:
            m.judge.stored(node, ref, value, "+")


def _born_in(m: Machine, ref: Ref, loop: Any) -> bool:
    return ref.address in loop.allocs


def converted(m: Machine, node: ast.AST, words: str, state: Tensor) -> None:
    """Torch warns where Python makes a float of a tensor that requires grad; `int` and `bool` it lets pass."""
    warns = words in ("float()", "complex()") or words.startswith("math.")
    if warns and state.requires_grad == YES and isinstance(node, ast.Call) and node.args:
        m.emit(ScalarConverted(node, m.where(), state, words, node.args[0]))


def _is_of_one_parameter(m: Machine, state: Tensor) -> bool:
    """Whether a tensor is computed of a parameter alone: `-log_var`."""
    leaves = [m.cells.get(leaf) for leaf in state.leaves]
    return len(leaves) == 1 and type(leaves[0]) is Tensor and leaves[0].parameter == YES


def number_of(m: Machine, node: ast.AST, words: str, value: Value) -> Number:
    """A Python number made of a value, with the gradients that are stopped on the way."""
    state = m.tensor(value)
    if state is not None:
        converted(m, node, words, state)
        cuts = scalar_cuts(m, node, words, (Operand("self", value, state),))
        if words.startswith("math.") and _is_of_one_parameter(m, state):
            for cut in cuts:
                m.cuts[cut].form = "parameter" if m.cuts[cut].node is node else m.cuts[cut].form
        return Number("float", cuts)
    cuts = NOTHING
    for atom in atoms(value):
        if type(atom) is Number:
            cuts |= atom.cuts
        else:
            content = m.cells.get(getattr(atom, "address", -1))
            if type(content) is Tensor:
                cuts |= scalar_cuts(m, node, words, (Operand("self", atom, content),))
            elif type(content) is Array:
                cuts |= content.cuts
    return Number("float", cuts)
