"""Branches and narrowing: what a test's outcome says of the values it looked at."""

import ast
from collections.abc import Callable
from typing import Any

from gradvet.autograd.knowledge.lookup import load
from gradvet.autograd.library import layers
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import FLOAT, MAYBE, NO, YES, Tensor
from gradvet.autograd.memory.store import Delta
from gradvet.autograd.memory.values import (
    NAME,
    NESTED,
    NONE,
    Bound,
    Class,
    Const,
    Coroutine,
    Dict,
    Each,
    External,
    Function,
    Instance,
    Layer,
    Method,
    Mode,
    Number,
    Opaque,
    OwnModule,
    Partial,
    Ref,
    Sequence,
    Super,
    Text,
    Tuple,
    Union,
    Unknown,
    Value,
    atoms,
    join_all,
    refs,
)
from gradvet.autograd.python.calls import find_in_class
from gradvet.autograd.python.names import bind
from gradvet.autograd.python.objects import get_attribute, set_attribute

_TENSOR_CLASSES = {"torch.Tensor", "torch.FloatTensor", "torch.nn.Parameter", "torch.autograd.Variable"}
_NUMBERS = frozenset({"int", "float", "bool"})
_PLAIN = {"int": ("int", "bool"), "float": ("float",), "str": ("str",), "bool": ("bool",)}


def truth(m: Machine, value: Value) -> int:
    """Whether a value counts as true in a test."""
    kind = type(value)
    if kind is Union:
        known = 0
        for atom in value.atoms:
            known |= truth(m, atom)
        return known
    if kind is Const:
        return YES if value.value else NO
    if kind is Tuple:
        return YES if value.items else NO
    if kind in (Function, Bound, Class, OwnModule, Partial, Mode, Super, Coroutine):
        return YES
    if kind is External and (value.name.startswith("builtins.") or load().function(value.name) is not None):
        return YES  # what other packages have may be a number
    if kind is Ref:
        content = m.cells.get(value.address)
        if type(content) is Sequence and content.items is not None and content.rest is None:
            return YES if content.items else NO
        if (type(content) is Sequence or type(content) is Dict) and content.nonempty:
            return YES
        if type(content) is Instance:
            return _truth_of_instance(m, content)
        if type(content) is Layer:
            return YES
    return MAYBE


def _truth_of_instance(m: Machine, content: Instance) -> int:
    """An object is true unless its class tells its own truth, or how long it is."""
    tells = any(find_in_class(m, content.owner, name) is not None for name in ("__bool__", "__len__"))
    info = m.classes[content.owner]
    sized = not info.external.isdisjoint(_SIZED) or (info.unknown_base and not info.is_module)
    return MAYBE if tells or sized else YES


_SIZED = frozenset({
    "builtins.list", "builtins.dict", "builtins.set", "builtins.tuple", "builtins.str", "builtins.int", "builtins.float",
    "collections.OrderedDict", "collections.UserDict", "collections.UserList", "collections.deque",
    "collections.defaultdict", "torch.nn.Sequential", "torch.nn.ModuleList", "torch.nn.ModuleDict",
    "torch.nn.ParameterList", "torch.nn.ParameterDict",
})  # fmt: skip
"""Classes from elsewhere whose objects may be empty, and then count as false."""


def is_none(m: Machine, value: Value) -> int:
    """Whether a value is None."""
    kind = type(value)
    if kind is Union:
        known = 0
        for atom in value.atoms:
            known |= is_none(m, atom)
        return known
    if kind is Const:
        return YES if value.value is None else NO
    if kind is Unknown or kind is Method:
        return MAYBE  # of what is named and not called it is not known whether it is a method
    if kind is Ref:
        return MAYBE if type(m.cells.get(value.address)) is Opaque else NO
    return NO


