"""Calls into other packages: which of our own models answers a qualified name."""

import ast
from collections.abc import Callable

from gradvet.autograd.backward_pass import backward
from gradvet.autograd.graph import MOST_DEEP
from gradvet.autograd.held import held_tensors
from gradvet.autograd.knowledge.frameworks import MODULE_MAKERS, TRANSFORM, TRANSFORMS
from gradvet.autograd.knowledge.lookup import load
from gradvet.autograd.library import arrays, flags, layers, leaves
from gradvet.autograd.library.changes import edit
from gradvet.autograd.library.distributions import make as make_distribution
from gradvet.autograd.library.evidence import runs_backward
from gradvet.autograd.library.inputs import made_in
from gradvet.autograd.library.made_tensors import numbers_in
from gradvet.autograd.library.operations import COMPARES, perform
from gradvet.autograd.library.optimizers import made, owned_by
from gradvet.autograd.library.results import tensor_like
from gradvet.autograd.library.tensor_methods import to_numpy
from gradvet.autograd.library.tensors import array_of
from gradvet.autograd.machine import MODE, Machine
from gradvet.autograd.memory.domain import (
    FLOAT,
    GRAD,
    INTEGER,
    MAYBE,
    NO_FN,
    NO_GRAD,
    NOTHING,
    YES,
    Tensor,
    switched,
)
from gradvet.autograd.memory.values import (
    NONE,
    Array,
    Const,
    External,
    Instance,
    Layer,
    Method,
    Number,
    Opaque,
    Ref,
    Sequence,
    Super,
    Tuple,
    Unknown,
    Value,
    atoms,
    join,
)
from gradvet.autograd.python.calls import CALL_EXTERNAL, Call, call_value, unknown_call
from gradvet.autograd.python.objects import AXES, element_of
from gradvet.autograd.python.operators import number_of

Handler = Callable[[Machine, str, Call], Value]
HANDLERS: dict[str, Handler] = {}

_RENAMED = (
    ("torch.nn.modules.", "torch.nn."),
    ("torch.autograd.variable.Variable", "torch.autograd.Variable"),
    ("torch.autograd.grad_mode.", "torch."),
    ("torch.nn.parameter.", "torch.nn."),
    ("torch.optim.", "torch.optim."),
)
INTO_NUMPY = (
    "numpy.", "matplotlib.", "sklearn.", "seaborn.", "pandas.", "scipy.", "cv2.", "PIL.", "skimage.", "plotly.",
)  # fmt: skip
_NUMPY_SAFE = {
    "numpy.random", "numpy.sum", "numpy.mean", "numpy.max", "numpy.min", "numpy.prod", "numpy.amax", "numpy.amin",
    "numpy.std", "numpy.var", "numpy.shape", "numpy.ndim", "numpy.size", "pandas.DataFrame.from_dict", "PIL.Image.fromarray",
}  # fmt: skip

_FIGURE, _AXES = External("matplotlib.figure.Figure"), External(AXES)
_DRAWINGS: dict[str, Value] = {
    "subplots": Tuple((_FIGURE, _AXES)),
    "figure": _FIGURE,
    "gcf": _FIGURE,
    **dict.fromkeys(("add_subplot", "subplot", "gca", "axes", "twinx", "twiny", "flatten", "ravel"), _AXES),
}
"""What matplotlib's calls give to draw on: several axes are as good as one."""

_GIVES_ARRAY = ("fit_", "transform", "inverse_", "predict", "decision_", "score_samples", "kneighbors")
"""How the methods of an estimator begin that give arrays."""

_NUMPY_SCALARS = {
    f"numpy.{n}" for n in ("float64", "float32", "float16", "int64", "int32", "int8", "uint8", "bool_")
}


def handles(*names: str) -> Callable[[Handler], Handler]:
    """Register the model of these qualified names."""

    def register(handler: Handler) -> Handler:
        HANDLERS.update(dict.fromkeys(names, handler))
        return handler

    return register


def canonical(name: str) -> str:
    """The public name of something that can be reached by several."""
    for long, short in _RENAMED:
        if name.startswith(long):
            name = short + name[len(long) :]
            if long.startswith("torch.nn.modules"):
                module, _, last = name.rpartition(".")
                name = f"torch.nn.{last}" if module != "torch.nn" else name
    return name


