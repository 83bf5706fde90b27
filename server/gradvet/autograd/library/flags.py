"""The flag `requires_grad` as people write it: misspelt, compared instead of assigned, set on a module."""

import ast
from difflib import SequenceMatcher

from gradvet.autograd.events_flag import FlagMisspelt, IntegerFlag, ModuleFlag, NonLeafFlag, NonLeafGradient
from gradvet.autograd.knowledge.lookup import load
from gradvet.autograd.library import unrecorded
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import INTEGER, NO, YES, Tensor
from gradvet.autograd.memory.values import Const, Instance, Layer, Opaque, Ref, Value
from gradvet.syntax.tree import walk

FLAG = "requires_grad"
METHOD = "requires_grad_"
CHILD = "a child of a module"
"""The reason of what `children()` of an unknown module gives: not known, but a module."""
_ALIKE = 0.8


def is_misspelt(name: str) -> bool:
    """Whether a name can only be meant to be `requires_grad`: close to it, and nothing that torch has.

    `old_requires_grad` and `_requires_grad` are names of the user's own for a flag that is kept.
    """
    if name in (FLAG, METHOD) or name.startswith("_") or load().method(name) is not None:
        return False
    if name.startswith(FLAG):
        return name[len(FLAG) :].isalpha()
    if FLAG in name:
        return False
    plain = name.lower().replace("_", "")
    return SequenceMatcher(None, plain, FLAG.replace("_", "")).ratio() >= _ALIKE


def assigned_on_tensor(m: Machine, name: str, node: ast.AST) -> None:
    """An attribute of the user's own was put on a tensor."""
    if name == METHOD:
        m.emit(FlagMisspelt(*_place(m, node, name), "method", name, _subject(node, name), on_module=False))
    elif is_misspelt(name) and not _mentioned(m, name, ast.Load):
        m.emit(FlagMisspelt(*_place(m, node, name), "assigned", name, _subject(node, name), on_module=False))


def assigned(m: Machine, holder: Ref, name: str, new: Value, node: ast.AST) -> None:
    """An attribute was put on an object that is no tensor."""
    if "requires" not in name and "grad" not in name:
        return
    content = m.cells.get(holder.address)
    module = is_module_like(m, content)
    place, subject = _place(m, node, name), _subject(node, name)
    if name == METHOD:
        if module or (type(content) is Opaque and type(new) is Const and new.kind == "bool"):
            m.emit(FlagMisspelt(*place, "method", name, subject, on_module=module))
    elif name == FLAG:
        flag = bool(new.value) if type(new) is Const else None
        if module:
            own = m.frames[-1].receiver == holder and flag is None  # an option that is kept
            if not own and not _uses_its_own(m, content):
                m.emit(ModuleFlag(*place, subject, flag, None))
        elif type(content) is Opaque and m.judge is not None:
            m.judge.flags.on_unknown(holder, place, subject, flag)
    elif module and is_misspelt(name) and not _mentioned(m, name, ast.Load):
        m.emit(FlagMisspelt(*place, "assigned", name, subject, on_module=True))


def is_module_like(m: Machine, content: object) -> bool:
    """Whether an object on the heap must be a module."""
    if type(content) is Instance:
        return bool(m.classes[content.owner].is_module)
    return type(content) is Layer or (type(content) is Opaque and content.reason == CHILD)


def read(m: Machine, name: str, node: ast.AST) -> None:
    """An attribute that tensors do not have was read: torch raises, unless somebody has put it there."""
    if is_misspelt(name) and isinstance(node, ast.Attribute) and not _mentioned(m, name, ast.Store):
        m.emit(FlagMisspelt(node, m.where(), "read", name, node.value, on_module=False))


def keywords(m: Machine, node: ast.AST) -> None:
    """A function of torch was called: it knows no argument that is nearly called `requires_grad`."""
    if not isinstance(node, ast.Call):
        return
    for keyword in node.keywords:
        if keyword.arg is not None and is_misspelt(keyword.arg):
            m.emit(FlagMisspelt(keyword, m.where(), "keyword", keyword.arg, node.func, on_module=False))


