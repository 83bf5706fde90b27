"""Edits inside one expression, as text edits: what they do not touch keeps its comments, brackets and layout.

Each function gives no edits where it cannot be sure of the place.
"""

import ast
from collections.abc import Collection

from gradvet.syntax.parse import Module
from gradvet.text import Edit, Span

_ATOMS = (
    ast.Name,
    ast.Attribute,
    ast.Call,
    ast.Subscript,
    ast.Constant,
    ast.JoinedStr,
    ast.List,
    ast.Set,
    ast.Dict,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
)
# What takes an operand, so that an operand with an operator of its own needs brackets there.
_BINDING = (
    ast.BinOp,
    ast.UnaryOp,
    ast.BoolOp,
    ast.Compare,
    ast.IfExp,
    ast.Await,
    ast.Starred,
    ast.Attribute,
    ast.FormattedValue,
    ast.comprehension,
    ast.NamedExpr,
)
_NEVER_BARE = (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Tuple)
_SPACE = " \t\f\r\n\\"


def bracketed(module: Module, node: ast.expr) -> Span:
    """The span of an expression with the brackets around it that belong to nothing else."""
    span, bare = module.source.span(node), module.bare
    parent = module.parents.get(node)
    while True:
        left, right = _code_before(bare, span.start), _code_after(bare, span.end)
        if bare[left : left + 1] != "(" or bare[right : right + 1] != ")":
            return span
        if (
            isinstance(parent, ast.Call)
            and node is not parent.func
            and right + 1 == module.source.span(parent).end
        ):
            return span  # the brackets of the call
        if (
            isinstance(parent, ast.ClassDef)
            and node in parent.bases
            and bare[_code_before(bare, left)] != "("
        ):
            return span  # the brackets of the class
        span = Span(left, right + 1)


def after(module: Module, node: ast.expr, trailer: str) -> list[Edit]:
    """Put a trailer, `.detach()` or `[0]`, after an expression; in brackets where it needs them."""
    if isinstance(node, ast.Starred):
        node = node.value
    if not _placed(module, node):
        return []
    own, whole = module.source.span(node), bracketed(module, node)
    if _is_only_argument(module, node):
        return [_insert(own.start, "("), _insert(own.end, f"{trailer})")]
    if _is_atom(module, node):
        return [_insert(own.end, trailer)]
    if own != whole:
        return [_insert(whole.end, trailer)]
    return [_insert(own.start, "("), _insert(own.end, f"){trailer}")]


def replace(module: Module, node: ast.expr, text: str) -> list[Edit]:
    """Put another expression in the place of one; in brackets where it needs them there."""
    if not _placed(module, node):
        return []
    own = module.source.span(node)
    needs = _is_only_argument(module, node) or (
        own == bracketed(module, node) and _needs_brackets(module, node, text)
    )
    return [Edit(own, f"({text})" if needs else text)]


def unwrap(module: Module, outer: ast.expr, inner: ast.expr) -> list[Edit]:
    """Leave of an expression only one that stands inside it: `float(x)` becomes `x`."""
    if not _placed(module, outer) or not _placed(module, inner):
        return []
    own, whole = module.source.span(outer), bracketed(module, inner)
    open_ = whole == module.source.span(inner) and _needs_brackets(module, outer, module.source[whole])
    return [Edit(Span(own.start, whole.start), "(" * open_), Edit(Span(whole.end, own.end), ")" * open_)]


def drop_call(module: Module, call: ast.Call) -> list[Edit]:
    """Take a method call off its receiver: `loss.item()` becomes `loss`."""
    if not isinstance(call.func, ast.Attribute) or not _placed(module, call):
        return []
    return [Edit(Span(bracketed(module, call.func.value).end, module.source.span(call).end), "")]


def insert_in_chain(module: Module, call: ast.expr, trailer: str, through: Collection[str]) -> list[Edit]:
    """Put a trailer before the method calls at the end of a chain.

    With `through={"cpu", "numpy"}`, `.detach()` goes into `x.float().cpu().numpy()` before `.cpu()`.
    """
    return after(module, receiver(call, through), trailer)


def receiver(call: ast.expr, through: Collection[str]) -> ast.expr:
    """What a chain of method calls with these names starts from."""
    while isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in through:
        call = call.func.value
    return call


def add_call_keyword(module: Module, call: ast.Call, keyword: str) -> list[Edit]:
    """Add a last argument, `create_graph=True`, to a call."""
    if not _placed(module, call):
        return []
    source, bare = module.source, module.bare
    close = source.span(call).end - 1
    given: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    arguments = sorted(given, key=lambda node: source.span(node).end)
    if not arguments:
        return [_insert(close, keyword)]
    last = arguments[-1]
    if isinstance(last, ast.GeneratorExp) and _is_only_argument(module, last):
        return [_insert(close, f"), {keyword}"), _insert(source.span(last).start, "(")]
    comma = _code_before(bare, close)
    if bare[comma] == ",":
        return [_insert(comma, f", {keyword}")]
    return [_insert(_argument(module, last).end, f", {keyword}")]