def is_instance(m: Machine, atom: Value, classes: tuple[Value, ...]) -> int:
    """Whether one atom is an instance of one of the classes."""
    names = {c.name for c in classes if type(c) is External}
    known_names = all(type(c) is External for c in classes)
    kind = type(atom)
    if kind in (Const, Number, Text):
        word = "str" if kind is Text or atom.kind == NAME else atom.kind
        if not known_names:
            return NO
        wanted = {w for name in names for w in _PLAIN.get(name.rpartition(".")[2], ())}
        if word in ("number", NESTED):
            return MAYBE if names & {"builtins.int", "builtins.float"} else NO
        return YES if word in wanted else NO
    if kind is Tuple:
        return YES if "builtins.tuple" in names else NO
    if kind is Ref:
        content = m.cells.get(atom.address)
        match content:
            case Tensor():
                if "torch.nn.Parameter" in names and "torch.Tensor" not in names:
                    return content.parameter
                return MAYBE if content.loose else YES if names & _TENSOR_CLASSES else NO
            case Sequence(kind=word):
                return YES if f"builtins.{word}" in names else MAYBE if word not in ("list", "set") else NO
            case Dict():
                return YES if "builtins.dict" in names else MAYBE
            case Layer(name=name):
                if name in names or "torch.nn.Module" in names:
                    return YES
                own = all(type(c) is Class for c in classes if type(c) is not External)
                bases = any(known.rpartition(".")[2].startswith("_") for known in names)
                return NO if name and own and not bases else MAYBE  # `_BatchNorm` is a base of several
            case Instance(owner=owner):
                for c in classes:
                    if type(c) is Class and c.address in m.classes[owner].order:
                        return YES
                if "torch.nn.Module" in names and m.classes[owner].is_module:
                    return YES
                info = m.classes[owner]
                own = all(type(c) is Class for c in classes if type(c) is not External)
                return NO if own and not info.unknown_base and not names & info.external else MAYBE
    return MAYBE


def fork(m: Machine, ways: list[Callable[[], tuple[bool, Value]]]) -> tuple[bool, Value]:
    """Run alternatives from the present state and join those that go on."""
    mark = m.store.mark()
    ends: list[Delta] = []
    values: list[Value] = []
    raised = False
    for number, way in enumerate(ways, 1):
        alive, value = way()
        if m.raised:  # this alternative does, and the others may go on
            alive, raised, m.raised = False, True, False
        if alive and value is not None:
            values.append(value)
        if alive and not ends and number == len(ways):
            return True, m.store.union(values)  # the only one that goes on, and its state is the present one
        delta = m.store.take(mark)
        if alive:
            ends.append(delta)
    if not ends:
        m.raised = raised
        return False, None
    m.store.merge(ends)
    return True, m.store.union(values)


def narrow(m: Machine, test: ast.expr, outcome: bool) -> bool:  # noqa: FBT001
    """Keep only what is possible when the test came out so; False when nothing is."""
    how = _NARROWS.get(type(test))
    return True if how is None else how(m, test, outcome)


def _narrow_truth(m: Machine, test: ast.expr, outcome: bool) -> bool:  # noqa: FBT001
    possible = _keep(m, test, lambda atom: truth(m, atom), outcome)
    if possible and outcome:
        _has_elements(m, test)
    return possible


def _has_elements(m: Machine, subject: ast.expr) -> None:
    """A list of which it is not known whether anything was put into it has elements after all."""
    value = _peek(m, subject)
    content = m.cells.get(value.address) if type(value) is Ref and not value.address & 1 else None
    if type(content) is Sequence and content.rest is not None and not (content.nonempty or content.items):
        m.write(value, content._replace(nonempty=True))


def _narrow_not(m: Machine, test: ast.UnaryOp, outcome: bool) -> bool:  # noqa: FBT001
    return narrow(m, test.operand, not outcome) if type(test.op) is ast.Not else True


def _narrow_all(m: Machine, test: ast.BoolOp, outcome: bool) -> bool:  # noqa: FBT001
    """`a and b` is true when both are, `a or b` is false when both are; else nobody knows which it was."""
    if (type(test.op) is ast.And) is not outcome:
        return True
    return all(narrow(m, value, outcome) for value in test.values)


