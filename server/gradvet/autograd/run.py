"""The run plan: the module from its top, then whatever no call reached; then the verdicts."""

import ast
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from gradvet.autograd.events import Cut
from gradvet.autograd.expressions_seen import WatchedMachine
from gradvet.autograd.facts import Facts
from gradvet.autograd.graph import backward, held_tensors
from gradvet.autograd.judging.judge import Judge
from gradvet.autograd.judging.verdicts import conclude
from gradvet.autograd.knowledge.frameworks import Convention, convention_of
from gradvet.autograd.library import (  # noqa: F401  some only register what they know
    collectives,
    custom_functions,
    data,
    foreach,
    functorch,
    methods,
    norms,
    packed,
    torch_calls,
)
from gradvet.autograd.library.annotations import annotated
from gradvet.autograd.library.evidence import was_computed
from gradvet.autograd.library.layers import as_module
from gradvet.autograd.machine import MODE, Frame, Loop, Machine, OutOfSteps
from gradvet.autograd.memory.domain import ANY_FN, GRAD, MAYBE, NO_GRAD, Origin, Tensor
from gradvet.autograd.memory.values import (
    NONE,
    Class,
    Const,
    Dict,
    External,
    Function,
    Instance,
    Number,
    Opaque,
    Optimizer,
    OwnModule,
    Ref,
    Text,
    Tuple,
    Unknown,
    Value,
    atoms,
    const,
    join,
    join_all,
)
from gradvet.autograd.python import expressions, python_calls, statements  # noqa: F401  they register themselves
from gradvet.autograd.python.calls import Call, ClassInfo, call_function, call_value, find_in_class
from gradvet.autograd.python.imports import Imports
from gradvet.autograd.python.names import globals_of
from gradvet.autograd.reasons import States
from gradvet.collection import no_collection
from gradvet.syntax.packages import Read
from gradvet.syntax.parse import Module
from gradvet.syntax.together import Together

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def run(module: Module, *, watch: bool = False, read: Read | None = None) -> Facts:
    """Dry-run autograd over a module. Bounds that were reached are told in `limits`.

    A run that is watched also tells what each expression held that was no tensor; it takes longer.
    `read` gives the texts of other modules of the project, which are run when they are imported.
    """
    with no_collection():
        return _run(module, watch=watch, read=read)


def _run(module: Module, *, watch: bool, read: Read | None) -> Facts:
    m = WatchedMachine(module.tree) if watch else Machine(module.tree)
    judge = m.judge = Judge(m)
    info = m.info(module.tree)
    info.keeps_locals = True
    m.global_scope = m.scope(0, module.tree, 0)
    m.frames.append(Frame(module.tree, info, m.global_scope, 0, m.store.mark()))
    if read is not None:
        m.imports = Imports(module, m.global_scope, read)
    _bounded(m, lambda: m.block(module.tree.body))
    m.module_mode = m.mode if not m.cut_short else GRAD
    _unreached(m, module.tree)
    imported = m.imports.others if m.imports is not None else []
    conclude(m, judge, Together(module, imported) if imported else module)
    seen = m.expressions() if isinstance(m, WatchedMachine) else ()
    states = m.states if not imported else _own_states(m, module)
    told = States(
        states, m.vague, m.cells, [Cut(cut.kind, cut.name, cut.node) for cut in m.cuts], judge.leaf_names
    )
    mixed = frozenset(node for node in m.numbers if node in states)
    return Facts(m.events, told, tuple(m.limits), seen, imported, mixed, told.way)


def _own_states(m: Machine, module: Module) -> dict[ast.AST, Tensor]:
    """The states of the expressions of the module itself."""
    return {node: state for node, state in m.states.items() if module.holds(m.stand_ins.get(node, node))}


def _bounded(m: Machine, work: Callable[[], object]) -> None:
    """Do a part of the run; when it reaches a bound it ends there, and what it would have done is not known."""
    m.begin_part()
    try:
        work()
    except OutOfSteps:
        m.cut_short = True
    except RecursionError:
        m.limit("the code is nested too deep")
        m.cut_short = True
    _reset(m)