def call_external(m: Machine, name: str, call: Call) -> Value:
    """Call something of another package."""
    if name.startswith("torch."):
        name = canonical(name)
        if call.keywords:
            flags.keywords(m, call.node)
    handler = HANDLERS.get(name)
    if handler is not None:
        return handler(m, name, call)
    if name.startswith("builtins."):
        return unknown_call(m, call, f"the result of `{name[9:]}`")
    if name.startswith("torch."):
        made = _torch(m, name, call)
        if made is not None:
            return made
    elif name.startswith(INTO_NUMPY):
        return _numpy(m, name, call)
    elif name.startswith(("math.", "random.")):
        return _math(m, name, call)
    elif any(name.startswith(maker) for maker in MODULE_MAKERS):
        return _made_elsewhere(m, name, call)
    elif name.startswith(TRANSFORMS):
        return m.unknown(call.node, TRANSFORM, call.all_values(), "call")
    if not name.startswith("torch.") and runs_backward(m, name.rpartition(".")[2], call):
        backward(m, call.node, call.args[0], retain=None, create=None, how=f"{name}()")
        return NONE
    # Of torch itself only what is named so runs a backward.
    runs = not name.startswith("torch.") or "autograd" in name or "backward" in name
    words = f"the result of `{name.rpartition('.')[2]}`, which is not in this file"
    return unknown_call(m, call, words, runs=runs)


def _torch(m: Machine, name: str, call: Call) -> Value | None:
    knowledge = load()
    short = name.rpartition(".")[2]
    if name.startswith("torch.nn.") and short[:1].isupper() and name.count(".") == 2:  # noqa: PLR2004
        return layers.create(m, name, call)
    if name.startswith("torch.nn.") and name.count(".") == 3 and call.args:  # noqa: PLR2004
        unbound = _unbound(m, name, call)
        if unbound is not None:
            return unbound
    if name.startswith("torch.nn.init."):
        return _initialised(m, name, call)
    op = knowledge.function(name)
    if op is not None:
        args = call.args if call.star is None else (*call.args, call.star)
        target = call.node.args[0] if isinstance(call.node, ast.Call) and call.node.args else None
        value = perform(m, call.node, op, args, call.keywords, name=f"{short}()", target=target)
        return _with_flags(m, value, call)
    if name.startswith("torch.Tensor."):
        method = knowledge.method(short)
        if method is not None:
            return perform(m, call.node, method, call.args, call.keywords, name=f"{short}()")
    if name.startswith("torch.optim.lr_scheduler") or short == "SWALR":
        return m.unknown(call.node, "a learning rate scheduler", (), "scheduler")
    if name.startswith("torch.optim.swa_utils."):
        return _averaged(m, call) if short == "AveragedModel" else None
    if name.startswith("torch.optim.") and short[:1].isupper():
        given = call.argument(0, "params") or Unknown()
        leaves.optimized(m, call, given)
        owned = owned_by(m, given)
        ref = m.new(call.node, owned, "optimizer")
        made(m, ref, call)
        if m.judge is not None:
            m.judge.optimizer_made(ref, owned, call.node)
            m.judge.protocol.consumed(call.argument(0, "params"), call.node)
        return ref
    if (
        name.startswith("torch.distributions.")
        and short[:1].isupper()
        and "transforms" not in name
        and "constraints" not in name
    ):
        return make_distribution(m, name, call)
    return None


def _averaged(m: Machine, call: Call) -> Value:
    """`AveragedModel(model)`: a copy of the model, which is run as the model is."""
    model = call.argument(0, "model")
    if model is None or not layers.is_module(m, model):
        return unknown_call(m, call, "a model that averages")
    return call_value(m, External("copy.deepcopy"), Call(call.node, (model,)))


def _unbound(m: Machine, name: str, call: Call) -> Value | None:
    """`nn.Linear.__init__(self, ...)`, `nn.Module.train(self, mode)`: a method of the base, called by its class."""
    base, _, method = name.rpartition(".")
    receiver = call.args[0]
    content = m.cells.get(getattr(receiver, "address", -1))
    if not base.rpartition(".")[2][:1].isupper() or type(content) not in (Instance, Layer):
        return None
    if method == "__init__":
        layers.init_base(m, receiver, base, call.without_first())
        return NONE
    return call_value(m, Method(Super(0, receiver), method, call.node), call.without_first())


