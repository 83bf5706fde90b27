"""Edits that turn an operation in place into one that is not, or that add a line; text edits, as in `edits.py`."""

import ast

from gradvet.syntax import edits
from gradvet.syntax.parse import Module
from gradvet.syntax.place import first_row
from gradvet.text import Edit, Span

_SYMBOLS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.MatMult: "@",
}  # fmt: skip
_LOOSE = (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Lambda, ast.Tuple, ast.NamedExpr)


def out_of_place(module: Module, node: ast.AugAssign) -> list[Edit]:
    """`x += y` becomes `x = x + y`."""
    symbol = _SYMBOLS.get(type(node.op))
    if symbol is None:
        return []
    target, own = module.source.span(node.target), module.source.span(node.value)
    whole = edits.bracketed(module, node.value)
    middle = Edit(Span(target.end, whole.start), f" = {module.text(node.target)} {symbol} ")
    if whole == own and isinstance(node.value, _LOOSE):
        return [
            Edit(middle.span, f"{middle.text}("),
            Edit(Span(own.end, own.end), ")"),
        ]
    return [middle]


def call_out_of_place(module: Module, call: ast.Call, name: ast.Name) -> list[Edit]:
    """`x.relu_()` becomes `x.relu()`; and `x = x.relu()` where the result was dropped."""
    statement = module.statement(call)
    if not isinstance(call.func, ast.Attribute) or call.func.value is not name:
        return []
    end = module.source.span(call.func).end
    made = [Edit(Span(end - 1, end), "")]
    if isinstance(statement, ast.Expr) and statement.value is call:
        start = module.source.span(statement).start
        made.insert(0, Edit(Span(start, start), f"{name.id} = "))
    return made


def add_line_before(module: Module, node: ast.AST, line: str) -> list[Edit]:
    """Put a line before the statement that holds a node, indented as it is; no edits behind `;` or a colon."""
    statement = module.statement(node)
    start = module.source.span(statement).start
    begin = module.source.line_starts[first_row(statement) - 1]
    margin = module.source.text[begin:start]
    if margin.strip() or first_row(statement) != statement.lineno:
        return []
    return [Edit(Span(start, start), f"{line}{module.source.line_end}{margin}")]


def add_lines_after(module: Module, node: ast.AST, lines: list[str]) -> list[Edit]:
    """Put lines after the statement that holds a node; no edits where something else shares its lines."""
    statement = module.statement(node)
    span = module.source.span(statement)
    begin = module.source.line_starts[statement.lineno - 1]
    margin = module.source.text[begin : span.start]
    last = module.source.line_starts[(statement.end_lineno or statement.lineno) - 1]
    rest = module.bare[span.end :].splitlines()[:1]
    if margin.strip() or (rest and rest[0].strip()) or last < begin:
        return []
    end = (
        span.end + len(module.source.text[span.end :].splitlines()[0])
        if module.source.text[span.end :]
        else span.end
    )
    added = "".join(f"{module.source.line_end}{margin}{line}" for line in lines)
    return [Edit(Span(end, end), added)]
