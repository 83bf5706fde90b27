"""`gradvet states`: what autograd would hold for every expression of a file."""

import json
import sys
from argparse import Namespace
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from gradvet.analysis import States, states
from gradvet.autograd.facts import Expression
from gradvet.cli import as_text, check, work
from gradvet.project import ProjectError, read, reader
from gradvet.views.annotated import Remark, remarks

WHOLE, BROKEN, FAILURE = 0, 1, 2


def show_states(options: Namespace) -> int:
    """Do it; gives the exit status."""
    path = str(options.file)
    try:
        source = read(options.file).source()
    except ProjectError as error:
        return _complain([str(error)], FAILURE)
    with work._failures(verbose=False) as failures:
        found = states(source, reader(options.file))
    if found.expressions is None:
        return _complain(failures, FAILURE)
    if options.output_format == "json":
        print(json.dumps([_as_object(found, expression) for expression in found.expressions], indent=2))
    else:
        for line in _annotated(found, as_text.Paint(check._wants_colour())):
            print(line)
    limits = [f"{path}: {limit}; states that rest on it may be incomplete" for limit in found.limits]
    problems = [
        f"{':'.join(str(part) for part in (path, *source.spot(problem.span.start)) if part)}: {problem.message}"
        for problem in found.module.problems
    ]
    return _complain(limits + problems, BROKEN if problems else WHOLE)


def _as_object(found: States, expression: Expression) -> dict[str, Any]:
    node = expression.node
    source = found.module.source
    cell, line, _ = source.spot(source.span(node).start)
    about: dict[str, Any] = {"cell": int(cell.removeprefix("cell "))} if cell else {}
    about |= {
        "line": line,
        "column": node.col_offset,
        "end_line": line + (node.end_lineno or node.lineno) - node.lineno,
        "end_column": node.end_col_offset,
        "text": found.module.text(node),
        "kind": expression.kind,
    }
    if (state := expression.state) is not None:
        about |= {
            "requires_grad": state.requires_grad,
            "is_leaf": state.is_leaf,
            "is_view": state.is_view,
            "is_inference": state.is_inference,
            "grad_fn": list(state.grad_fn),
            "grad_mode": list(expression.grad_mode),
        }
    if expression.storage:
        about["storage"] = list(expression.storage)
    if state is not None:
        about["assumes"] = list(state.assumes)
    return about


def _annotated(found: States, paint: as_text.Paint) -> Iterator[str]:
    """The lines of the source, each with what there is to say of it below it, as comments."""
    said = remarks(found)
    below: dict[int, list[Remark]] = defaultdict(list)
    for remark in said.below:
        below[remark.row].append(remark)
    source = found.module.source
    rows = len(source.line_starts) - (not source.line(len(source.line_starts)))
    for row in range(1, rows + 1):
        line = as_text._shown(source.line(row))
        yield line
        margin = line[: len(line) - len(line.lstrip())]
        for text in _comments(below[row]):
            yield margin + paint(text, "2")
    if said.assumed:
        yield ""
    for number, words in enumerate(said.assumed, 1):
        yield paint(f"# [{number}] assuming that {words}", "2")


def _comments(said: Iterable[Remark]) -> Iterator[str]:
    rows = [(as_text._shown(remark.code), as_text._shown(remark.words)) for remark in said]
    width = max((as_text._width(code) for code, _ in rows), default=0)
    for code, words in rows:
        yield f"#   {as_text._padded(code, width)}   {words}"


def _complain(lines: Iterable[str], status: int) -> int:
    sys.stdout.flush()
    for line in lines:
        print(f"gradvet: {line}", file=sys.stderr)
    return status