def _reset(m: Machine) -> None:
    """Back to the module's own frame, with nothing under way."""
    del m.frames[1:]
    for stack in (m.loops, m.calls, m.mode_nodes, m.frames[0].loops, m.frames[0].raises):
        stack.clear()
    m.raised = m.alone = m.of_many = False
    m.unrolled = 1
    m.batched = 0
    m.store.set(MODE, m.module_mode or m.mode)


def _unreached(m: Machine, tree: ast.Module) -> None:
    """Run what no call reached, with arguments of which only annotations and defaults tell.

    What nothing in the file mentions comes first: it may call the others, and knows under which grad mode.
    """
    definitions = [node for statement in tree.body for node in _definitions(statement)]
    mentioned = _mentioned(m, definitions)
    for inner in (False, True):
        # Of those that mention one another the later ones mostly make and call the earlier ones.
        for node in reversed(definitions) if inner else definitions:
            if isinstance(node, ast.ClassDef):
                _bounded(m, partial(_class, m, node, frozenset() if inner else mentioned))
            elif node not in m.reached and (inner or node.name not in mentioned):
                function = m.defined.get(node)
                if type(function) is Function and _speaks_of_torch(m, node):
                    _bounded(m, partial(_alone, m, node, function, ()))


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
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
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
            names.update(n.id for n in ast.walk(arg.annotation) if isinstance(n, ast.Name))
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
    call = _call_with_unknown(m, node, node, function, given)
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


def _call_with_unknown(
    m: Machine,
    site: ast.AST,
    node: ast.FunctionDef | ast.AsyncFunctionDef,
    function: Function,
    given: tuple[Value, ...],
) -> Call:
    """A call of a function of which nobody knows with what it is called: only its signature tells."""
    defaults = dict(function.defaults)
    taken = {one.address for one in given if type(one) is Ref}

    def argument(arg: ast.arg) -> Value:
        value = _unknown_argument(m, arg, function.scope, taken)
        return join(defaults[arg.arg], value) if arg.arg in defaults else value

    args = node.args
    positional = [*args.posonlyargs, *args.args][len(given) :]
    return Call(
        site,
        (*given, *(argument(arg) for arg in positional)),
        {arg.arg: argument(arg) for arg in args.kwonlyargs},
        None if args.vararg is None else m.unknown(args.vararg, f"one of `*{args.vararg.arg}`"),
        None if args.kwarg is None else m.unknown(args.kwarg, f"one of `**{args.kwarg.arg}`"),
    )


def _unknown_argument(m: Machine, arg: ast.arg, scope: int, taken: set[int]) -> Value:
    """An argument of which only its annotation is known."""
    words = f"argument `{arg.arg}`"
    found = (
        _of_annotation(m, arg, arg.annotation, scope, arg.arg, words, taken)
        if arg.annotation is not None
        else None
    )
    return m.unknown(arg, words) if found is None else found


def _of_annotation(
    m: Machine, node: ast.AST, annotation: ast.expr, scope: int, name: str, words: str, taken: set[int]
) -> Value | None:
    """What an annotation tells of a value that nothing else is known of; None when that is nothing.

    `taken` are the instances that arguments or attributes beside it are: it is none of them.
    """
    hints = annotated(m, annotation, scope)
    known = [hint for hint in hints if hint != NONE]
    module = next((hint for hint in known if _is_module_hint(hint)), None)
    value = _hinted(m, node, known[0] if len(known) == 1 else module, name, words, taken)
    if type(value) is Ref:
        taken.add(value.address)
    return join(NONE, value) if value is not None and NONE in hints else value


def _is_module_hint(hint: Value) -> bool:
    """Whether an annotation says no more than that something is a module: it may be of any other class named beside."""
    return type(hint) is External and hint.name in ("torch.nn.Module", "torch.nn.Sequential")