def remove_call_keyword(module: Module, call: ast.Call, name: str) -> list[Edit]:
    """Take the keyword argument of this name out of a call, with its comma, and no comment."""
    found = next((keyword for keyword in call.keywords if keyword.arg == name), None)
    if found is None or not _placed(module, call):
        return []
    source, bare = module.source, module.bare
    span = _argument(module, found)
    before, behind = _code_before(bare, span.start), _code_after(bare, span.end)
    if bare[behind] == ",":
        end = behind + 1
        rest = source.text[end:].lstrip(" \t")
        if rest[:1] not in ("\r", "\n", "#"):
            return [Edit(Span(span.start, len(source.text) - len(rest)), "")]
        return _with_line(module, Span(span.start, end))
    if bare[before] != ",":
        return [Edit(span, "")]
    if source.text[before + 1 : span.start].strip(_SPACE):  # a comment
        return [*_with_line(module, Span(before, before + 1)), *_with_line(module, span)]
    return [Edit(Span(before, span.end), "")]


def _with_line(module: Module, span: Span) -> list[Edit]:
    """Delete a span; and its line, when nothing else stands there."""
    text = module.source.text
    start, end = span.start, span.end
    while start > 0 and text[start - 1] in " \t":
        start -= 1
    while end < len(text) and text[end] in " \t":
        end += 1
    alone = (start == 0 or text[start - 1] in "\r\n") and text[end : end + 1] in ("\r", "\n")
    if not alone:
        ends_line = text[end : end + 1] in ("\r", "\n")
        return [Edit(Span(start, end) if ends_line else span, "")]
    end += 2 if text.startswith("\r\n", end) else 1
    return [Edit(Span(start, end), "")]


def _argument(module: Module, node: ast.expr | ast.keyword) -> Span:
    if isinstance(node, ast.keyword):
        return Span(module.source.span(node).start, bracketed(module, node.value).end)
    if isinstance(node, ast.Starred):
        return Span(module.source.span(node).start, bracketed(module, node.value).end)
    return bracketed(module, node)


def _insert(offset: int, text: str) -> Edit:
    return Edit(Span(offset, offset), text)


def _code_before(bare: str, offset: int) -> int:
    """The offset of the last character of code before one; -1 when there is none."""
    return len(bare[:offset].rstrip(_SPACE)) - 1


def _code_after(bare: str, offset: int) -> int:
    return len(bare) - len(bare[offset:].lstrip(_SPACE))


def _is_only_argument(module: Module, node: ast.expr) -> bool:
    """Whether this is a generator that shares its brackets with the call that it is given to."""
    parent = module.parents.get(node)
    return (
        isinstance(node, ast.GeneratorExp)
        and isinstance(parent, ast.Call)
        and module.source.span(node).end == module.source.span(parent).end
    )


def _is_atom(module: Module, node: ast.expr) -> bool:
    """Whether a trailer can follow the expression as it stands."""
    if isinstance(node, ast.Tuple):
        span = module.source.span(node)
        return _closing(module.bare, span.start) == span.end - 1
    if isinstance(node, ast.Constant):
        return isinstance(node.value, bool) or not isinstance(node.value, int)
    return isinstance(node, _ATOMS)


def _closing(bare: str, start: int) -> int | None:
    """The offset of the bracket that closes the one at `start`."""
    depth = 0
    for offset in range(start, len(bare)):
        depth += (bare[offset] in "([{") - (bare[offset] in ")]}")
        if depth == 0:
            return offset if offset > start else None
    return None


def _needs_brackets(module: Module, node: ast.expr, text: str) -> bool:
    """Whether an expression of this text needs brackets in the place of the node."""
    new = _expression(text)
    if new is None:
        return (
            _expression(f"({text}\n)") is not None
        )  # a walrus, or lines that need brackets to hold together
    if isinstance(new, _NEVER_BARE):
        return not (isinstance(new, ast.Tuple) and text.strip().startswith("("))
    parent = module.parents.get(node)
    trailed = (isinstance(parent, ast.Subscript) and node is parent.value) or (
        isinstance(parent, ast.Call) and node is parent.func
    )
    if isinstance(new, ast.Constant) and isinstance(new.value, int) and not isinstance(new.value, bool):
        return isinstance(parent, ast.Attribute)
    return not isinstance(new, _ATOMS) and (trailed or isinstance(parent, _BINDING))


def _placed(module: Module, node: ast.expr) -> bool:
    """Whether the node's span can be trusted: before Python 3.12, one in an f-string may lie elsewhere."""
    above = module.parents.get(node)
    while isinstance(above, (ast.expr, ast.keyword, ast.comprehension)):
        if isinstance(above, ast.JoinedStr):
            return _same(module, node)
        above = module.parents.get(above)
    return True


def _same(module: Module, node: ast.expr) -> bool:
    there = _expression(f"({module.text(node)}\n)")
    return there is not None and ast.dump(there) == ast.dump(node)


def _expression(text: str) -> ast.expr | None:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return None
