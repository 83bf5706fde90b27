"""The run plan: the module from its top, then whatever no call reached; then the verdicts."""

import ast
from collections.abc import Callable
from functools import partial

from gradvet.autograd.events import Cut
from gradvet.autograd.expressions_seen import WatchedMachine
from gradvet.autograd.facts import Facts
from gradvet.autograd.graph import backward, held_tensors
from gradvet.autograd.judging.judge import Judge
from gradvet.autograd.judging.verdicts import conclude
from gradvet.autograd.knowledge.frameworks import LIGHTNING_BACKWARD, LIGHTNING_NO_GRAD
from gradvet.autograd.library import (  # noqa: F401  some only register what they know
    collectives,
    custom_functions,
    data,
    functorch,
    methods,
    norms,
    torch_calls,
)
from gradvet.autograd.library.layers import as_module
from gradvet.autograd.machine import MODE, Frame, Loop, Machine, OutOfSteps
from gradvet.autograd.memory.domain import ANY_FN, GRAD, MAYBE, NO_GRAD, Origin, Tensor
from gradvet.autograd.memory.values import (
    Class,
    External,
    Function,
    Instance,
    Number,
    Opaque,
    Optimizer,
    OwnModule,
    Ref,
    Text,
    Unknown,
    Value,
    join,
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
_PASSES_OVER_METHODS = 2


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
    return Facts(m.events, told, tuple(m.limits), seen, imported)


def _own_states(m: Machine, module: Module) -> dict[ast.AST, Tensor]:
    """The states of the expressions of the module itself."""
    return {node: state for node, state in m.states.items() if module.holds(m.stand_ins.get(node, node))}


def _bounded(m: Machine, work: Callable[[], object]) -> None:
    """Do a part of the run; when it reaches a bound it ends there, and what it would have done is not known."""
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
    m.raised = m.alone = False
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
        for node in definitions:
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
    m: Machine, node: ast.FunctionDef | ast.AsyncFunctionDef, function: Function, given: tuple[Value, ...]
) -> Value:
    """Run a function by itself; what it gives goes to callers that are not in this file."""
    before = m.mode
    m.alone = True
    if m.imports is not None:
        m.imports.begin()
    call = Call(node, (*given, *_arguments(m, node, function, len(given))))
    value = call_function(
        m, function._replace(kind="" if function.kind == "contextmanager" else function.kind), call
    )
    m.store.set(MODE, before)
    m.alone = False
    if m.judge is not None:
        m.judge.escaped(value)
        if node.name == "forward" and function.owner in m.classes and m.classes[function.owner].is_module:
            m.judge.walks.returned(node, value)
        for _, state in held_tensors(m, value):
            m.judge.escaped_nodes |= state.nodes
    return value


def _arguments(
    m: Machine, node: ast.FunctionDef | ast.AsyncFunctionDef, function: Function, skip: int
) -> tuple[Value, ...]:
    defaults = dict(function.defaults)
    out = []
    args = [*node.args.posonlyargs, *node.args.args][skip:]
    for arg in args:
        value = _unknown_argument(m, arg)
        if arg.arg in defaults:
            value = join(defaults[arg.arg], value)
        out.append(value)
    return tuple(out)


def _unknown_argument(m: Machine, arg: ast.arg) -> Value:
    """An argument of which only its annotation is known."""
    words = f"argument `{arg.arg}`"
    hint = _annotation(m, arg.annotation) if arg.annotation is not None else None
    if type(hint) is External:
        short = hint.name.rpartition(".")[2]
        if hint.name in ("torch.Tensor", "torch.FloatTensor"):
            state = Tensor(MAYBE, MAYBE, frozenset({None, ANY_FN}), dtype=3, origin=Origin(arg, words))
            ref = m.new(arg, state)
            m.update(ref, lambda t: t._replace(storage=frozenset({ref.address})))
            return ref
        if hint.name in ("torch.LongTensor", "torch.IntTensor", "torch.BoolTensor"):
            return m.new(arg, Tensor(dtype=2, origin=Origin(arg, words)))
        if hint.name.startswith("torch.nn.") and short in ("Module", "Sequential"):
            ref = m.unknown(arg, words)
            content = m.cells[ref.address]
            if type(content) is Opaque:
                as_module(m, ref, content, f"`{arg.arg}`", arg)
            return ref
        if hint.name.startswith("torch.optim."):
            return m.new(arg, Optimizer(frozenset(), all_known=False))
        if hint.name in ("builtins.int", "builtins.float", "builtins.bool"):
            return Number(short)
        if hint.name == "builtins.str":
            return Text()
    if type(hint) is Class and hint.address in m.classes:
        return _instance_of(m, m.classes[hint.address])
    return m.unknown(arg, words)