def _hinted(
    m: Machine, node: ast.AST, hint: Value | None, name: str, words: str, taken: set[int]
) -> Value | None:
    if type(hint) is Class and hint.address in m.classes:
        info = m.classes[hint.address]
        known = m.cells.get((info.address, INSTANCE))
        another = type(known) is Ref and known.address in taken
        return _instance_of(m, info, node if another else None)
    if type(hint) is not External:
        return None
    short = hint.name.rpartition(".")[2]
    if hint.name in ("torch.Tensor", "torch.FloatTensor"):
        state = Tensor(MAYBE, MAYBE, frozenset({None, ANY_FN}), dtype=3, origin=Origin(node, words))
        ref = m.new(node, state)
        m.update(ref, lambda t: t._replace(storage=frozenset({ref.address})))
        return ref
    if hint.name in ("torch.LongTensor", "torch.IntTensor", "torch.BoolTensor"):
        return m.new(node, Tensor(dtype=2, origin=Origin(node, words)))
    if _is_module_hint(hint):
        ref = m.unknown(node, words)
        content = m.cells[ref.address]
        if type(content) is Opaque:
            as_module(m, ref, content, f"`{name}`", node)
        return ref
    if hint.name.startswith("torch.optim.") and "lr_scheduler" not in hint.name:
        return m.new(node, Optimizer(frozenset(), all_known=False))
    if hint.name in ("builtins.int", "builtins.float", "builtins.bool"):
        return Number(short)
    return Text() if hint.name == "builtins.str" else None


INSTANCE = "#instance"
MAKING = "#making"


def _instance_of(m: Machine, info: ClassInfo, site: ast.AST | None = None) -> Value:
    """The instance that stands for all instances of a class that nobody in the file makes.

    With a `site` it is one beside that: of two attributes of one class, say. While one is made, none is made beside it.
    """
    key = INSTANCE if site is None else f"{INSTANCE} {m.address(site)}"
    known = m.cells.get((info.address, key))
    if known is None and m.cells.get((info.address, MAKING)):
        known = m.cells.get((info.address, INSTANCE))
    if known is not None:
        return known
    if site is None:
        return _made(m, info, key)
    with m.numbered(site, 0):
        return _made(m, info, key)


def _made(m: Machine, info: ClassInfo, key: str) -> Value:
    """Make an instance with arguments of which nothing but their annotations is known."""
    made = m.new(info.node, Instance(info.address), "instance")
    m.store.set((info.address, key), made)
    m.store.set((info.address, MAKING), 1)
    if info.is_module:
        m.write_cell(made, "training", Unknown("train or eval"))
    if m.imports is not None:
        m.imports.begin()
    init = find_in_class(m, info.address, "__init__")
    if type(init) is Function and isinstance(init.node, ast.FunctionDef):
        outer, m.of_many = m.of_many, True
        call_value(m, init, _call_with_unknown(m, info.node, init.node, init, (made,)))
        m.of_many = outer
        _filled_later(m, info, made)
    _annotated_attributes(m, info, made)
    m.store.set((info.address, MAKING), 0)
    return made


def _filled_later(m: Machine, info: ClassInfo, made: Ref) -> None:
    """What `__init__` leaves None may be given a value by whoever uses the instance, before any method is called."""
    for name in m.attributes.get(made.address, {}):
        if m.cells.get((made.address, name)) == NONE:
            later = m.unknown(info.node, f"attribute `{name}`", (), f"later {name}")
            m.write_cell(made, name, join(NONE, later))


def _annotated_attributes(m: Machine, info: ClassInfo, made: Ref) -> None:
    """Attributes of which only annotations in the body of a class tell, as in a dataclass."""
    taken = {made.address}
    for owner in info.order:
        for statement in m.classes[owner].node.body:
            match statement:
                case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                    if (made.address, name) in m.cells or find_in_class(m, owner, name) is not None:
                        continue
                    words = f"attribute `{name}`"
                    scope = m.scope_parents[owner]
                    value = _of_annotation(m, statement, annotation, scope, name, words, taken)
                    if value is not None:
                        m.write_cell(made, name, value)


