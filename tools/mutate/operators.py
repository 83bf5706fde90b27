"""The faults that are put in: each operator finds its sites by the form of the code alone.

What an operator asks of a site keeps out what is no fault by the very form of it, such as a `.detach()`
that stands under `torch.no_grad()`. Whether there is a graph at all cannot be seen from the form: that is
judged by hand, in `judged.json`, and never by what an analyser says.
"""

import ast
from collections.abc import Callable, Iterator

from gradvet.syntax.parse import Module
from gradvet.text import Edit, Span
from tools.mutate.mutant import Site, around, follow, function_of, statements, steps_of

Operator = Callable[[Module], Iterator[Site]]
OPERATORS: dict[str, Operator] = {}

_KEEPING = ("append", "add", "extend", "update", "put", "store", "appendleft")
_NUMBERS = (
    "item",
    "tolist",
    "long",
    "int",
    "bool",
    "argmax",
    "size",
    "dim",
    "numel",
    "shape",
    "requires_grad",
)
_WITHOUT_GRAD = ("no_grad", "inference_mode")
_BLOCKS = ("body", "orelse", "finalbody")


def operator(function: Operator) -> Operator:
    """Register an operator under its function's name."""
    OPERATORS[function.__name__.replace("_", "-")] = function
    return function


def trains(text: str) -> bool:
    """Whether a module's text has to do with training."""
    return any(word in text for word in (".backward(", "training_step", "compute_loss", "optimizer"))


# -- gradients that are kept or let through


@operator
def item_dropped(module: Module) -> Iterator[Site]:
    """`.item()` of a loss that is kept or added up, where grad mode is not seen to be off."""
    for node in _method_calls(module, "item"):
        kept = "loss" in ast.unparse(node).lower() and _is_kept(module, node)
        if kept and not _without_grad(module, node):
            yield _unwrapped(module, node)


@operator
def detach_dropped(module: Module) -> Iterator[Site]:
    """`.detach()` where grad mode is not seen to be off, and what comes of it is not a plain number."""
    for node in _method_calls(module, "detach"):
        after = module.parents.get(node)
        plain = isinstance(after, ast.Attribute) and after.attr in _NUMBERS
        if not plain and not _without_grad(module, node):
            yield _unwrapped(module, node)


@operator
def data_for_detach(module: Module) -> Iterator[Site]:
    """`.data` in the place of `.detach()`."""
    for node in _method_calls(module, "detach"):
        if not _without_grad(module, node):
            statement = module.statement(node)
            edit = Edit(_trailer(module, node), ".data")
            yield Site(statement, (edit,), follow(module, statement))


@operator
def clone_dropped(module: Module) -> Iterator[Site]:
    """`.clone()` of what is then changed in place, or of parameters that a comprehension keeps."""
    for node in _method_calls(module, "clone"):
        statement = module.statement(node)
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)]) if _is_chain_of(statement.value, node):
                if _is_edited(function_of(module, statement), name):
                    yield _unwrapped(module, node)
                    continue
        if _is_of_parameters(module, node):
            yield _unwrapped(module, node)