def _annotation(m: Machine, annotation: ast.expr) -> Value:
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            annotation = ast.parse(annotation.value, mode="eval").body
        except SyntaxError:
            return Unknown("an annotation")
    if isinstance(annotation, (ast.Name, ast.Attribute)):
        return m.eval(annotation)
    return Unknown("an annotation")


def _instance_of(m: Machine, info: ClassInfo) -> Value:
    """The instance that stands for all instances of a class that nobody in the file makes."""
    known = m.cells.get((info.address, "#instance"))
    if known is not None:
        return known
    made = m.new(info.node, Instance(info.address), "instance")
    m.store.set((info.address, "#instance"), made)
    if info.is_module:
        m.write_cell(made, "training", Unknown("train or eval"))
    if m.imports is not None:
        m.imports.begin()
    init = find_in_class(m, info.address, "__init__")
    if type(init) is Function and isinstance(init.node, ast.FunctionDef):
        call_value(m, init, Call(info.node, (made, *_arguments(m, init.node, init, 1))))
    return made


def _class(m: Machine, node: ast.ClassDef, later: frozenset[str]) -> None:
    """Run the methods that no call reached, on an instance, as if in a loop: it outlives each call of them."""
    info = next((c for c in m.classes.values() if c.node is node), None)
    left = [
        child
        for child in node.body
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))
        and child not in m.reached
        and child.name not in later
    ]
    if info is None:
        return
    if custom_functions.is_custom_function(m, Class(info.address)):
        _custom_function(m, info)
    left = [c for c in left if _speaks_of_torch(m, c) or (info.is_module and c.name == "forward")]
    if not left:
        return
    instance = _instance_of(m, info)
    left = [child for child in left if child.name != "__init__"]
    seen = m.made_nodes
    for number in range(1, _PASSES_OVER_METHODS + 1):
        if number > 1 and m.made_nodes == seen:
            break  # no graph was made, so none can pile up
        for child in left:
            function = m.defined.get(child)
            if type(function) is Function:
                _method(m, info, child, function, instance, number)


def _custom_function(m: Machine, info: ClassInfo) -> None:
    """Apply a custom Function that nothing in the file applies."""
    forward = find_in_class(m, info.address, "forward")
    if type(forward) is not Function or forward.node in m.reached or isinstance(forward.node, ast.Lambda):
        return
    skip = 0 if find_in_class(m, info.address, "setup_context") is not None else 1
    m.alone = True
    custom_functions.apply(
        m, Class(info.address), Call(info.node, _arguments(m, forward.node, forward, skip))
    )
    m.alone = False


def _method(
    m: Machine,
    info: ClassInfo,
    child: ast.FunctionDef | ast.AsyncFunctionDef,
    function: Function,
    instance: Value,
    number: int,
) -> None:
    """Run a method by itself, as one iteration of whatever calls it again and again."""
    loop = Loop(None, m.store.mark())
    loop.number = number
    m.loops.append(loop)
    receiver: tuple[Value, ...] = (instance,)
    if function.kind == "staticmethod":
        receiver = ()
    elif function.kind == "classmethod":
        receiver = (Class(info.address),)
    before = m.mode
    if _is_lightning(info) and child.name.startswith(LIGHTNING_NO_GRAD):
        m.store.set(MODE, NO_GRAD)
    value = _alone(m, child, function, receiver)
    m.store.set(MODE, before)
    if child.name in LIGHTNING_BACKWARD and _is_lightning(info):
        _framework_backward(m, child, value)
    m.loops.pop()
    if m.judge is not None:
        m.judge.end_of_pass(loop)
    m.age(loop)


def _is_lightning(info: ClassInfo) -> bool:
    return any(name.rpartition(".")[2] == "LightningModule" for name in info.external)


def _framework_backward(m: Machine, node: ast.AST, value: Value) -> None:
    """Lightning runs backward on what `training_step` returns."""
    for ref, state in held_tensors(m, value):
        if type(ref) is Ref and state.requires_grad:
            backward(m, node, ref, retain=None, create=None, how="the framework's backward")