def _with_flags(m: Machine, value: Value, call: Call) -> Value:
    """`requires_grad=True` of a factory: `torch.zeros(3, requires_grad=True)`."""
    flag = call.keywords.get("requires_grad")
    if flag is None or type(value) is not Ref or m.tensor(value) is None:
        return value
    own = frozenset({value.address})
    leaf = {"is_leaf": YES, "grad_fn": NO_FN, "nodes": NOTHING, "cuts": NOTHING}
    if type(flag) is Const and flag.value:
        flags.integers_asked(m, m.cells[value.address], call.node)
        m.update(value, lambda t: t._replace(requires_grad=YES, leaves=own, dtype=FLOAT, **leaf))
    elif type(flag) is not Const:
        m.update(value, lambda t: t._replace(requires_grad=MAYBE, leaves=own, **leaf))
    return value


def _initialised(m: Machine, name: str, call: Call) -> Value:
    """torch.nn.init: changes its tensor in place with grad mode off; what it calculates are numbers."""
    short = name.rpartition(".")[2]
    target = call.argument(0, "tensor")
    if short == "_calculate_fan_in_and_fan_out":
        return Tuple((Number("int"), Number("int")))
    if "calculate" in short:
        return Number("float")
    if not short.endswith("_") or target is None:
        return NONE if target is None else target
    state = m.tensor(target)
    if state is not None and state.alias is not None and state.alias.kind == "data":
        return target  # through `.data` no version counter sees it; that it was read so is told already
    before = m.mode
    m.store.set(MODE, switched(before, NO_GRAD))
    node = call.node.args[0] if isinstance(call.node, ast.Call) and call.node.args else None
    edit(m, call.node, target, f"{short}()", target=node)
    m.store.set(MODE, before)
    return target


def _is_many(m: Machine, value: Value) -> bool:
    """Whether numpy makes an array of a value: an array, a list or a tuple."""
    return type(value) is Tuple or type(m.cells.get(getattr(value, "address", -1))) in (Array, Sequence)


def _numpy(m: Machine, name: str, call: Call) -> Value:
    """numpy, and the libraries that hand what they are given to it: a tensor that requires grad raises there."""
    short = name.rpartition(".")[2]
    if short in COMPARES and len(call.args) > 1 and m.judge is not None:
        m.judge.snapshots.compared(call.node, *call.args[:2])
    cuts = frozenset[int]()
    refused = False
    for at, value in enumerate(call.all_values()):
        cuts |= numbers_in(m, value)
        if name.startswith("numpy.random") and short != "choice":
            continue
        if name in _NUMPY_SAFE and m.tensor(value) is not None:
            continue  # torch refuses numpy's way of calling it for another reason
        for _, state in held_tensors(m, value):
            if state.requires_grad & YES:
                cuts |= {m.cut("numpy", f"{short}()", call.node, state.leaves, state.nodes, cuts)}
        asking = asks_for_grad(m, value)
        if asking is None or not _takes_tensors(name, short):
            continue
        if name.startswith("pandas.") and m.tensor(value) is None:
            continue  # a frame of objects is made without a word
        whole = m.tensor(value) is not None
        to_numpy(m, call.node, asking, _spelled(call, name), _argument_node(call, at), fixable=whole)
        refused = refused or m.mode == GRAD
    if refused:
        return Unknown("the line raises")
    if name in _NUMPY_SCALARS:
        return Number("float", cuts)
    if name in arrays.GENERATORS:
        return External("numpy.random")
    if name.startswith("numpy."):
        first = call.args[0] if call.args else None
        plain = (
            call.args
            if short in arrays.UFUNCS_OF_TWO or short == "clip"
            else call.args[:1]
            if short in arrays.UFUNCS
            else ()
        )
        if plain and all(type(atom) in (Const, Number) for value in plain for atom in atoms(value)):
            return Number("float", cuts)
        if short in arrays.UFUNCS and m.tensor(first) is not None:
            made = tensor_like(m, call.node, f"{short}()", dtype=FLOAT | INTEGER, inference=made_in(m))
            m.update(made, lambda t: t._replace(cuts=cuts) if type(t) is Tensor else t)
            return made
        if arrays.one_number(name, call.args, call.keywords) and (first is None or m.tensor(first) is None):
            return Number("number", cuts)
        if short in ("load", "savez", "save", "seterr", "seed"):
            return NONE if short != "load" else arrays.fresh(m, call.node)
        arrays.written_by_function(m, name, call.node, call.args, call.keywords.get("out"))
        if name in arrays.KEEPS and call.args and arrays.array_in(m, call.args[0]) is not None:
            return call.args[0]
        given = m.tensor(call.args[0]) if name in arrays.KEEPS and call.args else None
        if given is not None:
            return array_of(m, call.node, call.args[0], given)
        made = arrays.fresh(m, call.node, cuts)
        if plain and not any(_is_many(m, value) or m.tensor(value) is not None for value in plain):
            return join(Number("float", cuts), made)  # `np.sqrt(self.width)` is most often a number
        return made
    if name.startswith("sklearn.metrics."):
        return Number("float", cuts)
    if name.startswith("sklearn."):
        owner, _, method = name.rpartition(".")
        estimator = owner.rpartition(".")[2][:1].isupper()
        if method[:1].isupper() or (estimator and method in ("fit", "partial_fit", "set_params")):
            return External(
                name if method[:1].isupper() else owner
            )  # an estimator, whose methods take arrays
        if estimator and method.startswith(_GIVES_ARRAY):
            return arrays.fresh(m, call.node, cuts)
    if name.startswith("matplotlib.") and short in _DRAWINGS:
        return _DRAWINGS[short]
    return m.unknown(call.node, f"the result of `{short}`", (), "call")