def _narrow_none(m: Machine, test: ast.Compare, outcome: bool) -> bool:  # noqa: FBT001
    """`x is None` and `x is not None`."""
    match test:
        case ast.Compare(ops=[ast.Is() | ast.IsNot() as op], comparators=[ast.Constant(value=None)]):
            wanted = outcome if isinstance(op, ast.Is) else not outcome
            if isinstance(test.left, ast.Attribute) and test.left.attr == "grad":
                return _narrow_gradient(m, test.left.value, wanted)
            return _keep(m, test.left, lambda atom: is_none(m, atom), wanted)
        case ast.Compare(left=ast.Call() as left, ops=[op], comparators=[ast.Constant(value=int(bound))]):
            if outcome is _SAYS_FULL.get((type(op), bound)):
                return _narrow_call(m, left, True)
    return True


_SAYS_FULL: dict[tuple[type, int], bool] = {
    **dict.fromkeys(((ast.Gt, 0), (ast.GtE, 1), (ast.NotEq, 0)), True),
    **dict.fromkeys(((ast.Eq, 0), (ast.Lt, 1), (ast.LtE, 0)), False),
}
"""By comparison and number the outcome of `len(xs) > 0` that says that there are elements."""


def _narrow_call(m: Machine, test: ast.Call, outcome: bool) -> bool:  # noqa: FBT001
    match test:
        case ast.Call(func=ast.Name(id="isinstance"), args=[subject, classes]):
            return _narrow_instance(m, subject, classes, outcome)
        case ast.Call(func=ast.Attribute(attr="is_tensor"), args=[subject]):
            return _keep(m, subject, lambda atom: _is_tensor(m, atom), outcome)
        case ast.Call(func=ast.Name(id="len"), args=[subject]) if outcome:
            _has_elements(m, subject)
    return True


def _narrow_attribute(m: Machine, test: ast.Attribute, outcome: bool) -> bool:  # noqa: FBT001
    if test.attr == "requires_grad":
        return _narrow_grad(m, test.value, outcome)
    return _narrow_truth(m, test, outcome)


def _narrow_walrus(m: Machine, test: ast.NamedExpr, outcome: bool) -> bool:  # noqa: FBT001
    return _narrow_truth(m, test.target, outcome)


_NARROWS: dict[type, Callable[[Machine, Any, bool], bool]] = {
    ast.UnaryOp: _narrow_not,
    ast.BoolOp: _narrow_all,
    ast.Compare: _narrow_none,
    ast.Call: _narrow_call,
    ast.Attribute: _narrow_attribute,
    ast.NamedExpr: _narrow_walrus,
    ast.Name: _narrow_truth,
}


def _is_tensor(m: Machine, atom: Value) -> int:
    return is_instance(m, atom, (External("torch.Tensor"),))


def _keep(m: Machine, subject: ast.expr, asks: Callable[[Value], int], wanted: bool) -> bool:  # noqa: FBT001
    """Drop the alternatives of a name or attribute that contradict the outcome."""
    if not isinstance(subject, (ast.Name, ast.Attribute)):
        return True
    value = _peek(m, subject)
    if value is None:
        return True
    rejected = NO if wanted else YES
    left: list[Value] = []
    for atom in atoms(value):
        if type(atom) is Each:
            fitting = tuple(ref for ref in atom.refs if asks(ref) != rejected)
            left += [Each(fitting)] if fitting else []
        elif asks(atom) != rejected:
            left.append(atom)
    if not left:
        return False
    if tuple(left) != atoms(value):
        _poke(m, subject, left[0] if len(left) == 1 else Union(tuple(left)))
    return True


def _peek(m: Machine, subject: ast.expr) -> Value | None:
    """The value of a plain name or attribute chain, read without effects; None for anything else."""
    match subject:
        case ast.Name():
            return m.eval(subject)
        case ast.Attribute(value=inner, attr=name):
            holder = _peek(m, inner)
            if type(holder) is not Ref:
                return None
            if type(m.cells.get(holder.address)) not in (Instance, Layer, Opaque):
                return None
            return get_attribute(m, holder, name, subject) if (holder.address, name) in m.cells else None
    return None


def _poke(m: Machine, subject: ast.expr, value: Value) -> None:
    match subject:
        case ast.Name(id=name):
            bind(m, name, value)
        case ast.Attribute(value=inner, attr=name):
            holder = _peek(m, inner)
            if type(holder) is Ref and not holder.address & 1:
                set_attribute(m, holder, name, value, subject)


