"""What no call reached is run by itself: functions, and methods on an object that stands for all of their class."""

import ast
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from gradvet.autograd.backward_pass import backward
from gradvet.autograd.given import call_with_unknown, flags_of, instance_of, open_flags
from gradvet.autograd.held import held_tensors
from gradvet.autograd.knowledge.frameworks import Convention, convention_of
from gradvet.autograd.library import custom_functions
from gradvet.autograd.library.evidence import was_computed
from gradvet.autograd.library.tensor_methods import turns_off
from gradvet.autograd.machine import MODE, Loop, Machine, Moment, OutOfSteps
from gradvet.autograd.memory.domain import GRAD, NO_GRAD, YES, Tensor
from gradvet.autograd.memory.values import (
    NONE,
    Class,
    Const,
    Dict,
    External,
    Function,
    Layer,
    Number,
    Opaque,
    OwnModule,
    Ref,
    Text,
    Tuple,
    Value,
    atoms,
    const,
    join_all,
)
from gradvet.autograd.python.calls import ClassInfo, call_function, find_in_class
from gradvet.autograd.python.names import globals_of
from gradvet.syntax.tree import walk

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def bounded(m: Machine, work: Callable[[], object]) -> None:
    """Do a part of the run; when it reaches a bound it ends there, and what it would have done is not known."""
    m.begin_part()
    put_back = m.under_way()
    try:
        work()
    except OutOfSteps:
        m.cut_short = m.graph_unseen = True
    except RecursionError:
        m.limit("the code is nested too deep")
        m.cut_short = m.graph_unseen = True
    put_back()
    _reset(m)


def _reset(m: Machine) -> None:
    """Back to the module's own frame, with nothing under way."""
    del m.frames[1:]
    for stack in (m.loops, m.calls, m.mode_nodes, m.frames[0].loops, m.frames[0].raises):
        stack.clear()
    m.store.set(MODE, m.module_mode or m.mode)


def unreached(m: Machine, tree: ast.Module) -> None:
    """Run what no call reached, with arguments of which only annotations and defaults tell.

    What nothing in the file mentions comes first, functions before methods: it may call the others, and knows under
    which grad mode.
    """
    definitions = [node for statement in tree.body for node in _definitions(statement)]
    mentioned = _mentioned(m, definitions)
    first = sorted(definitions, key=lambda node: isinstance(node, ast.ClassDef))
    # Of those that mention one another the later ones mostly make and call the earlier ones.
    for inner, ordered in ((False, first), (True, definitions[::-1])):
        for node in ordered:
            if isinstance(node, ast.ClassDef):
                bounded(m, partial(_class, m, node, frozenset() if inner else mentioned))
            elif node not in m.reached and (inner or node.name not in mentioned):
                function = m.defined.get(node)
                if type(function) is Function and _speaks_of_torch(m, node):
                    bounded(m, partial(_alone, m, node, function, ()))


def _mentioned(m: Machine, definitions: list[Definition]) -> frozenset[str]:
    """The names that functions of the file mention outside themselves, and those that Python calls by itself."""
    names: set[str] = {"forward"}
    for definition in definitions:
        functions = definition.body if isinstance(definition, ast.ClassDef) else [definition]
        for node in functions:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                info = m.info(node)
                names |= (info.loads | info.attributes) - {node.name}
                if node.name.startswith("__"):
                    names.add(node.name)
    return frozenset(names)


def _definitions(statement: ast.stmt) -> list[Definition]:
    """The functions and classes that a statement defines, and the classes inside those classes."""
    if isinstance(statement, ast.ClassDef):
        inner = [child for child in statement.body if isinstance(child, ast.ClassDef)]
        return [statement, *(one for child in inner for one in _definitions(child))]
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return [statement]
    if isinstance(statement, (ast.If, ast.Try)):
        return [d for child in statement.body for d in _definitions(child)]
    return []


