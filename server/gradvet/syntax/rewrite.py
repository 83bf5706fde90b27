"""Edits that move statements: made by LibCST on one statement at a time, and given back as text edits.

LibCST takes long to import, so it is imported only when such an edit is asked for.
"""

import ast
import difflib
import itertools
import platform
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from gradvet.syntax.imports import add_import, torch_name
from gradvet.syntax.parse import Module
from gradvet.syntax.place import first_row
from gradvet.text import Edit, Source, Span, apply

__all__ = ["CannotRewriteError", "add_decorator", "add_import", "block_instead", "torch_name", "wrap_in_with"]

if TYPE_CHECKING:
    import libcst as cst

    Change = Callable[[cst.Module, list[cst.CSTNode]], cst.Module]


class CannotRewriteError(Exception):
    """An edit needs LibCST, which is not there, or not for this Python; the message is for the user."""


_SPACES = re.compile(r"[ \t]*")
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_BLOCKS = ("body", "orelse", "finalbody")


def wrap_in_with(module: Module, statements: ast.stmt | Sequence[ast.stmt], header: str) -> list[Edit]:
    """Put consecutive statements of one block under a header such as `with torch.no_grad():`.

    Statements that share a line with others, behind `;` or behind the colon of a block, get lines of
    their own. Strings over several lines keep their text. No edits where LibCST cannot read the place.
    """
    block = [statements] if isinstance(statements, ast.stmt) else list(statements)
    unit = _unit(module, block[0])

    def change(tree: "cst.Module", chosen: list["cst.CSTNode"]) -> "cst.Module":
        import libcst as cst

        body = next(
            (node for node in _bodies(tree) if any(child in chosen for child in _children(node))), None
        )
        if body is None:
            return tree
        within = cst.ensure_type(cst.parse_statement(f"{header} pass"), cst.With)
        statements = list(_wrapped(body, chosen, within, unit))
        if isinstance(body, cst.SimpleStatementSuite):
            return _replaced(tree, body, cst.IndentedBlock(statements, indent=unit))
        return _replaced(tree, body, body.with_changes(body=statements))

    return _rewritten(module, _rows(module, block), block, change)


def block_instead(module: Module, node: ast.stmt, context: str) -> list[Edit]:
    """The statement becomes the header `with context:` of a block that holds the statements after it."""
    parent = module.parents[node]
    for field in _BLOCKS:
        block = getattr(parent, field, None)
        if isinstance(block, list) and node in block:
            rest = block[block.index(node) + 1 :]
            return _in_place_of(module, node, rest, f"with {context}:") if rest else []
    return []


def _in_place_of(module: Module, node: ast.stmt, rest: list[ast.stmt], header: str) -> list[Edit]:
    """One edit: the lines of the statement go, and those after it come back inside the block."""
    wrapped = wrap_in_with(module, rest, header)
    source = module.source
    first, begin = source.line_starts[node.lineno - 1], source.line_starts[rest[0].lineno - 1]
    if not wrapped or first == begin or (node.end_lineno or node.lineno) == rest[0].lineno:
        return []
    end = source.span(rest[-1]).end
    changed = apply(source.text, wrapped)
    kept = changed[begin : end + len(changed) - len(source.text)]
    return [Edit(Span(first, end), kept)]


def add_decorator(module: Module, definition: ast.stmt, decorator: str) -> list[Edit]:
    """Put `@torch.no_grad()` under the other decorators of a function or class.

    Those above may turn it into something that cannot be decorated: a property, a static method.
    """

    def change(tree: "cst.Module", chosen: list["cst.CSTNode"]) -> "cst.Module":
        import libcst as cst

        node = next((node for node in chosen if isinstance(node, (cst.FunctionDef, cst.ClassDef))), None)
        if node is None:
            return tree
        added = cst.Decorator(cst.parse_expression(decorator.removeprefix("@")))
        return _replaced(tree, node, node.with_changes(decorators=[*node.decorators, added]))

    rows = first_row(definition), definition.end_lineno or definition.lineno
    return _rewritten(module, rows, [definition], change)