def _narrow_instance(m: Machine, subject: ast.expr, classes: ast.expr, outcome: bool) -> bool:  # noqa: FBT001
    named = m.eval(classes)
    wanted = named.items if type(named) is Tuple else (named,)
    if not _keep(m, subject, lambda atom: is_instance(m, atom, wanted), outcome):
        return False
    if (
        outcome
        and any(type(c) is External and c.name in _TENSOR_CLASSES for c in wanted)
        and len(wanted) == 1
    ):
        value = _peek(m, subject)
        if type(value) is Ref and type(m.cells.get(value.address)) is Opaque:
            m.write(value, unknown_tensor(m.cells[value.address]))
    if outcome and isinstance(subject, ast.Name):
        _as_number(m, subject, wanted)
    if outcome and all(type(c) is External and layers.has_weight(c.name) for c in wanted):
        value = _peek(m, subject)
        if type(value) is Ref:
            layers.shown_with_weight(m, value, wanted[0].name)
    return True


def _as_number(m: Machine, subject: ast.Name, wanted: tuple[Value, ...]) -> None:
    """What is an instance of numbers is a number by this name, whatever else is learnt of the object."""
    kinds = {c.name.rpartition(".")[2] if type(c) is External else "" for c in wanted}
    if not kinds or not kinds <= _NUMBERS:
        return
    known = Number(kinds.pop() if len(kinds) == 1 else "number")
    alternatives = atoms(m.eval(subject))
    contents = [m.cells.get(getattr(atom, "address", -1)) for atom in alternatives]
    open_ = [type(content) is Opaque or (type(content) is Tensor and content.loose) for content in contents]
    narrowed = [known if may else atom for atom, may in zip(alternatives, open_, strict=True)]
    if narrowed != list(alternatives):
        bind(m, subject.id, join_all(narrowed))


def unknown_tensor(opaque: Opaque) -> Tensor:
    """What an object is once it is known to be a tensor and nothing else is."""
    return Tensor(
        requires_grad=MAYBE,
        is_leaf=MAYBE,
        grad_fn=frozenset({"*", None}),
        dtype=FLOAT | 2,
        origin=opaque.origin,
    )


def _narrow_gradient(m: Machine, owner: ast.expr, none: bool) -> bool:  # noqa: FBT001
    """`parameter.grad is None`: of the parameters that a name may stand for only those are left that fit."""
    value = _peek(m, owner)
    if value is None or m.tensor(value) is None:
        return True
    certain = type(value) is Each or (type(value) is Ref and not value.address & 1)
    kept: list[Ref] = []
    for ref in refs(value):
        known = atoms(m.cells.get((ref.address, "grad"), NONE))
        left = [atom for atom in known if is_none(m, atom) != (NO if none else YES)]
        if left:
            kept.append(ref)
        if certain and 0 < len(left) < len(known):
            m.store.set((ref.address, "grad"), left[0] if len(left) == 1 else Union(tuple(left)))
    if len(kept) < len(tuple(refs(value))) and kept:
        _poke(m, owner, Each(tuple(kept)) if type(value) is Each else join_all(list(kept)))
    return bool(kept)


def _asks_for_grad(m: Machine, atom: Value) -> int:
    """Whether one tensor requires grad."""
    state = m.tensor(atom)
    return MAYBE if state is None else state.requires_grad


def _narrow_grad(m: Machine, subject: ast.expr, outcome: bool) -> bool:  # noqa: FBT001
    value = _peek(m, subject)
    state = None if value is None else m.tensor(value)
    if state is None or state.requires_grad != MAYBE:
        return True
    if type(value) is Each:
        return _keep(m, subject, lambda atom: _asks_for_grad(m, atom), outcome)
    if type(value) is Ref and not value.address & 1:
        if outcome:
            m.write(value, state._replace(requires_grad=YES, dtype=FLOAT))
        else:
            m.write(value, state._replace(requires_grad=NO, is_leaf=YES, grad_fn=frozenset({None})))
    return True
