"""What a program does to autograd. Rules subscribe to these; each stands for one context of one node."""

import ast
from dataclasses import dataclass

from gradvet.autograd.memory.domain import Tensor


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened at `node`; `calls` are the call sites that led there, outermost first."""

    node: ast.AST
    calls: tuple[ast.AST, ...]


@dataclass(frozen=True, slots=True)
class Cut:
    """A place where a gradient is stopped: `kind` is detach, no_grad, data, nondiff, item, rewrap, numpy or sample."""

    kind: str
    name: str
    node: ast.AST


@dataclass(frozen=True, slots=True)
class ModeStatement(Event):
    """A grad mode was made and dropped: `torch.no_grad()` as a statement. `name` is its qualified name."""

    name: str


@dataclass(frozen=True, slots=True)
class WithUncalled(Event):
    """`with torch.no_grad:`, without the call."""

    name: str


@dataclass(frozen=True, slots=True)
class ModeDecorator(Event):
    """A grad mode decorates `target`, a function or a class of the file."""

    target: ast.AST


@dataclass(frozen=True, slots=True)
class Backward(Event):
    """A backward from `root` in grad mode `mode`.

    `source` is the expression of the root, `cuts` are the places where the way from it was stopped.
    """

    root: Tensor
    mode: int
    how: str
    retains: bool
    source: ast.expr | None
    cuts: "tuple[Cut, ...]"


@dataclass(frozen=True, slots=True)
class ToNumpy(Event):
    """A tensor is turned into a numpy array by `how`.

    `source` is the expression that is handed over; `fixable` whether that is the tensor itself.
    """

    tensor: Tensor
    mode: int
    how: str
    source: ast.expr | None
    in_forward: bool
    fixable: bool


@dataclass(frozen=True, slots=True)
class DataUse(Event):
    """`.data` of a tensor: read, written in place, or assigned (`write` is then the node that writes).

    `saved` are the nodes that need the value for a backward still to come; `of_grad` whether it is
    the data of a gradient, `activation` whether the tensor was computed or belongs to a forward under
    way, `init` whether torch.nn.init writes it; `plain` whether the write is a statement that can
    move under no_grad as it is, `kept` the place (an attribute, an item) through which it is
    written when `.data` was taken elsewhere. `subject` is the tensor's expression, `together` are all uses of
    `.data` in that statement.
    """

    tensor: Tensor
    kind: str
    write: ast.AST | None
    saved: tuple[ast.AST, ...]
    of_grad: bool
    subject: ast.expr | None
    activation: bool
    init: bool
    plain: bool
    kept: ast.expr | None
    together: tuple[ast.AST, ...]


@dataclass(frozen=True, slots=True)
class AliasEdited(Event):
    """A tensor taken by `detach()` is changed in place while the tensor it came from is used later."""

    tensor: Tensor
    source: Tensor
    alias: ast.AST
    target: ast.expr | None
    saved: tuple[ast.AST, ...]
    how: str


@dataclass(frozen=True, slots=True)
class Retained(Event):
    """A tensor with its graph outlives the iteration in which it was made, and they pile up.

    `holder` names what keeps it, `holder_node` the place where that was made; `freed` whether a
    backward had freed its saved tensors; `how` is grow (a container), chain (each result leads to the
    last one), average (such a chain by which a running average is kept), kept (only the last one
    stays), number (so does one where numbers are kept elsewhere), numbers (among which it lies in a list), returned
    (to whoever called a step that trains) or beside (so, where others are detached); `value` is the expression
    that is kept, `scalar` whether it has one element, `fixable` whether a change of that expression alone is enough.
    """

    tensor: Tensor
    holder: str
    holder_node: ast.AST | None
    freed: int
    how: str
    value: ast.expr | None
    scalar: bool
    fixable: bool


@dataclass(frozen=True, slots=True)
class UnusedGraph(Event):
    """A module that is being evaluated built a graph that no backward will use.

    `evidence` is where it was put into eval mode; `function` the function that evaluates, and
    `whole` whether all of that function does.
    """

    tensor: Tensor
    evidence: ast.AST
    function: ast.AST | None
    whole: bool


@dataclass(frozen=True, slots=True)
class CutPath(Event):
    """The only path from leaves that an optimizer owns to a loss is stopped at this node.

    With `term`, what is stopped is a whole term of the loss. `subject` is the expression that is cut,
    `result` the name that the result is given; `causes` are the places where the graph had been lost before,
    `form` is what a new tensor was made of (tensor, tensors or mixed), `assumes` what has to be true of
    the leaves.
    """

    kind: str
    name: str
    leaves: tuple[str, ...]
    loss: ast.AST
    owner: ast.AST | None
    all_cut: bool
    subject: ast.AST | None
    term: bool = False
    result: str = ""
    causes: tuple[ast.AST, ...] = ()
    form: str = ""
    assumes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StopCrossed(Event):
    """`# grad: stop` stands at a value that requires grad."""

    tensor: Tensor


@dataclass(frozen=True, slots=True)
class KeepCut(Event):
    """`# grad: keep` stands at a value that has no gradient, or whose gradient is cut `later`, at `cuts`."""

    tensor: Tensor
    cuts: tuple[ast.AST, ...]
    later: bool


@dataclass(frozen=True, slots=True)
class InputUnreached(Event):
    """`autograd.grad` is asked for the gradient of something that is in none of the graphs that it is given.

    With `zeros`, a transform of torch.func is, which gives zeros.
    """

    asked: ast.expr | None
    cuts: "tuple[Cut, ...]"
    zeros: bool = False


@dataclass(frozen=True, slots=True)
class NoBackward(Event):
    """An op that torch records and has no backward for, on the way of a backward (`loss`)."""

    loss: ast.AST


@dataclass(frozen=True, slots=True)
class LeafChanged(Event):
    """A leaf that requires grad is changed in place while autograd records; or a view of it is (`is_view`).

    `asks` is whether what is written requires grad itself.
    """

    tensor: Tensor
    leaf: Tensor
    target: ast.expr | None
    how: str
    is_view: bool
    asks: bool


@dataclass(frozen=True, slots=True)
class SavedChanged(Event):
    """A tensor that an op saved is changed in place before the backward that needs it.

    `root` is where that backward starts, `backward` its call, or None when the caller will run it;
    `how` is what changes it, and `step()` when an optimizer does; `saver` the op that saved it; `maker`
    where the module was made that works in place; `alone` whether only one name holds the tensor, or a
    view of it; `plain` whether the method has a twin that is not in place.
    """

    root: Tensor
    tensor: Tensor
    target: ast.expr | None
    how: str
    saver: ast.AST
    backward: ast.AST | None
    maker: ast.AST | None
    alone: bool
    plain: bool


@dataclass(frozen=True, slots=True)
class GraphFreed(Event):
    """A backward goes through nodes that another has freed.

    `freed_by` is that other backward, `shared` what made the nearest of them; `whole` whether the
    loss itself was gone through before, `again` whether it is the same call once more, in a loop, and
    `total` whether the loss is a sum that still holds what an earlier iteration added.
    """

    root: Tensor
    freed_by: ast.AST
    shared: ast.AST
    whole: bool
    again: bool
    total: bool


@dataclass(frozen=True, slots=True)
class StateCarried(Event):
    """A backward goes through the graph of an earlier iteration, which `names` carried into this one.

    `bindings` are where those names are given their values, if they are local and the backward is a
    statement of the same loop; `parts` is for each name the length of the tuple that it holds (0 for a
    tensor). `kept` is whether the graphs are all
    retained, so that nothing raises and everything grows.
    """

    root: Tensor
    names: tuple[str, ...]
    backward: ast.AST
    bindings: tuple[ast.AST, ...]
    parts: tuple[int, ...]
    kept: bool


@dataclass(frozen=True, slots=True)
class FunctionHolds(Event):
    """The forward of a custom Function sets an attribute of `ctx`, `name`, to a tensor; `role` is input or output.

    `plain` is whether it sets no other and saves nothing.
    """

    name: str
    role: str
    plain: bool


@dataclass(frozen=True, slots=True)
class ViewChanged(Event):
    """A view is changed in place that torch does not let be changed; `tensor.made_as` tells why. `how` may be detach_()."""

    tensor: Tensor
    target: ast.expr | None
    how: str


@dataclass(frozen=True, slots=True)
class RetainUnneeded(Event):
    """`retain_graph=True`, and no other backward goes through that graph.

    `alone` is whether the function has no caller in this file: its arguments might bring a graph with them.
    """

    root: Tensor
    alone: bool


@dataclass(frozen=True, slots=True)
class CycleMade(Event):
    """`backward(create_graph=True)`, and the gradients that it left stay: each holds its parameter, which holds it."""

    root: Tensor


@dataclass(frozen=True, slots=True)
class GradientChanged(Event):
    """A gradient that a hook or the backward of a custom Function (`role`) was given is changed in place.

    `returned` is whether the function returns what the change gives.
    """

    tensor: Tensor
    target: ast.expr | None
    how: str
    role: str
    returned: bool


@dataclass(frozen=True, slots=True)
class FreezeUndone(Event):
    """All parameters that were frozen at `freeze` are made to train again here, and nothing was computed in between."""

    freeze: ast.AST


@dataclass(frozen=True, slots=True)
class CloneOutdated(Event):
    """A clone of a leaf still leads to the leaf, which was changed since, when `backward` goes through it."""

    root: Tensor
    backward: ast.AST


@dataclass(frozen=True, slots=True)
class InputOverwritten(Event):
    """A module made at `maker` works in place on `given`, which the function that calls it reads again at `read`."""

    given: ast.expr
    maker: ast.AST
    read: ast.expr


@dataclass(frozen=True, slots=True)
class TermUnused(Event):
    """A term with a graph is given a `name` that nothing reads, in code that runs the backward of another loss."""

    name: str
    tensor: Tensor
    backward: ast.AST
