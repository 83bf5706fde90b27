"""`gradvet explain-error`: what an error of torch means for a file, and what is no fix for it."""

import json
import os
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gradvet.cli import as_text, check, work
from gradvet.errors import Explanation, Suspect, explain, read_pasted
from gradvet.project import ProjectError, read, reader
from gradvet.text import Source

FOUND, NOTHING, FAILURE = 0, 1, 2
_STDIN = "-"
_LABEL = 9  # the width of the labels under a suspect


def explain_error(options: Namespace) -> int:
    """Do it; gives the exit status."""
    try:
        path, message = _arguments(options.words)
        source = read(path).source()
    except ProjectError as error:
        return _complain(str(error))
    if not message.strip():
        return _complain("there is no message: give torch's message as an argument, or pipe the traceback in")
    pasted = read_pasted(message)
    if pasted.known is None:
        return _complain(
            "this is not an autograd message that Gradvet knows; paste the last lines of the traceback. "
            f"`gradvet check {path}` shows all findings"
        )
    with work._failures(verbose=False) as failures:
        explanation = explain(pasted, source, reader(path))
    for failure in failures:
        print(f"gradvet: {failure}", file=sys.stderr)
    if options.output_format == "json":
        print(json.dumps(_as_object(str(path), source, explanation), indent=2, ensure_ascii=False))
    else:
        for line in _lines(str(path), source, explanation, as_text.Paint(check._wants_colour())):
            print(line.rstrip())
    return FOUND if explanation.suspects else NOTHING


def _arguments(words: list[str]) -> tuple[Path, str]:
    """The file and the message, in whichever order they were given; the message comes from the input if there is none."""
    files = [word for word in words if os.path.isfile(word)] or [
        word for word in words if word.endswith(".py")
    ]
    if not files:
        raise ProjectError("name the Python file that the error came from, and torch's message behind it")
    rest = [word for word in words if word != files[0] and word != _STDIN]
    return Path(files[0]), " ".join(rest) if rest else sys.stdin.read()


def _lines(path: str, source: Source, told: Explanation, paint: as_text.Paint) -> Iterator[str]:
    known = told.known
    yield paint(known.meaning, "1")
    for row in dict.fromkeys(told.noticed):
        yield f"torch noticed it on line {row}: {as_text._visible(source.line(row).strip())}"
    sure = any(suspect.diagnostic for suspect in told.suspects)
    if not told.suspects:
        yield f"\nNothing in {path} stands out as the cause. It may lie in another file of the traceback."
    elif not sure:
        yield "\nNo rule is sure. The likeliest lines, from the text and the dry run:"
    for suspect in told.suspects:
        yield ""
        yield from _suspect(path, source, suspect, paint)
    yield ""
    yield from _labelled("right fix", known.right, paint)
    for wrong in known.wrong:
        yield from _labelled("not a fix", f"{wrong.change}: {wrong.why}", paint)
    rules = dict.fromkeys(s.diagnostic.rule.name for s in told.suspects if s.diagnostic) or known.rules[:1]
    yield from _labelled("read", " · ".join(f"gradvet explain {rule}" for rule in rules), paint)


def _suspect(path: str, source: Source, suspect: Suspect, paint: as_text.Paint) -> Iterator[str]:
    row, column = source.row_column(suspect.span.start)
    rule = f" [{suspect.diagnostic.rule.name}]" if suspect.diagnostic else ""
    yield f"{paint(path, '1')}:{row}:{column}: {as_text._visible(suspect.reason)}{rule}"
    yield f"    {as_text._shown(source.line(row)).strip()}"
    if suspect.diagnostic is None:
        return
    for note in suspect.diagnostic.notes:
        where = f" (line {source.row_column(note.span.start)[0]})" if note.span is not None else ""
        yield from _labelled(note.label, as_text._visible(note.text) + where, paint)
    for fix in suspect.diagnostic.fixes:
        yield from _labelled("fix", f"{fix.title}   {fix.applicability.value}: {fix.effect}", paint)


def _labelled(label: str, text: str, paint: as_text.Paint) -> Iterator[str]:
    yield f"   {paint(label.ljust(_LABEL), '1')}  {text}"


def _as_object(path: str, source: Source, told: Explanation) -> dict[str, Any]:
    known = told.known
    return {
        "message": known.name,
        "meaning": known.meaning,
        "rules": list(known.rules),
        "right_fix": known.right,
        "wrong_fixes": [{"change": wrong.change, "why": wrong.why} for wrong in known.wrong],
        "noticed": list(dict.fromkeys(told.noticed)),
        "suspects": [
            {
                "filename": path,
                "row": source.row_column(suspect.span.start)[0],
                "column": source.row_column(suspect.span.start)[1],
                "code": suspect.diagnostic.rule.name if suspect.diagnostic else None,
                "reason": suspect.reason,
            }
            for suspect in told.suspects
        ],
    }


def _complain(message: str) -> int:
    sys.stdout.flush()
    print(f"gradvet: {message}", file=sys.stderr)
    return FAILURE