def _class(m: Machine, node: ast.ClassDef, later: frozenset[str]) -> None:
    """Run the methods that no call reached, on an instance, as if in a loop: it outlives each call of them."""
    info = next((c for c in m.classes.values() if c.node is node), None)
    left = [
        child
        for child in node.body
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))
        and not _was_run(m, child)
        and child.name not in later
    ]
    if info is None:
        return
    if custom_functions.is_custom_function(m, Class(info.address)):
        _custom_function(m, info)
    left = [
        c
        for c in left
        if _speaks_of_torch(m, c) or (info.is_module and c.name == "forward") or _trains(info, c)
    ]
    if not left:
        return
    instance = _instance_of(m, info)
    left = [child for child in left if child.name != "__init__"]
    inner = _mentioned(m, list(left)) - {"forward"}
    left.sort(key=lambda child: child.name in inner)
    seen, lasting = _noticed(m), m.store.mark()
    before = m.number()
    ran = [child for child in left if not _was_run(m, child) and _method(m, info, child, instance, 1)]
    made = _noticed(m)
    if made == seen or (made.steps == seen.steps and not _lasts(m, lasting, before)):
        return  # no graph was made or kept and no step, so none can pile up
    for child in ran:
        _method(m, info, child, instance, 2)


def _was_run(m: Machine, method: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a call reached a method; a `forward` that only ran without grad is for training all the same."""
    return method in (m.recorded if method.name == "forward" else m.reached)


def _lasts(m: Machine, mark: int, before: int) -> bool:
    """Whether what was there before holds something since the mark that may carry a graph, or is otherwise changed.

    That a part of something unknown was looked at for the first time changes nothing, nor do numbers and words.
    """
    for key, value in m.store.delta(mark).items():
        owner = key[0] if type(key) is tuple else key
        if type(owner) is int and owner <= before and not all(_is_old(m, at, before) for at in atoms(value)):
            return True
    return False


def _is_old(m: Machine, atom: Value, before: int) -> bool:
    """Whether an object was there before, or is a part of one of which nothing is known; numbers and words always are."""
    if type(atom) is Ref:
        content = m.cells.get(atom.address)
        parts = content.inputs if type(content) is Opaque else (None,)
        return atom.address <= before or all(type(at) is Ref and at.address <= before for at in parts)
    return atom is None or type(atom) in (Const, Text) or (type(atom) is Number and not atom.cuts)


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
    call = _call_with_unknown(m, info.node, forward.node, forward, (NONE,) * skip)
    custom_functions.apply(m, Class(info.address), call._replace(args=call.args[skip:]))
    m.alone = False


def _method(
    m: Machine,
    info: ClassInfo,
    child: ast.FunctionDef | ast.AsyncFunctionDef,
    instance: Value,
    number: int,
) -> bool:
    """Run a method by itself, as one iteration of whatever calls it again and again; False when it is no function."""
    function = m.defined.get(child)
    if type(function) is not Function:
        return False
    loop = Loop(None, m.store.mark())
    loop.number = number
    m.loops.append(loop)
    receiver: tuple[Value, ...] = (instance,)
    if function.kind == "staticmethod":
        receiver = ()
    elif function.kind == "classmethod":
        receiver = (Class(info.address),)
    before = m.mode
    if any(child.name.startswith(found.no_grad) for found in _conventions(info)):
        m.store.set(MODE, NO_GRAD)
    trains = _trains(info, child)
    value = _alone(m, child, function, receiver, escapes=not trains)
    m.store.set(MODE, before)
    if trains:
        _framework_backward(m, child, value)
    m.loops.pop()
    if m.judge is not None:
        m.judge.end_of_pass(loop)
    m.age(loop)
    return True


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
