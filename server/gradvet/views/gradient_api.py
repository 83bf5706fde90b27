"""What a call that controls gradients does here: `.detach()`, `no_grad`, `backward`, `retain_graph` and the rest.

Methods of tensors are known by what the dry run found the receiver to be, functions by the imports that lead
to them; so a `detach` of something else, or a `no_grad` of another library, is left alone.
"""

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gradvet.analysis import Analysis
from gradvet.autograd.facts import ExpressionState
from gradvet.syntax.qualified import imported_names, qualified
from gradvet.text import Span
from gradvet.views.regions import MODES, Region, regions, without_graph
from gradvet.views.sharing import named_values, sharers
from gradvet.views.words import code

_MOST = 4


@dataclass(frozen=True, slots=True)
class _Use:
    """A use of the API: the whole call or attribute, what it is done to, and the states of that and of the result."""

    analysis: Analysis
    node: ast.expr
    receiver: ast.expr
    before: ExpressionState
    after: ExpressionState | None

    @property
    def subject(self) -> str:
        return code(self.analysis.module.text(self.receiver))

    @property
    def asks(self) -> bool:
        """Whether there may be a graph to lose."""
        return self.before.requires_grad != "no"

    @property
    def reached(self) -> str:
        return _names(self.before.reaches)


def explained(analysis: Analysis, character: Span) -> tuple[Span, str] | None:
    """What the use of the API at a character does, in Markdown, and its span; None where there is none."""
    around = _around(analysis, character)
    found = _method(analysis, character, around) or _keyword(analysis, character, around)
    found = found or _function(analysis, around)
    if found is None:
        return None
    span, name, sentences = found
    return span, f"{code(name)} here: {' '.join(sentences)}"


_Found = tuple[Span, str, list[str]]


# -- methods and attributes of tensors


def _method(analysis: Analysis, character: Span, around: Sequence[ast.AST]) -> _Found | None:
    source, module = analysis.source, analysis.module
    states = analysis.facts.states
    for node in around:
        if not isinstance(node, ast.Attribute) or node.attr not in _METHODS:
            continue
        end = source.span(node).end
        name = Span(end - len(node.attr), end)
        if not (name.start <= character.start and character.end <= name.end):
            continue
        before = states.get(node.value)
        if before is None:
            return _of_optimizer(analysis, node, name)
        above = module.parents.get(node)
        call = above if isinstance(above, ast.Call) and above.func is node else None
        if (call is None) == (node.attr in _CALLED):
            continue
        whole: ast.expr = call or node
        use = _Use(analysis, whole, node.value, before, states.get(whole))
        sentences = [*_METHODS[node.attr](use)]
        words = f".{node.attr}()" if call is not None else f".{node.attr}"
        return (name, words, sentences) if sentences else None
    return None


def _around(analysis: Analysis, character: Span) -> Sequence[ast.AST]:
    """The nodes that hold a character, the smallest first."""
    source = analysis.source
    row, _ = source.row_column(character.start)
    found: list[tuple[int, int, ast.AST]] = []
    todo: list[ast.AST] = [analysis.module.tree]
    while todo:
        for node in ast.iter_child_nodes(todo.pop()):
            if node in analysis.module.gone:
                continue
            first = node.decorator_list[0] if getattr(node, "decorator_list", ()) else node  # type: ignore[attr-defined]
            if not getattr(first, "lineno", row) <= row <= getattr(node, "end_lineno", row):
                continue
            todo.append(node)
            if isinstance(node, ast.expr | ast.keyword):
                span = source.span(node)
                if span.start <= character.start and character.end <= span.end:
                    found.append((span.end - span.start, len(found), node))
    return [node for _, _, node in sorted(found, key=lambda found: found[:2])]


