"""Methods of tensors that are more than one op: detach, backward, numpy, hooks, sizes."""

import ast
from collections.abc import Callable

from gradvet.autograd.backward_pass import backward
from gradvet.autograd.events import ToNumpy
from gradvet.autograd.events_exit import DetachLate
from gradvet.autograd.knowledge.lookup import load
from gradvet.autograd.library import forgotten, hooks
from gradvet.autograd.library.changes import edit
from gradvet.autograd.library.half import half_to_numpy
from gradvet.autograd.library.inputs import scalar_cuts
from gradvet.autograd.library.kept import Operand
from gradvet.autograd.library.made_tensors import copied, factory, load_dtype, rewrapped
from gradvet.autograd.library.operations import perform
from gradvet.autograd.library.results import ALONE
from gradvet.autograd.library.storages import tracked_together
from gradvet.autograd.library.tensors import array_of, ask_of_views, detached, set_requires_grad
from gradvet.autograd.machine import Machine
from gradvet.autograd.memory.domain import (
    ANY_FN,
    GRAD,
    INFERRING,
    MAYBE,
    NO,
    NO_FN,
    NOTHING,
    YES,
    Tensor,
    join_tensors,
)
from gradvet.autograd.memory.values import (
    NESTED,
    NONE,
    TRUE,
    Const,
    Number,
    Ref,
    Sequence,
    Unknown,
    Value,
    const,
)

TensorMethod = Callable[[Machine, Value, Tensor, "MethodCall"], Value]


class MethodCall:
    """A method call on a tensor: its node, name and arguments."""

    __slots__ = ("args", "keywords", "name", "node", "receiver_node")

    def __init__(self, node: ast.AST, name: str, args: tuple[Value, ...], keywords: dict[str, Value]) -> None:
        """Hold the parts."""
        self.node = node
        self.name = name
        self.args = args
        self.keywords = keywords
        func = getattr(node, "func", None)
        self.receiver_node = func.value if isinstance(func, ast.Attribute) else None

    def argument(self, at: int, name: str) -> Value | None:
        """An argument by position or name."""
        return self.keywords.get(name, self.args[at] if at < len(self.args) else None)


METHODS: dict[str, TensorMethod] = {}


def method(*names: str) -> Callable[[TensorMethod], TensorMethod]:
    """Register what these methods of a tensor do."""

    def register(function: TensorMethod) -> TensorMethod:
        METHODS.update(dict.fromkeys(names, function))
        return function

    return register


def call_method(m: Machine, receiver: Value, call: MethodCall) -> Value:
    """Call a method of a value that must be a tensor."""
    state = m.tensor(receiver)
    if call.node in m.lone:
        forgotten.dropped(m, call.node, call.name, known=True)
    special = METHODS.get(call.name)
    if special is not None and state is not None:
        return special(m, receiver, state, call)
    op = load().method("cpu" if _is_to_cpu(call) else call.name)
    if op is None:
        return m.unknown(call.node, f"the result of `{call.name}`", (receiver, *call.args))
    return perform(
        m,
        call.node,
        op,
        (receiver, *call.args),
        call.keywords,
        name=f"{call.name}()",
        target=call.receiver_node,
    )


def _is_to_cpu(call: MethodCall) -> bool:
    """Whether a call is `to("cpu")`, which is the same as `cpu()`."""
    words = call.keywords.keys() - {"non_blocking"}
    given = [*call.args, *(call.keywords[word] for word in words)]
    return call.name == "to" and given == [const("cpu")] and words <= {"device"}


@method("backward")
def _backward(m: Machine, receiver: Value, state: Tensor, call: MethodCall) -> Value:
    backward(
        m,
        call.node,
        receiver,
        retain=call.keywords.get(
            "retain_variables", call.argument(1, "retain_graph")
        ),  # as it was called once
        create=call.argument(2, "create_graph"),
        how="backward()",
        inputs=call.argument(3, "inputs"),
    )
    return NONE


_STEPS = frozenset({"cpu", "cuda", "clone", "to", "float", "double", "half", "bfloat16", "contiguous"})


@method("detach")
def _detach(m: Machine, receiver: Value, state: Tensor, call: MethodCall) -> Value:
    step = call.receiver_node
    steps = isinstance(step, ast.Call) and isinstance(step.func, ast.Attribute) and step.func.attr in _STEPS
    if steps and isinstance(step, ast.Call) and state.requires_grad == YES and m.mode == GRAD:
        m.emit(DetachLate(call.node, m.where(), step))
    return detached(m, call.node, receiver, state, "detach()")


@method("detach_")
def _detach_in_place(m: Machine, receiver: Value, state: Tensor, call: MethodCall) -> Value:
    if not m.mode & ~INFERRING or state.inference == YES:
        return receiver  # torch leaves it as it was
    if state.view == YES and m.judge is not None and not m.mode & INFERRING:
        m.judge.walks.view_changed(call.node, state, call.receiver_node, "detach_()")
    cuts = state.cuts
    if state.requires_grad & YES:
        cuts |= {m.cut("detach", "detach_()", call.node, state.leaves, state.nodes, cuts)}

    def change(t: object) -> object:
        if type(t) is not Tensor:
            return t
        made = t._replace(
            requires_grad=NO, is_leaf=YES, grad_fn=NO_FN, nodes=NOTHING, leaves=NOTHING, cuts=cuts
        )
        if t.inference == YES:
            return t
        return join_tensors(t, made) if m.mode & INFERRING or t.inference & YES else made

    m.update(receiver, change)
    for ref, before in m.tensors(receiver):
        certain = m.only(receiver) == ref.address and not m.mode & INFERRING and before.inference == NO
        ask_of_views(m, ref, before, NO, NOTHING, certain=certain)
        _detach_views(m, ref)
    return receiver