_EVIDENCE = frozenset({
    "backward", "parameters", "named_parameters", "state_dict", "train", "eval", "detach", "detach_", "requires_grad",
    "requires_grad_", "numpy", "data", "grad", "zero_grad", "no_grad", "item", "retain_grad", "cuda", "step", "append",
    "load_state_dict",
})  # fmt: skip
"""Attributes by which something unknown shows that it is a tensor, a module, or holds them."""


def _speaks_of_torch(m: Machine, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether anything in a function can be known to be a tensor when its arguments are not known."""
    info = m.info(node)
    if info.keeps_locals or info.attributes & _EVIDENCE:
        return True
    names = set(info.loads)
    for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
        if arg.annotation is not None:
            names.update(_names_in(arg.annotation))
    for name in names - info.names:
        bound = m.cells.get((m.global_scope, name))
        if type(bound) is External and bound.name.startswith(("torch", "numpy", "functorch")):
            return True
        if type(bound) is Class and bound.address in m.classes and m.classes[bound.address].is_module:
            return True
        if type(bound) is OwnModule:
            return True
        if type(bound) is Function and globals_of(m, bound.scope) != m.global_scope:
            return True  # it came from another module, and what it gives may be anything
    return False


def _names_in(annotation: ast.expr) -> Iterator[str]:
    if isinstance(annotation, ast.Name):
        return iter((annotation.id,))
    return (node.id for node in walk(annotation) if isinstance(node, ast.Name))


def _alone(
    m: Machine,
    node: ast.FunctionDef | ast.AsyncFunctionDef,
    function: Function,
    given: tuple[Value, ...],
    *,
    escapes: bool = True,
) -> Value:
    """Run a function by itself; what it gives goes to callers that are not in this file.

    It does not escape when it is known what those do with it.
    """
    before = m.mode
    m.alone = True
    if m.judge is not None:
        m.judge.protocol.begins_alone()
    if m.imports is not None:
        m.imports.begin()
    call = call_with_unknown(m, node, node, function, given)
    own = m.cells.get((getattr(given[0], "address", -1), node.name)) if given else None
    if type(own) is Function and own.node is not node:
        # `self.update = wrapped(self.update)`: what callers reach by the name is what the object has.
        function, call = own, call.without_first()
    value = call_function(
        m, function._replace(kind="" if function.kind == "contextmanager" else function.kind), call
    )
    m.store.set(MODE, before)
    m.alone = False
    if m.judge is not None and escapes:
        m.judge.escaped(value)
        if node.name == "forward" and function.owner in m.classes and m.classes[function.owner].is_module:
            m.judge.walks.returned(node, value)
        for _, state in held_tensors(m, value):
            m.judge.escaped_nodes |= state.nodes
    return value


def _class(m: Machine, node: ast.ClassDef, later: frozenset[str]) -> None:
    """Run the methods that no call reached, on an instance, as if in a loop: it outlives each call of them."""
    info = next((c for c in m.classes.values() if c.node is node), None)
    if info is None:
        return
    left = [
        child
        for child in node.body
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))
        and not _was_run(m, info, child)
        and child.name not in later
    ]
    if custom_functions.is_custom_function(m, Class(info.address)):
        _custom_function(m, info)
        left = [child for child in left if child not in m.reached]  # its `forward` never records
    left = [
        c
        for c in left
        if _speaks_of_torch(m, c) or (info.is_module and c.name == "forward") or _trains(info, c)
    ]
    if not left:
        return
    instance = instance_of(m, info)
    _forget_counts(m, instance, node)
    left = [child for child in left if child.name != "__init__"]
    inner = _mentioned(m, list(left)) - {"forward"}
    left.sort(key=lambda child: child.name in inner)
    if m.judge is not None:
        m.judge.protocol.begins_alone()
    seen, before, mode = _noticed(m), m.moment(), m.mode
    if not info.is_module and _is_used_without_grad(m, node):
        m.without_grad.add(node)
    if node in m.without_grad:
        m.store.set(MODE, GRAD | NO_GRAD)  # so will perhaps be what is left
    flags = flags_of(m, info, instance)
    ran = [
        child
        for child in left
        if not _was_run(m, info, child) and _method(m, info, child, instance, flags, 1)
    ]
    made = _noticed(m)
    # Where no graph was made or kept and no step, none can pile up.
    again = made != seen and (made.steps != seen.steps or _lasts(m, before))
    for child in ran if again else ():
        _method(m, info, child, instance, flags, 2)
    m.store.set(MODE, mode)


def _forget_counts(m: Machine, instance: Value, node: ast.ClassDef) -> None:
    """Of an object that methods count with, a method by itself does not know how far they have come."""
    address = m.only(instance)
    counts: dict[str, Const] = {}
    for name in m.counted if address else ():
        held = m.cells.get((address, name))
        if type(held) is Const and held.kind in ("int", "float"):
            counts[name] = held
    for child in walk(node) if counts else ():
        match child:
            case ast.AugAssign(target=ast.Attribute(value=ast.Name(id="self"), attr=name)) if name in counts:
                m.store.set((address, name), Number(counts[name].kind))


def _is_used_without_grad(m: Machine, node: ast.ClassDef) -> bool:
    """Whether the file calls methods of a class that trains nothing, and all of them with grad mode off."""
    methods = [child for child in node.body if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))]
    used = [child for child in methods if child in m.reached and not child.name.startswith("__")]
    return (
        bool(used)
        and m.recorded.isdisjoint(used)
        and not any("backward" in m.info(child).attributes for child in methods)
    )


def _was_run(m: Machine, owner: ClassInfo, method: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a call reached a method; a `forward` that only ran without grad is for training all the same.

    Unless it reads tensors of the module, or calls what does: what those are in the end they need not be when it is
    called.
    """
    if method not in m.reached or method.name != "forward" or method in m.recorded:
        return method in m.reached
    functions: dict[ast.AST, None] = {method: None}
    queue: list[Any] = [method]
    for function in queue:
        info = m.info(function)
        found = [m.cells.get((m.global_scope, name)) for name in sorted(info.loads - info.names)]
        if any(value is not None and m.tensors(value) for value in found):
            return True
        found += [find_in_class(m, owner.address, name) for name in sorted(info.attributes)]
        called = [value.node for value in found if type(value) is Function and value.node in m.reached]
        queue += [node for node in dict.fromkeys(called) if node not in functions]
        functions.update(dict.fromkeys(called))
    return False


def _lasts(m: Machine, before: Moment) -> bool:
    """Whether what was there before holds something since then that may carry a graph, or is otherwise changed.

    That a part of something unknown was looked at for the first time changes nothing, nor do numbers and words.
    """
    return any(
        not all(_is_old(m, at, before.newest) for at in atoms(value)) for _, value in m.changed_since(before)
    )


def _is_old(m: Machine, atom: Value, newest: int) -> bool:
    """Whether an object was there before, or carries nothing that was not: numbers and words never do.

    Nor do a part of what is not known, and layers and leaves that were made.
    """
    if type(atom) is Ref and atom.address <= newest:
        return True
    content = m.cells.get(atom.address) if type(atom) is Ref else atom
    if type(content) is Layer and content.rest is None:
        return all(_is_old(m, at, newest) for _, child in content.children for at in atoms(child))
    if type(atom) is not Ref:
        return atom is None or type(atom) in (Const, Text) or (type(atom) is Number and not atom.cuts)
    if type(content) is Opaque:
        return all(type(at) is Ref and at.address <= newest for at in content.inputs)
    return type(content) is Tensor and content.is_leaf == YES and not content.cuts


class Noticed(NamedTuple):
    """How many graph nodes were made and how many steps so far."""

    nodes: int
    steps: int


def _noticed(m: Machine) -> Noticed:
    return Noticed(m.made_nodes, 0 if m.judge is None else len(m.judge.protocol.steps))


def _custom_function(m: Machine, info: ClassInfo) -> None:
    """Apply a custom Function that nothing in the file applies."""
    forward = find_in_class(m, info.address, "forward")
    if type(forward) is not Function or forward.node in m.reached or isinstance(forward.node, ast.Lambda):
        return
    skip = 0 if find_in_class(m, info.address, "setup_context") is not None else 1
    m.alone = True
    call = call_with_unknown(m, info.node, forward.node, forward, (NONE,) * skip)
    custom_functions.apply(m, Class(info.address), call._replace(args=call.args[skip:]))
    m.alone = False


def _method(
    m: Machine,
    info: ClassInfo,
    child: ast.FunctionDef | ast.AsyncFunctionDef,
    instance: Ref,
    flags: list[str],
    number: int,
) -> bool:
    """Run a method by itself, as one iteration of whatever calls it again and again; False when it is no function."""
    function = m.defined.get(child)
    if type(function) is not Function:
        return False
    open_flags(m, instance, flags)
    loop = Loop(None, m.store.mark())
    loop.number = number
    m.loops.append(loop)
    receiver: tuple[Value, ...] = (instance,)
    if function.kind == "staticmethod":
        receiver = ()
    elif function.kind == "classmethod":
        receiver = (Class(info.address),)
    before = m.mode
    if any(child.name.startswith(found.no_grad) for found in _conventions(info)) or _called_without_grad(
        m, info, child, frozenset()
    ):
        m.store.set(MODE, NO_GRAD)
    trains = _trains(info, child)
    if trains:
        m.store.set(MODE, GRAD)  # whatever mode the module has left, the framework trains in this one
    value = _alone(m, child, function, receiver, escapes=not trains)
    m.store.set(MODE, before)
    if trains:
        _framework_backward(m, child, value)
    m.loops.pop()
    if m.judge is not None:
        m.judge.end_of_pass(loop)
    m.age(loop)
    return True


def _called_without_grad(m: Machine, info: ClassInfo, method: ast.AST, before: frozenset[ast.AST]) -> bool:
    """Whether all methods of the class that mention a private one run without grad mode as a whole."""
    name = getattr(method, "name", "")
    if not name.startswith("_") or name.startswith("__"):
        return False
    callers = [
        child
        for child in info.node.body
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))
        and child is not method
        and child not in before
        and name in m.info(child).attributes
    ]
    around = before | {method}
    return bool(callers) and all(
        turns_off(caller) or _called_without_grad(m, info, caller, around) for caller in callers
    )


def _conventions(info: ClassInfo) -> list[Convention]:
    """What the frameworks do that a class extends."""
    return [found for base in info.external if (found := convention_of(base)) is not None]


def _trains(info: ClassInfo, method: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a framework runs backward from what a method gives."""
    return any(method.name in found.backward for found in _conventions(info))


def _framework_backward(m: Machine, node: ast.AST, value: Value) -> None:
    """A framework runs backward from the loss that a method returns: alone, first in a tuple, or under its name."""
    losses: list[Value] = []
    for atom in m.alternatives(value):
        content = m.cells.get(getattr(atom, "address", -1))
        loss = atom
        if type(atom) is Tuple and atom.items:
            loss = atom.items[0]
        elif type(content) is Dict:
            loss = content.get(const("loss"))
        losses += [] if loss is None else [one for one in m.alternatives(loss) if _may_be_loss(m, one)]
    found = join_all(losses)
    if found is not None:
        backward(m, node, found, retain=None, create=None, how="the framework's backward")


def _may_be_loss(m: Machine, value: Value) -> bool:
    return m.tensor(value) is not None or was_computed(m.cells.get(getattr(value, "address", -1)))
