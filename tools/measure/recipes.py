"""Cases from one-line calls: what torch's operator database does not vary."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tools.measure.copies import Case
from tools.measure.fixtures import MODULES, fixtures
from tools.measure.signature import argument_names, kind_of, parameters

NUMBER = "number"  # the form of calls where a Python number stands for what may be a tensor
LIST = Path(__file__).with_name("recipes.txt")
BINARY = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow", ast.MatMult: "matmul", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
    ast.LShift: "lshift", ast.RShift: "rshift",
}  # fmt: skip
COMPARE = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.In: "contains",
}
UNARY = {ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert"}


@dataclass(frozen=True)
class Recipe:
    """One line of the list: `@form name :: code`, of which only the code is required."""

    name: str
    form: str
    brief: bool
    code: str
    tree: ast.stmt


@cache
def index() -> dict[str, list[Recipe]]:
    """The recipes of each public name."""
    found: dict[str, list[Recipe]] = {}
    for text in LIST.read_text(encoding="utf-8").splitlines():
        if text and not text.startswith("#"):
            recipe = _recipe(text)
            found.setdefault(recipe.name, []).append(recipe)
    return found


def cases(name: str) -> Iterator[Case]:
    """The calls that the list holds for a public name."""
    yield from (_case(r) for r in index().get(name, []) if not r.brief)


def brief_cases(name: str) -> Iterator[Case]:
    """Those calls in the list of which only the outputs are looked at."""
    yield from (_case(r) for r in index().get(name, []) if r.brief)


@cache
def number_parameters(name: str) -> frozenset[str]:
    """The parameters that are numbers in the number form of a name, as the list has it."""
    marked = [r for r in index().get(name, []) if r.form == NUMBER]
    return frozenset(p for r in marked for p, e in _arguments(r) if kind_of(_value(e)) == NUMBER)


def _recipe(text: str) -> Recipe:
    form, name = "", ""
    brief = text.startswith("~ ")
    text = text.removeprefix("~ ")
    if text.startswith("@"):
        form, _, text = text[1:].partition(" ")
    if " :: " in text:
        name, _, text = text.partition(" :: ")
    tree = ast.parse(text).body[0]
    return Recipe(name or _subject(tree), form, brief, text, tree)


def _subject(tree: ast.stmt) -> str:
    """The public name that a line exercises."""
    match tree:
        case ast.AugAssign(op=op):
            return f"torch.Tensor.__i{BINARY[type(op)]}__"
        case ast.Assign():
            return "torch.Tensor.__setitem__"
        case ast.Expr(value=ast.BinOp(left=left, op=op)):
            return f"torch.Tensor.__{'r' * isinstance(left, ast.Constant)}{BINARY[type(op)]}__"
        case ast.Expr(value=ast.Compare(ops=[op])):
            return f"torch.Tensor.__{COMPARE[type(op)]}__"
        case ast.Expr(value=ast.UnaryOp(op=op)):
            return f"torch.Tensor.__{UNARY[type(op)]}__"
        case ast.Expr(value=ast.Subscript()):
            return "torch.Tensor.__getitem__"
        case (
            ast.Expr(value=ast.Call(func=ast.Attribute() as target))
            | ast.Expr(value=ast.Attribute() as target)
        ):
            head, _, rest = ast.unparse(target).partition(".")
            prefix = {"F": "torch.nn.functional"}.get(head, head if head in MODULES else "torch.Tensor")
            return f"{prefix}.{rest}"
    raise ValueError(f"cannot tell what {ast.unparse(tree)!r} exercises: write `name :: code`")


def _case(recipe: Recipe) -> Case:
    held = fixtures()
    used = [n.id for n in ast.walk(recipe.tree) if isinstance(n, ast.Name) and n.id in held]
    names = list(dict.fromkeys(used))
    where = _parameters(recipe)
    args = tuple(held[n] for n in names)
    paths = [where.get(n, n) for n in names]
    shared = {p for p in paths if paths.count(p) > 1}
    labels = tuple(f"{p}[{n}]" if p in shared else p for p, n in zip(paths, names, strict=True))
    values = {name: _value(expression) for name, expression in _arguments(recipe)}
    return Case(
        recipe.name,
        _compiled(recipe, names),
        args,
        {},
        labels,
        _public(recipe),
        recipe.form,
        {name: kind_of(value) for name, value in values.items()},
        any(isinstance(value, float) for value in values.values()),
    )


def _compiled(recipe: Recipe, names: list[str]) -> Callable[..., Any]:
    if isinstance(recipe.tree, ast.Expr):
        code = compile(recipe.code, "<recipe>", "eval")

        def evaluate(*values: Any) -> Any:
            return eval(code, MODULES | dict(zip(names, values, strict=True)))  # noqa: S307

        return evaluate
    code = compile(recipe.code, "<recipe>", "exec")

    def execute(*values: Any) -> Any:
        scope = MODULES | dict(zip(names, values, strict=True))
        exec(code, scope)  # noqa: S102
        return scope[names[0]] if isinstance(recipe.tree, ast.AugAssign) else None

    return execute


def _arguments(recipe: Recipe) -> list[tuple[str, ast.expr]]:
    """Each argument expression with the parameter it goes to, the receiver first."""
    match recipe.tree:
        case ast.Expr(value=ast.Call(func=ast.Call())):
            return []  # a function made by a function: its parameters are not those of the name
        case ast.Expr(value=ast.Call(func=func, args=given, keywords=keywords)):
            expressions = list(given)
            if (
                isinstance(func, ast.Attribute)
                and isinstance(func.value, ast.Name)
                and func.value.id not in MODULES
            ):
                expressions.insert(0, func.value)
            named = [(k.arg, k.value) for k in keywords if k.arg]
        case ast.Expr(value=ast.BinOp(left=left, right=right)):
            pair = (right, left) if isinstance(left, ast.Constant) else (left, right)
            return list(zip(_operands(recipe.name), pair, strict=True))
        case ast.Expr(value=ast.Compare(left=left, comparators=[right])):
            return list(zip(_operands(recipe.name), (left, right), strict=True))
        case ast.AugAssign(target=target, value=value):
            return list(zip(_operands(recipe.name), (target, value), strict=True))
        case ast.Assign(targets=[ast.Subscript(value=target, slice=index)], value=value):
            return list(zip(parameters(recipe.name), (target, index, value), strict=True))
        case ast.Expr(value=ast.Subscript(value=target, slice=index)):
            return list(zip(parameters(recipe.name), (target, index), strict=True))
        case ast.Expr(value=ast.UnaryOp(operand=target)) | ast.Expr(value=ast.Attribute(value=target)):
            return [("self", target)]
        case _:
            return []
    names = argument_names(recipe.name, [_value(e) for e in expressions])
    return list(zip(names, expressions, strict=True)) + named


def _operands(name: str) -> tuple[str, str]:
    """The parameters of an operator's method."""
    found = parameters(name)
    return (found[0], found[1]) if len(found) > 1 else ("self", "other")


def _public(recipe: Recipe) -> tuple[str, ...]:
    two = isinstance(recipe.tree, ast.AugAssign) or (
        isinstance(recipe.tree, ast.Expr) and isinstance(recipe.tree.value, (ast.BinOp, ast.Compare))
    )
    found = parameters(recipe.name)
    return _operands(recipe.name) if two and len(found) < len(_operands(recipe.name)) else found


def _value(expression: ast.expr) -> Any:
    """What an argument evaluates to; a subscript's slices too, which numpy's `s_` hands back."""
    subscript = ast.Subscript(ast.parse("np.s_", mode="eval").body, expression, ast.Load())
    return eval(ast.unparse(subscript), MODULES | fixtures())  # noqa: S307


def _parameters(recipe: Recipe) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, expression in _arguments(recipe):
        for node in ast.walk(expression):
            if isinstance(node, ast.Name):
                found.setdefault(node.id, name)
    return found