def _names(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return f"{', '.join(code(name) for name in names[:_MOST])}{more}"


def _detach(use: _Use) -> Iterator[str]:
    if not use.asks:
        yield (
            f"{use.subject} carries no graph, so this gives the same value and storage under another object."
        )
        return
    to = f" to {use.reached}" if use.before.reaches else ""
    yield f"the result no longer leads back{to}: no gradient comes there through it."
    yield f"It shares storage with {use.subject}; change one in place and both change."
    yield f"Memory: the graph of {use.subject} lives on as long as {use.subject} does."


def _detach_in_place(use: _Use) -> Iterator[str]:
    to = f", and leads back to {use.reached} no more" if use.before.reaches else ""
    yield f"{use.subject} itself loses its graph{to}; names that share its storage keep theirs."


def _data(use: _Use) -> Iterator[str]:
    yield f"the storage of {use.subject} without its graph."
    if use.asks:
        yield (
            "Writes through it are not seen by autograd: a backward that has saved the "
            "value goes wrong in silence."
        )
    yield "`.detach()` gives the same, and torch notices such writes."


def _clone(use: _Use) -> Iterator[str]:
    yield f"a copy of {use.subject} in storage of its own."
    if use.asks:
        yield (
            f"It is part of the graph: the gradient of the copy flows on{_on_to(use)}, and "
            "the graph lives as long as it does."
        )
    others = [other.name for other in sharers(use.analysis, use.receiver, use.before)][:_MOST]
    if others:
        yield f"What is done to it in place no longer shows in {_names(tuple(others))}."


def _on_to(use: _Use) -> str:
    return f" to {use.reached}" if use.before.reaches else f" into {use.subject}"


def _item(use: _Use) -> Iterator[str]:
    yield (
        "a Python number, without a graph; on an accelerator the program waits until "
        f"{use.subject} is computed."
    )
    if use.asks:
        yield "What is computed from the number sends no gradient back."


def _numpy(use: _Use) -> Iterator[str]:
    if use.before.requires_grad == "yes":
        yield f"torch raises: {use.subject} requires grad. `.detach().numpy()` is what it asks for."
    else:
        yield f"an array over the same storage as {use.subject}; change one in place and both change."


def _backward(use: _Use) -> Iterator[str]:
    if use.before.requires_grad == "no":
        yield f"torch raises: {use.subject} carries no graph."
        return
    if use.before.reaches:
        yield f"adds the gradient of {use.subject} to the `.grad` of {use.reached}."
    else:
        yield f"walks the graph of {use.subject} and adds to the `.grad` of the leaves at its ends."
    if _true(use.node, "retain_graph") or _true(use.node, "create_graph"):
        yield "What the graph has saved is kept, since the call says so."
    else:
        yield "What the graph has saved is freed on the way, so a second backward through it raises."
    if _true(use.node, "create_graph"):
        yield "The gradients have a graph themselves."


def _true(node: ast.AST, name: str) -> bool:
    """Whether a call says `name=True`."""
    return isinstance(node, ast.Call) and any(
        keyword.arg == name and isinstance(keyword.value, ast.Constant) and keyword.value.value is True
        for keyword in node.keywords
    )


def _requires_grad_(use: _Use) -> Iterator[str]:
    off = isinstance(use.node, ast.Call) and any(
        isinstance(value, ast.Constant) and value.value is False
        for value in (*use.node.args, *(keyword.value for keyword in use.node.keywords))
    )
    if use.before.is_leaf == "no" and off:
        yield f"torch raises: {use.subject} was computed, and only leaves can be told not to require grad."
    elif use.before.is_leaf == "no":
        yield f"nothing changes: {use.subject} was computed and requires grad already."
    elif off:
        yield f"a backward leaves {use.subject} out, and ops on it alone record nothing."
    else:
        yield (
            f"from here on, ops on {use.subject} are recorded, and a backward puts its "
            f"gradient in {use.subject}'s `.grad`."
        )


def _requires_grad(use: _Use) -> Iterator[str]:
    yield {"yes": "true", "no": "false", "maybe": "true or false, by the path that the program takes"}[
        use.before.requires_grad
    ] + "."


def _retain_grad(use: _Use) -> Iterator[str]:
    if use.before.is_leaf == "yes":
        yield f"does nothing: {use.subject} is a leaf, whose `.grad` is kept anyway."
    else:
        yield (
            f"a backward keeps the gradient of {use.subject} in its `.grad`, which it does "
            "not do of values that were computed."
        )


def _grad(use: _Use) -> Iterator[str]:
    if use.before.is_leaf == "no":
        yield (
            f"None, unless `retain_grad()` was called: {use.subject} was computed, and a "
            "backward only passes its gradient on."
        )
    elif use.before.requires_grad == "no":
        yield f"None: {use.subject} does not require grad."
    else:
        yield (
            f"what backwards have added up for {use.subject} since it was last set to "
            "zero; None before the first."
        )


def _grad_fn(use: _Use) -> Iterator[str]:
    names = use.before.text.partition("grad_fn=")[2].split("|")
    words = " or ".join("unknown" if name in ("", "*") else code(name) for name in names)
    yield f"{words}: the node of the graph that made {use.subject}."


def _is_leaf(use: _Use) -> Iterator[str]:
    yield {
        "yes": "true: no op with a graph made it.",
        "no": "false: an op made it, and its gradient is passed on.",
        "maybe": "true or false, by the path that the program takes.",
    }[use.before.is_leaf]


def _register_hook(use: _Use) -> Iterator[str]:
    yield (
        f"the function is called with the gradient of {use.subject} in each backward that "
        "comes by; what it gives takes the gradient's place."
    )


_METHODS: Mapping[str, Callable[[_Use], Iterator[str]]] = {
    "backward": _backward,
    "clone": _clone,
    "data": _data,
    "detach": _detach,
    "detach_": _detach_in_place,
    "grad": _grad,
    "grad_fn": _grad_fn,
    "is_leaf": _is_leaf,
    "item": _item,
    "numpy": _numpy,
    "register_hook": _register_hook,
    "requires_grad": _requires_grad,
    "requires_grad_": _requires_grad_,
    "retain_grad": _retain_grad,
    "tolist": _item,
    "step": lambda _use: iter(()),
    "zero_grad": lambda _use: iter(()),
}
_CALLED = frozenset(_METHODS) - {"data", "grad", "grad_fn", "is_leaf", "requires_grad"}


def _of_optimizer(analysis: Analysis, node: ast.Attribute, name: Span) -> _Found | None:
    """`step()` and `zero_grad()` of what the file makes as an optimizer."""
    owner = ast.unparse(node.value)
    names = imported_names(analysis.module.tree)
    made = next(
        (
            value
            for target, value in named_values(analysis)
            if ast.unparse(target) == owner
            and isinstance(value, ast.Call)
            and qualified(value.func, names).startswith("torch.optim.")
        ),
        None,
    )
    if made is None:
        return None
    of = f" of {code(owner)}"
    match node.attr:
        case "step":
            told = [
                f"changes the parameters{of} in place by their `.grad`, without recording it.",
                "A graph that has saved them cannot be walked after that.",
            ]
        case "zero_grad":
            told = [
                f"the parameters{of} have no `.grad` until the next backward; what was added up is dropped."
            ]
        case _:
            return None
    return name, f".{node.attr}()", told


# -- keywords


def _keyword(analysis: Analysis, character: Span, around: Sequence[ast.AST]) -> _Found | None:
    states = analysis.facts.states
    for node in around:
        if not isinstance(node, ast.keyword) or node.arg not in (
            "retain_graph",
            "create_graph",
            "requires_grad",
        ):
            continue
        span = analysis.source.span(node)
        call = analysis.module.parents.get(node)
        if not isinstance(call, ast.Call) or character.start >= span.start + len(node.arg):
            continue
        on = isinstance(node.value, ast.Constant) and node.value.value is True
        name = Span(span.start, span.start + len(node.arg))
        if node.arg == "requires_grad":
            state = states.get(call)
            if state is None:
                return None
            told = "a new leaf: ops on it are recorded, and a backward puts its gradient in its `.grad`."
            return name, node.arg, [told if on else "ops on it alone are not recorded."]
        root = call.func.value if isinstance(call.func, ast.Attribute) else None
        subject = (
            code(analysis.module.text(root)) if root is not None and root in states else "what it starts from"
        )
        if not on:
            return name, node.arg, [f"what the graph of {subject} has saved is freed on the way."]
        if node.arg == "create_graph":
            told = (
                "the gradients are computed with a graph of their own, so that one can go "
                "backward through them; it keeps the first graph alive too."
            )
        else:
            told = (
                f"what the graph of {subject} has saved stays in memory after this "
                "backward, so that another can go through it."
            )
        verdicts = [
            f"But: {found.message}."
            for found in analysis.diagnostics
            if found.span.start <= span.start and span.end <= found.span.end and node.arg in found.message
        ]
        return name, node.arg, [told, *verdicts]
    return None


# -- functions of torch


def _function(analysis: Analysis, around: Sequence[ast.AST]) -> _Found | None:
    named = [node for node in around if isinstance(node, ast.Name | ast.Attribute)]
    names = imported_names(analysis.module.tree) if named else {}
    for node in named:
        whole = qualified(node, names)
        if whole in MODES:
            region = next((r for r in regions(analysis) if _heads(r, node)), None)
            return (
                analysis.source.span(node),
                whole.rpartition(".")[2],
                [*_mode(analysis, MODES[whole], region)],
            )
        if whole in _FUNCTIONS:
            return analysis.source.span(node), whole.removeprefix("torch."), [_FUNCTIONS[whole]]
    return None


def _heads(region: Region, node: ast.AST) -> bool:
    return region.head is node or (isinstance(region.head, ast.Call) and region.head.func is node)


_MODE_WORDS = {
    "no_grad": "ops are not recorded",
    "inference_mode": "ops are not recorded, and the tensors that are made can never be part of a graph",
    "enable_grad": "ops are recorded again",
    "set_grad_enabled": "ops are recorded or not, by its argument",
}


def _mode(analysis: Analysis, mode: str, region: Region | None) -> Iterator[str]:
    if region is None:
        yield f"while it is entered, {_MODE_WORDS[mode]}. By itself, as an expression, it changes nothing."
        return
    source = analysis.source
    first, last = (source.row_column(offset)[0] for offset in (region.span.start, region.span.end))
    rows = (
        source.row_words(first) if first == last else f"{source.row_words(first)} to {source.row_words(last)}"
    )
    yield f"from {rows}, {_MODE_WORDS[mode]}."
    if mode == "enable_grad":
        return
    lost = without_graph(analysis, region)
    inside = any(
        region.span.start <= source.span(node).start < region.span.end for node in analysis.facts.states
    )
    if lost:
        told = tuple(dict.fromkeys(text for _, text in lost))
        yield f"But for it, {_names(told)} would have a graph."
    elif inside and not analysis.facts.limits:
        yield "Nothing in there was seen to require grad, so no graph is lost by it."


_FUNCTIONS = {
    "torch.autograd.grad": (
        "gives the gradients as values and leaves every `.grad` as it is; what the graph "
        "has saved is freed, unless `retain_graph` or `create_graph` says otherwise."
    ),
    "torch.autograd.backward": (
        "walks the graphs of several tensors at once and adds to the `.grad` of their leaves."
    ),
    "torch.utils.checkpoint.checkpoint": (
        "what is in it saves nothing for backward, which runs it once more instead."
    ),
    "torch.nn.utils.clip_grad_norm_": (
        "scales the `.grad` of the parameters in place, so that their joint norm is no "
        "larger; it has to stand between `backward()` and `step()`."
    ),
    "torch.nn.utils.clip_grad_value_": (
        "cuts each element of the `.grad` of the parameters off at a bound, in place; it "
        "has to stand between `backward()` and `step()`."
    ),
    "torch.nn.Parameter": (
        "a leaf that requires grad; as an attribute of a module it is among its `parameters()`."
    ),
    "torch.nn.parameter.Parameter": (
        "a leaf that requires grad; as an attribute of a module it is among its `parameters()`."
    ),
    "torch.is_grad_enabled": "whether ops are recorded here.",
    "torch.from_numpy": "a tensor over the array's own memory; change one in place and both change.",
}
