"""What is known of an argument, or of an object of a class, that nobody in the file makes: what its signature tells."""

import ast

from gradvet.autograd.library.annotations import annotated
from gradvet.autograd.library.layers import as_module
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import ANY_FN, MAYBE, Origin, Tensor
from gradvet.autograd.memory.values import (
    FALSE,
    NONE,
    TRUE,
    Class,
    External,
    Function,
    Instance,
    Number,
    Opaque,
    Optimizer,
    Ref,
    Text,
    Unknown,
    Value,
    join,
)
from gradvet.autograd.python.calls import Call, ClassInfo, call_value, find_in_class
from gradvet.syntax.tree import walk


def call_with_unknown(
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
        default = defaults.get(arg.arg)
        value = _unknown_argument(m, arg, function.scope, taken, left_out=default == NONE)
        return value if default is None else join(default, value)

    args = node.args
    positional = [*args.posonlyargs, *args.args][len(given) :]
    return Call(
        site,
        (*given, *(argument(arg) for arg in positional)),
        {arg.arg: argument(arg) for arg in args.kwonlyargs},
        None if args.vararg is None else m.unknown(args.vararg, f"one of `*{args.vararg.arg}`"),
        None if args.kwarg is None else m.unknown(args.kwarg, f"one of `**{args.kwarg.arg}`"),
    )


def _unknown_argument(m: Machine, arg: ast.arg, scope: int, taken: set[int], *, left_out: bool) -> Value:
    """An argument of which only its annotation is known; a module that may be `left_out` need not train anything."""
    words = f"argument `{arg.arg}`"
    if left_out and any(map(_is_module_hint, annotated(m, arg.annotation, scope) if arg.annotation else ())):
        return m.unknown(arg, words)
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
        return instance_of(m, info, node if another else None)
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
EITHER = join(TRUE, FALSE)
MAKING = "#making"


def instance_of(m: Machine, info: ClassInfo, site: ast.AST | None = None) -> Value:
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
        call_value(m, init, call_with_unknown(m, info.node, init.node, init, (made,)))
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
    open_flags(m, made, flags_of(m, info, made))


def flags_of(m: Machine, info: ClassInfo, made: Ref) -> list[str]:
    """The flags of an instance that another method than `__init__` sets."""
    return [
        name
        for name in sorted(_set_later(m, info))
        if (m.cells.get((made.address, name)) or find_in_class(m, info.address, name))
        in (TRUE, FALSE, EITHER)
    ]


def open_flags(m: Machine, made: Ref, flags: list[str]) -> None:
    """Flags may be on or off, whichever method is called and whatever was called before."""
    for name in flags:
        m.write_cell(made, name, EITHER)


def _set_later(m: Machine, info: ClassInfo) -> set[str]:
    """The attributes that other methods of a class than `__init__` give a value."""
    found = set[str]()
    for owner in info.order:
        for method in m.classes[owner].node.body:
            if isinstance(method, ast.FunctionDef) and method.name != "__init__":
                names = m.info(method)
                found |= names.given
                if names.keeps_locals and names.parameters:
                    found |= _given_by_closures(method, names.parameters[0])
    return found


def _given_by_closures(method: ast.FunctionDef, receiver: str) -> set[str]:
    """The attributes that the functions in a method give its receiver."""
    return {
        node.attr
        for node in walk(method)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == receiver
    }


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