def statement(m: Machine, node: ast.Expr | ast.AnnAssign) -> None:
    """`x.requires_grad == False`, and `x.requires_grad: False`, that stand for an assignment."""
    match node:
        case ast.Expr(ast.Compare(ast.Attribute(subject, attr), [ast.Eq()], [_])):
            use = "compared"
        case ast.AnnAssign(ast.Attribute(subject, attr), ast.Constant(bool()), None):
            use = "annotated"
        case _:
            return
    if attr in (FLAG, METHOD) or is_misspelt(attr):
        value = m.eval(subject)
        module = is_module_like(m, m.cells.get(getattr(value, "address", -1)))
        m.emit(FlagMisspelt(node, m.where(), use, attr, subject, on_module=module))


def set_on_tensor(m: Machine, state: Tensor, wanted: int, node: ast.AST) -> None:
    """`requires_grad = flag` and `requires_grad_(flag)`: where torch raises for what the tensor is.

    The method leaves a computed tensor alone that already requires grad; the assignment never does.
    """
    method = isinstance(node, ast.Call)
    subject = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
    if not method:
        subject = _subject(node, FLAG)
    if wanted == YES and unrecorded.asked(m, state, node, subject):
        return
    if state.dtype == INTEGER and wanted == YES:
        m.emit(IntegerFlag(node, m.where(), state, subject))
    elif state.has_graph and (wanted == NO or not method):
        m.emit(NonLeafFlag(node, m.where(), state, subject, off=wanted == NO))


def integers_asked(m: Machine, state: Tensor, node: ast.AST) -> None:
    """A tensor of integers is made with `requires_grad=True`, or made a parameter."""
    if state.dtype == INTEGER:
        m.emit(IntegerFlag(node, m.where(), state, None))


def gradient_read(m: Machine, state: Tensor, known: Value, node: ast.AST) -> None:
    """`.grad` of a computed tensor: torch warns, and gives None unless `retain_grad()` was called."""
    if state.has_graph and known is None and not state.loose:
        subject = node.value if isinstance(node, ast.Attribute) else None
        m.emit(NonLeafGradient(node, m.where(), state, subject))


def _place(m: Machine, node: ast.AST, name: str) -> tuple[ast.AST, tuple[ast.AST, ...]]:
    """Where the attribute is written: the target of an assignment, or the call of `setattr`."""
    return _target(node, name) or node, m.where()


def _subject(node: ast.AST, name: str) -> ast.expr | None:
    target = _target(node, name)
    if target is not None:
        return target.value
    return node.args[0] if isinstance(node, ast.Call) and node.args else None


def _target(node: ast.AST, name: str) -> ast.Attribute | None:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    for target in targets:
        for part in walk(target) if target is not None else ():
            if isinstance(part, ast.Attribute) and part.attr == name and isinstance(part.ctx, ast.Store):
                return part
    return None


def _mentioned(m: Machine, name: str, context: type[ast.expr_context]) -> bool:
    """Whether the attribute is used so anywhere in the program, also by its name in a string."""
    by_name = ("setattr",) if context is ast.Store else ("getattr", "hasattr", "attrgetter")
    for node in walk(m.tree):
        match node:
            case ast.Attribute(attr=attr, ctx=ctx) if attr == name and isinstance(ctx, context):
                return True
            case ast.Call(ast.Name(called), args) if called in by_name:
                if any(isinstance(arg, ast.Constant) and arg.value == name for arg in args):
                    return True
    return False


def _uses_its_own(m: Machine, content: object) -> bool:
    """Whether the class of a module has a `requires_grad` of its own, or looks at the one that is set."""
    if type(content) is not Instance:
        return False
    for address in m.classes[content.owner].order:
        for node in walk(m.classes[address].node):
            match node:
                case ast.Attribute(ast.Name("self"), "requires_grad", ast.Load()):
                    return True
                case ast.FunctionDef(name="requires_grad" | "__setattr__"):
                    return True
    return False