def asks_for_grad(m: Machine, value: Value, depth: int = 0) -> Tensor | None:
    """The tensor that makes a value impossible for numpy: one in it that must require grad."""
    whole = m.tensor(value)
    if whole is not None:
        return whole if whole.requires_grad == YES else None
    if depth > MOST_DEEP:
        return None
    content = m.cells.get(getattr(value, "address", -1))
    parts: tuple[Value, ...] = ()
    if type(value) is Tuple:
        parts = value.items
    elif type(content) is Sequence:
        parts = (
            *(content.items or ()),
            *((content.rest,) if content.rest is not None and content.nonempty else ()),
        )
    for part in parts:
        found = asks_for_grad(m, part, depth + 1)
        if found is not None:
            return found
    return None


def _takes_tensors(name: str, short: str) -> bool:
    """Whether the library turns this argument into an array: functions do, constructors of figures do not."""
    if name.startswith("matplotlib."):
        return short in {
            "plot", "scatter", "hist", "imshow", "bar", "barh", "fill_between", "errorbar", "text", "axhline", "axvline",
            "semilogy", "semilogx", "loglog", "boxplot", "contour", "contourf", "pcolormesh", "step", "stem", "matshow",
        }  # fmt: skip
    if name.startswith("pandas."):
        return short in ("DataFrame", "Series")
    return not name.startswith("PIL.")


def _spelled(call: Call, name: str) -> str:
    spelled = ast.unparse(call.node.func) if isinstance(call.node, ast.Call) else name
    return f"{spelled if '.' in spelled else name}()"


def _argument_node(call: Call, at: int) -> ast.expr | None:
    node = call.node
    if isinstance(node, ast.Call) and not any(isinstance(a, ast.Starred) for a in node.args):
        if at < len(node.args):
            return node.args[at]
        if at - len(node.args) < len(node.keywords):
            return node.keywords[at - len(node.args)].value
    return None


def _math(m: Machine, name: str, call: Call) -> Value:
    cuts = frozenset[int]()
    for value in call.args:
        cuts |= number_of(m, call.node, f"{name}()", value).cuts
    if name in ("random.choice", "random.sample", "random.shuffle", "random.choices"):
        element = element_of(m, call.args[0], call.node) if call.args else Unknown()
        if name == "random.choice":
            return element
        return (
            NONE
            if name == "random.shuffle"
            else m.new(call.node, Sequence("list", None, element, nonempty=True))
        )
    return Number("float", cuts)


def _made_elsewhere(m: Machine, name: str, call: Call) -> Value:
    """A module that another package makes: it has parameters, and they train until they are frozen."""
    ref = m.unknown(call.node, f"a module made by `{name.rpartition('.')[2]}`", (), "module")
    content = m.cells[ref.address]
    if type(content) is Opaque:
        layers.as_module(m, ref, content, f"`{name.rpartition('.')[2]}()`", call.node)
    return ref


CALL_EXTERNAL.append(call_external)