def _detach_views(m: Machine, base: Ref) -> None:
    """A view that has its graph from a change of its base loses it with the base, unless somebody looked at it before."""
    for address, view in tracked_together(m, frozenset({base.address})):
        if address != base.address and view.is_leaf == NO and ANY_FN in view.grad_fn:
            m.store.set(
                address, view._replace(requires_grad=MAYBE, is_leaf=MAYBE, grad_fn=view.grad_fn | NO_FN)
            )


@method("requires_grad_")
def _requires_grad(m: Machine, receiver: Value, state: Tensor, call: MethodCall) -> Value:
    flag = call.argument(0, "requires_grad")
    set_requires_grad(m, receiver, TRUE if flag is None else flag, call.node)
    return receiver


@method("retain_grad")
def _retain_grad(m: Machine, receiver: Value, state: Tensor, call: MethodCall) -> Value:
    hooks.hang(m, call.node, receiver, hooks.RETAIN, NONE)
    return NONE


@method("register_hook", "register_post_accumulate_grad_hook")
def _hook(m: Machine, receiver: Value, state: Tensor, call: MethodCall) -> Value:
    hook = call.argument(0, "hook")
    return Unknown("a hook's handle") if hook is None else hooks.hang(m, call.node, receiver, call.name, hook)


@method("numpy")
def _numpy(m: Machine, receiver: Value, state: Tensor, call: MethodCall) -> Value:
    half_to_numpy(m, call.node, receiver, call.receiver_node)
    forced = call.argument(0, "force")
    if type(forced) is not Const or not forced.value:
        to_numpy(m, call.node, state, ".numpy()", call.receiver_node)
        if m.mode == GRAD and state.requires_grad == YES:
            return Unknown("the line raises")
    return array_of(m, call.node, receiver, state)


@method("__array__")
def _array(m: Machine, receiver: Value, state: Tensor, call: MethodCall) -> Value:
    return array_of(m, call.node, receiver, state)


def to_numpy(
    m: Machine, node: ast.AST, state: Tensor, how: str, source: ast.expr | None, *, fixable: bool = True
) -> None:
    """Record that a tensor leaves torch; `fixable` is False when `source` only holds it, as a list does."""
    if state.assumes >= ALONE and _is_beside_inference(m):
        return
    m.emit(ToNumpy(node, m.where(), state, m.mode, how, source, in_forward(m), fixable))


def _is_beside_inference(m: Machine) -> bool:
    """Whether the method that runs alone belongs to a class of which another one runs without grad mode as a whole."""
    owner = m.classes.get(m.frames[1].owner) if len(m.frames) > 1 else None
    return owner is not None and any(turns_off(method) for method in owner.node.body)


def turns_off(function: ast.AST) -> bool:
    """Whether a decorator has a function run without grad mode as a whole."""
    decorators = [
        made.func if isinstance(made, ast.Call) else made for made in getattr(function, "decorator_list", ())
    ]
    return any(map(names_off, decorators))


def names_off(made: ast.expr) -> bool:
    """Whether an expression is the name of what turns grad mode off, whatever it is taken from."""
    return (getattr(made, "attr", "") or getattr(made, "id", "")) in ("no_grad", "inference_mode")


def in_forward(m: Machine) -> bool:
    """Whether the forward of a module is being run."""
    return any(getattr(frame.node, "name", "") == "forward" for frame in m.frames)


@method("item")
def _item(m: Machine, receiver: Value, state: Tensor, call: MethodCall) -> Value:
    return Number("number", scalar_cuts(m, call.node, "item()", (Operand("self", receiver, state),)))


@method("tolist")
def _tolist(m: Machine, receiver: Value, state: Tensor, call: MethodCall) -> Value:
    cuts = scalar_cuts(m, call.node, "tolist()", (Operand("self", receiver, state),))
    return m.new(call.node, Sequence("list", None, Number(NESTED, cuts), nonempty=True))


@method("new_tensor")
def _new_tensor(m: Machine, receiver: Value, state: Tensor, call: MethodCall) -> Value:
    source = call.args[0] if call.args else NONE
    copied(m, call.node, source)
    return rewrapped(m, call.node, source, "new_tensor()", call.keywords)


@method("as_subclass")
def _as_subclass(m: Machine, receiver: Value, state: Tensor, call: MethodCall) -> Value:
    """A tensor of a class that may do with each op what it likes."""
    return Unknown("a tensor of another class")


@method("register_parameter", "share_memory_")
def _itself(m: Machine, receiver: Value, state: Tensor, call: MethodCall) -> Value:
    return receiver


@method("apply_", "map_")
def _apply(m: Machine, receiver: Value, state: Tensor, call: MethodCall) -> Value:
    edit(m, call.node, receiver, call.name, target=call.receiver_node)
    return receiver


@method("size", "stride")
def _size(m: Machine, receiver: Value, state: Tensor, call: MethodCall) -> Value:
    return Number("int") if call.args else m.sizes


@method("dim", "numel", "nelement", "ndimension", "get_device", "element_size", "__len__")
def _count(m: Machine, receiver: Value, state: Tensor, call: MethodCall) -> Value:
    return Number("int")


@method(
    "is_floating_point",
    "is_complex",
    "is_contiguous",
    "is_inference",
    "is_shared",
    "is_pinned",
    "equal",
    "allclose",
)
def _asks(m: Machine, receiver: Value, state: Tensor, call: MethodCall) -> Value:
    return Number("bool")


@method("new_zeros", "new_ones", "new_empty", "new_full", "new")
def _new(m: Machine, receiver: Value, state: Tensor, call: MethodCall) -> Value:
    dtype = load_dtype(call.keywords.get("dtype"), state.dtype)
    return factory(m, call.node, call.name, dtype, call.keywords)