def drop_decorator(module: Module, definition: ast.FunctionDef, decorator: ast.expr) -> list[Edit]:
    """Take one of the decorators of a function away."""
    at = definition.decorator_list.index(decorator)

    def change(tree: "cst.Module", chosen: list["cst.CSTNode"]) -> "cst.Module":
        import libcst as cst

        node = next((node for node in chosen if isinstance(node, cst.FunctionDef)), None)
        if node is None:
            return tree
        left = [*node.decorators[:at], *node.decorators[at + 1 :]]
        return _replaced(tree, node, node.with_changes(decorators=left))

    rows = first_row(definition), definition.end_lineno or definition.lineno
    return _rewritten(module, rows, [definition], change)


def _rows(module: Module, block: Sequence[ast.stmt]) -> tuple[int, int]:
    """The first and last row of the lines to rewrite: whole statements, and nothing else."""
    parent = module.parents[block[0]]
    siblings: list[ast.stmt] = next(
        list_
        for name in _BLOCKS
        if isinstance(list_ := getattr(parent, name, None), list) and block[0] in list_
    )
    begin, end = siblings.index(block[0]), siblings.index(block[-1])
    while begin > 0 and siblings[begin - 1].end_lineno == first_row(siblings[begin]):
        begin -= 1
    while end + 1 < len(siblings) and siblings[end + 1].lineno == siblings[end].end_lineno:
        end += 1
    first = first_row(siblings[begin])
    start = module.source.span(siblings[begin]).start
    if first == siblings[begin].lineno and module.bare[module.source.line_starts[first - 1] : start].strip():
        whole = _whole(module, parent)
        return first_row(whole), whole.end_lineno or whole.lineno
    return first, siblings[end].end_lineno or siblings[end].lineno


def _whole(module: Module, node: ast.AST) -> ast.stmt:
    """The statement that a clause belongs to; an `elif` is one of its `if`."""
    while not isinstance(node, ast.stmt) or module.bare.startswith("elif", module.source.span(node).start):
        node = module.parents[node]
    return node


def _rewritten(
    module: Module, rows: tuple[int, int], nodes: Sequence[ast.stmt], change: "Change"
) -> list[Edit]:
    """The edits that a change of some whole lines comes to. It gets their tree and the nodes in it."""
    try:
        import libcst as cst
        import libcst.native  # type: ignore[import-not-found]  # compiled, for each Python its own
        from libcst.metadata import MetadataWrapper, PositionProvider
    except ImportError as error:
        python = f"{platform.python_implementation()} {platform.python_version()}"
        raise CannotRewriteError(
            f"this fix moves statements, which takes LibCST, and that is not there for {python} on this system"
        ) from error

    source = module.source
    ends = [*source.line_starts, len(source.text)]
    piece = Span(ends[rows[0] - 1], ends[rows[1]])
    if rows[0] == 1 and source.text.startswith("\ufeff"):
        piece = Span(1, piece.end)
    text = source[piece]
    if text != module.healed[piece.start : piece.end]:
        return []  # part of it does not parse
    # Lines that are indented need a block to stand in; and LibCST has no full grasp of the oldest line end.
    newline = "\n" if source.line_end == "\r" else source.line_end
    opening = f"if 1:{newline}" if _margin(text) else ""
    whole = Source(
        source.path, opening + text.replace("\r", "\n") if source.line_end == "\r" else opening + text
    )
    try:
        wrapper = MetadataWrapper(
            cst.parse_module(whole.text, cst.PartialParserConfig(default_newline=newline))
        )
        places = {whole.row_column(source.span(node).start - piece.start + len(opening)) for node in nodes}
        positions = wrapper.resolve(PositionProvider)
        chosen = [node for node, at in positions.items() if (at.start.line, at.start.column + 1) in places]
        new = change(wrapper.module, chosen).code[len(opening) :]
    except (cst.ParserSyntaxError, cst.CSTValidationError, UnicodeError):
        return []
    return _differences(text, new.replace("\n", "\r") if source.line_end == "\r" else new, piece.start)


def _bodies(tree: "cst.Module") -> Iterator[Any]:
    import libcst as cst

    stack: list[cst.CSTNode] = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, (cst.Module, cst.IndentedBlock, cst.SimpleStatementSuite)):
            yield node
        stack += node.children


def _children(body: Any) -> Iterator["cst.CSTNode"]:
    import libcst as cst

    for statement in body.body:
        yield from statement.body if isinstance(statement, cst.SimpleStatementLine) else (statement,)