@operator
def no_grad_dropped(module: Module) -> Iterator[Site]:
    """`with torch.no_grad():`, or the decorator."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.With) and len(node.items) == 1 and _is_no_grad(node.items[0].context_expr):
            head = Span(module.source.span(node).start, module.source.span(node.items[0].context_expr).end)
            yield Site(node, (Edit(head, "if True"),), follow(module, node))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for decorator in node.decorator_list:
                if _is_no_grad(decorator):
                    span = module.source.span(decorator)
                    edit = Edit(Span(span.start - 1, span.end), "")
                    yield Site(node, (edit,), follow(module, node) | _callers(module, node.name))


# -- the training step


@operator
def zero_grad_dropped(module: Module) -> Iterator[Site]:
    """`optimizer.zero_grad()`."""
    for statement, _ in _calls_as_statements(module, "zero_grad"):
        span = module.source.span(statement)
        yield Site(statement, (Edit(span, "pass"),), steps_of(module, statement))


@operator
def call_forgotten(module: Module) -> Iterator[Site]:
    """The brackets of `loss.backward()`, `optimizer.step()`, `optimizer.zero_grad()`."""
    for name in ("backward", "step", "zero_grad"):
        for statement, call in _calls_as_statements(module, name):
            if name == "step" and "opt" not in ast.unparse(call.func).lower():
                continue
            brackets = Span(module.source.span(call.func).end, module.source.span(call).end)
            yield Site(statement, (Edit(brackets, ""),), steps_of(module, statement))


@operator
def step_before_backward(module: Module) -> Iterator[Site]:
    """`optimizer.step()` in the place of `loss.backward()`, and the other way round."""
    for block in _blocks(module):
        backward = next((s for s in block if _is_call_of(s, "backward")), None)
        step = next((s for s in block if _is_call_of(s, "step") and "opt" in ast.unparse(s).lower()), None)
        if backward is not None and step is not None and backward.lineno < step.lineno:
            yield Site(step, tuple(_swapped(module, backward, step)), steps_of(module, step))


@operator
def zero_grad_after_backward(module: Module) -> Iterator[Site]:
    """`optimizer.zero_grad()` between `loss.backward()` and `optimizer.step()`."""
    for block in _blocks(module):
        zero = next((s for s in block if _is_call_of(s, "zero_grad")), None)
        backward = next((s for s in block if _is_call_of(s, "backward")), None)
        step = next((s for s in block if _is_call_of(s, "step")), None)
        if zero is None or backward is None or step is None:
            continue
        if zero.lineno < backward.lineno < step.lineno:
            end = module.source.span(backward).end
            edits = (
                Edit(module.source.span(zero), "pass"),
                Edit(Span(end, end), f"; {module.text(zero)}"),
            )
            yield Site(backward, edits, steps_of(module, backward))


# -- forms of code


def _method_calls(module: Module, name: str) -> Iterator[ast.Call]:
    for node in ast.walk(module.tree):
        match node:
            case ast.Call(func=ast.Attribute(attr=attr), args=[], keywords=[]) if attr == name:
                yield node


def _trailer(module: Module, node: ast.Call) -> Span:
    """The span of `.name()` at the end of a call."""
    assert isinstance(node.func, ast.Attribute)  # noqa: S101  the calls are found by that
    return Span(module.source.span(node.func.value).end, module.source.span(node).end)


def _unwrapped(module: Module, node: ast.Call) -> Site:
    statement = module.statement(node)
    return Site(statement, (Edit(_trailer(module, node), ""),), follow(module, statement))


def _is_kept(module: Module, node: ast.AST) -> bool:
    """Whether a value goes into a total, a container or an attribute as it is, or after some arithmetic."""
    above = module.parents.get(node)
    while isinstance(above, (ast.BinOp, ast.Dict, ast.Tuple, ast.IfExp)):
        node, above = above, module.parents.get(above)
    match above:
        case ast.AugAssign(value=value):
            return value is node
        case ast.Assign(targets=[ast.Subscript() | ast.Attribute()], value=value):
            return value is node
        case ast.Assign(targets=[ast.Name()], value=ast.Dict()):
            return True
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.BinOp() as sum_):
            return any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(sum_))
        case ast.Call(func=ast.Attribute(attr=attr)):
            return node is not above.func and attr in _KEEPING
    return False


def _without_grad(module: Module, node: ast.AST) -> bool:
    """Whether a node stands in a block or function that turns grad mode off."""
    while (above := around(module, node, ast.With, ast.FunctionDef, ast.AsyncFunctionDef)) is not None:
        node = above
        makers = [item.context_expr for item in node.items] if isinstance(node, ast.With) else []
        makers += getattr(node, "decorator_list", [])
        if any(_is_no_grad(maker) for maker in makers):
            return True
    return False


def _is_no_grad(maker: ast.expr) -> bool:
    name = maker.func if isinstance(maker, ast.Call) else maker
    return (getattr(name, "attr", None) or getattr(name, "id", None)) in _WITHOUT_GRAD


def _is_chain_of(value: ast.expr, node: ast.AST) -> bool:
    """Whether a value is a node, or a chain of method calls on it."""
    here: ast.AST = value
    while here is not node:
        match here:
            case ast.Call(func=ast.Attribute(value=inner)):
                here = inner
            case _:
                return False
    return True


def _is_of_parameters(module: Module, node: ast.Call) -> bool:
    """Whether a clone is what a comprehension over the parameters or the state of a module keeps."""
    made = around(module, node, ast.ListComp, ast.DictComp)
    match made:
        case ast.ListComp(elt=kept) | ast.DictComp(value=kept) if _is_chain_of(kept, node):
            return any(
                word in ast.unparse(made.generators[0].iter) for word in ("parameters()", "state_dict()")
            )
    return False


def _is_edited(function: ast.AST, name: str) -> bool:
    for statement in statements(function):
        match statement:
            case (
                ast.Assign(targets=[ast.Subscript(value=ast.Name(id=changed))])
                | ast.AugAssign(target=ast.Subscript(value=ast.Name(id=changed)) | ast.Name(id=changed))
            ) if changed == name:
                return True
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=changed), attr=method))):
                if changed == name and method.endswith("_") and not method.endswith("__"):
                    return True
    return False


def _calls_as_statements(module: Module, name: str) -> Iterator[tuple[ast.Expr, ast.Call]]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Expr) and _is_call_of(node, name) and isinstance(node.value, ast.Call):
            yield node, node.value


def _is_call_of(node: ast.stmt, name: str) -> bool:
    match node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=attr))):
            return attr == name
    return False


def _callers(module: Module, name: str) -> frozenset[int]:
    """The rows of the statements in which a function is called by its name."""
    return frozenset(
        module.statement(node).lineno
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call)
        and name in (getattr(node.func, "attr", None), getattr(node.func, "id", None))
    )


def _blocks(module: Module) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(module.tree):
        for field in _BLOCKS:
            block = getattr(node, field, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                yield block


def _swapped(module: Module, first: ast.stmt, second: ast.stmt) -> Iterator[Edit]:
    yield Edit(module.source.span(first), module.text(second))
    yield Edit(module.source.span(second), module.text(first))