def _wrapped(
    body: Any, chosen: list["cst.CSTNode"], within: "cst.With", unit: str
) -> Iterator["cst.BaseStatement"]:
    """The statements of a body, with the chosen ones inside the `with`."""
    import libcst as cst

    for inside, group in itertools.groupby(_lines(body, chosen), key=lambda pair: pair[0]):
        statements: list[Any] = [statement for _, statement in group]
        if inside:
            above = statements[0].leading_lines
            statements[0] = statements[0].with_changes(leading_lines=())
            yield within.with_changes(body=cst.IndentedBlock(statements, indent=unit), leading_lines=above)
        else:
            yield from statements


def _lines(body: Any, chosen: list["cst.CSTNode"]) -> Iterator[tuple[bool, "cst.BaseStatement"]]:
    """Each statement, and whether it is chosen; a line that holds both kinds is split."""
    import libcst as cst

    lines: Sequence[Any] = body.body
    if isinstance(body, cst.SimpleStatementSuite):
        lines = [cst.SimpleStatementLine(body.body, trailing_whitespace=body.trailing_whitespace)]
    for line in lines:
        if not isinstance(line, cst.SimpleStatementLine):
            yield line in chosen, line
            continue
        groups = [
            (inside, list(group)) for inside, group in itertools.groupby(line.body, key=chosen.__contains__)
        ]
        for number, (inside, small) in enumerate(groups):
            if number < len(groups) - 1:
                small[-1] = small[-1].with_changes(semicolon=cst.MaybeSentinel.DEFAULT)
            part = cst.SimpleStatementLine(
                small,
                leading_lines=line.leading_lines if number == 0 else (),
                trailing_whitespace=line.trailing_whitespace
                if number == len(groups) - 1
                else cst.TrailingWhitespace(),
            )
            yield inside, part


def _replaced(tree: "cst.Module", old: "cst.CSTNode", new: "cst.CSTNode") -> "cst.Module":
    changed = new if old is tree else tree.deep_replace(old, new)
    import libcst as cst

    return cst.ensure_type(changed, cst.Module)


def _unit(module: Module, statement: ast.stmt) -> str:
    """What one level of indentation is here: in the block around, else in the file, else four spaces."""
    above = [module.parents[statement], *ast.walk(module.tree)]
    for node in above:
        body = getattr(node, "body", None)
        if isinstance(node, ast.stmt) and isinstance(body, list) and body[0].lineno > node.lineno:
            inner, outer = (_margin(module.source.line(row)) for row in (first_row(body[0]), node.lineno))
            if inner.startswith(outer) and inner != outer:
                return inner[len(outer) :]
    return "    "


def _margin(text: str) -> str:
    match = _SPACES.match(text)
    return match[0] if match else ""


def _differences(old: str, new: str, offset: int) -> list[Edit]:
    """The edits between two texts, where lines that differ in their margins alone are the same line."""
    before, after = _LINE.findall(old), _LINE.findall(new)
    starts = list(itertools.accumulate(map(len, before), initial=offset))
    matcher = difflib.SequenceMatcher(
        None, [line.strip() for line in before], [line.strip() for line in after], False
    )
    edits: list[Edit] = []
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            for mine, theirs in zip(range(a, b), range(c, d), strict=True):
                edits += _difference(before[mine], after[theirs], starts[mine])
        else:
            edits += _difference("".join(before[a:b]), "".join(after[c:d]), starts[a])
    return _joined(edits)


def _difference(old: str, new: str, offset: int) -> list[Edit]:
    """At most one edit from a text to another, without what both begin and end with."""
    if old == new:
        return []
    size = min(len(old), len(new))
    tail = next((n for n in range(size) if old[-1 - n] != new[-1 - n]), size)
    head = next((n for n in range(size - tail) if old[n] != new[n]), size - tail)
    head -= old[:head].endswith("\r")  # never between the two halves of a line end
    tail -= old[len(old) - tail :].startswith("\n") and (
        old[:-tail].endswith("\r") or new[:-tail].endswith("\r")
    )
    return [Edit(Span(offset + head, offset + len(old) - tail), new[head : len(new) - tail])]


def _joined(edits: list[Edit]) -> list[Edit]:
    """Edits that touch as one, so that no two stand at one place."""
    joined: list[Edit] = []
    for edit in edits:
        if joined and joined[-1].span.end == edit.span.start:
            before = joined.pop()
            joined.append(Edit(Span(before.span.start, edit.span.end), before.text + edit.text))
        else:
            joined.append(edit)
    return joined
