"""A page read as cases: what its programs, proofs and diffs say the analyzer and torch must do.

A page is Markdown. A heading (or the title) with a `python` block is a case, and the blocks under one
heading are one program. A heading that has only proofs and diffs goes on with the case above it.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_FENCE = re.compile(r"^(```+)(.*)$")
_HEADING = re.compile(r"^(#{1,6}) +(.+?) *$")
_MARK = re.compile(r"#\s*(error|warning|info|note|raises|revealed):\s*")
_NAMED = re.compile(r'\[([\w-]+)\](?:\s+"(.+)")?')
_RAISED = re.compile(r'([\w|]+)(?:\s+"(.+)")?')
_STATE = re.compile(r"requires_grad=(YES|NO|MAYBE) is_leaf=(YES|NO|MAYBE) grad_fn=(\S+)")
_DIFF = re.compile(r"diff (.+) \((safe|unsafe)\)")
_READ_ONLY = frozenset({"text", "console", "toml"})

SILENT = "Silent on purpose"


class PageError(ValueError):
    """A page that does not say clearly what it expects."""


@dataclass(frozen=True, slots=True)
class Expected:
    """A finding (`kind` is its severity) or a note that must begin on a row."""

    row: int
    kind: str
    name: str
    text: str | None


@dataclass(frozen=True, slots=True)
class Raises:
    """The exception that torch must raise on a row, by any of its types (Pythons differ)."""

    row: int
    types: tuple[str, ...]
    text: str | None


@dataclass(frozen=True, slots=True)
class Reveal:
    """The state that `reveal_grad` on a row must show."""

    row: int
    text: str
    requires_grad: str
    is_leaf: str
    grad_fn: frozenset[str]


@dataclass(frozen=True, slots=True)
class Repair:
    """A fix by the start of its title, the text that it must make, and the proof that it helps."""

    title: str
    applicability: str
    text: str
    proof: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """One program with all that is expected of it; `headings` lead to it, without the page's title."""

    page: str
    headings: tuple[str, ...]
    program: str
    findings: tuple[Expected, ...] = ()
    notes: tuple[Expected, ...] = ()
    raises: tuple[Raises, ...] = ()
    reveals: tuple[Reveal, ...] = ()
    proof: str = ""
    repairs: tuple[Repair, ...] = ()

    @property
    def id(self) -> str:
        """Page and headings, as pytest shows them."""
        return "/".join((self.page, *self.headings))

    @property
    def silent(self) -> bool:
        """Whether it stands under "Silent on purpose"."""
        return SILENT in self.headings


@dataclass(frozen=True, slots=True)
class Page:
    """A page's name, its title, and its cases in order."""

    name: str
    title: str
    cases: tuple[Case, ...]


@dataclass(slots=True)
class _Draft:
    """The blocks of a case while they are collected."""

    headings: tuple[str, ...]
    program: list[str] = field(default_factory=list)
    proof: list[str] = field(default_factory=list)
    repairs: list[tuple[str, str, list[str], list[str]]] = field(default_factory=list)


def load(path: Path) -> Page:
    """The page in a file; its name is the file's, with hyphens."""
    return parse(path.stem.replace("_", "-"), path.read_text(encoding="utf-8"))


def parse(name: str, text: str) -> Page:
    """Read a page. Raises PageError where it is unclear."""
    title = ""
    headings: list[str] = []
    drafts: list[_Draft] = []
    for level, words, lines in _parts(text):
        if level == 1:
            title, headings = words, []
        elif level:
            headings = [*headings[: level - 2], words]
        else:
            _collect(drafts, tuple(headings), words, lines)
    cases = tuple(_case(name, draft) for draft in drafts)
    ids = [case.id for case in cases]
    if len(set(ids)) < len(ids):
        message = f"{name}: two cases have one heading: {sorted({i for i in ids if ids.count(i) > 1})}"
        raise PageError(message)
    return Page(name, title, cases)


def _parts(text: str) -> Iterator[tuple[int, str, list[str]]]:
    """Headings as (level, words, []) and fenced blocks as (0, info, lines), in order."""
    fence, info, block = "", "", list[str]()
    for line in text.splitlines():
        if fence:
            if line.rstrip() == fence:
                yield 0, info, block
                fence = ""
            else:
                block.append(line)
        elif match := _FENCE.match(line):
            fence, info, block = match[1], match[2].strip(), []
        elif match := _HEADING.match(line):
            yield len(match[1]), match[2], []
    if fence:
        message = f"a block is not closed: {fence}{info}"
        raise PageError(message)


def _collect(drafts: list[_Draft], headings: tuple[str, ...], info: str, lines: list[str]) -> None:
    """Put a block into the case that it belongs to."""
    if info in _READ_ONLY:
        return
    if info == "python":
        if not drafts or drafts[-1].headings != headings:
            drafts.append(_Draft(headings))
        draft = drafts[-1]
        if draft.proof or draft.repairs:
            message = f"{headings}: a program goes on after its proof or its diff"
            raise PageError(message)
        draft.program += lines
    elif not drafts:
        message = f"{headings}: a block `{info}` before any program"
        raise PageError(message)
    elif info == "python proof":
        (drafts[-1].repairs[-1][3] if drafts[-1].repairs else drafts[-1].proof).extend(lines)
    elif match := _DIFF.fullmatch(info):
        drafts[-1].repairs.append((match[1], match[2], lines, []))
    else:
        message = f"{headings}: what is a block `{info}`?"
        raise PageError(message)


def _case(page: str, draft: _Draft) -> Case:
    where = "/".join((page, *draft.headings))
    program, expected = _without_expectations(draft.program, where)
    _match_probes(program, [e for e in expected if isinstance(e, Reveal)], where)
    repairs = []
    for title, applicability, lines, proof in draft.repairs:
        fixed = patch(program, lines, f"{where}: {title}")
        repairs.append(Repair(title, applicability, fixed, _proof(proof, f"{where}: {title}")))
    findings = [e for e in expected if isinstance(e, Expected)]
    return Case(
        page,
        draft.headings,
        program,
        tuple(e for e in findings if e.kind != "note"),
        tuple(e for e in findings if e.kind == "note"),
        tuple(e for e in expected if isinstance(e, Raises)),
        tuple(e for e in expected if isinstance(e, Reveal)),
        _proof(draft.proof, where),
        tuple(repairs),
    )


def _proof(lines: list[str], where: str) -> str:
    """A proof's text. One that asserts nothing proves nothing."""
    text = "\n".join(lines) + "\n" if lines else ""
    if lines and not any(isinstance(node, ast.Assert) for node in ast.walk(ast.parse(text))):
        message = f"{where}: a proof asserts nothing"
        raise PageError(message)
    return text


def _without_expectations(lines: list[str], where: str) -> tuple[str, list[Expected | Raises | Reveal]]:
    """The program as a user would write it, and what its comments expect. No line moves."""
    kept = list(lines)
    expected: list[Expected | Raises | Reveal] = []
    tokens = tokenize.generate_tokens(io.StringIO("\n".join(lines) + "\n").readline)
    for token in tokens:
        marks = list(_MARK.finditer(token.string)) if token.type == tokenize.COMMENT else []
        if not marks:
            continue
        row, column = token.start
        kept[row - 1] = kept[row - 1][: column + marks[0].start()].rstrip()
        for mark, after in zip(marks, [*marks[1:], None], strict=True):
            body = token.string[mark.end() : after.start() if after else None].strip()
            expected.append(_expectation(row, mark[1], body, where))
    return "\n".join(kept) + "\n", expected


def _expectation(row: int, kind: str, body: str, where: str) -> Expected | Raises | Reveal:
    if kind == "raises" and (match := _RAISED.fullmatch(body)):
        return Raises(row, tuple(match[1].split("|")), match[2])
    if kind == "revealed" and (match := _STATE.fullmatch(body)):
        return Reveal(row, body, match[1], match[2], frozenset(match[3].split("|")))
    if kind not in ("raises", "revealed") and (match := _NAMED.fullmatch(body)):
        return Expected(row, kind, match[1], match[2])
    message = f"{where}, line {row} of the program: cannot read `# {kind}: {body}`"
    raise PageError(message)


def probe(statement: ast.AST) -> ast.expr | None:
    """The `x` of a statement `reveal_grad(x)`, else None."""
    match statement:
        case ast.Expr(ast.Call(ast.Name("reveal_grad"), [argument], [])):
            return argument
    return None


def _match_probes(program: str, reveals: list[Reveal], where: str) -> None:
    """Each `reveal_grad(x)` has its `# revealed:` and the other way round."""
    statements = [node for node in ast.walk(ast.parse(program)) if isinstance(node, ast.stmt)]
    rows = {statement.lineno for statement in statements if probe(statement)}
    if rows != {reveal.row for reveal in reveals}:
        message = f"{where}: `reveal_grad(x)` stands on lines {sorted(rows)}, `# revealed:` on others"
        raise PageError(message)


def patch(program: str, diff: list[str], where: str) -> str:
    """The program after a diff. `@@` parts hunks; each is found by its own lines, which must be there once."""
    lines = program.splitlines()
    for hunk in _hunks(diff, where):
        before = [line[1:] for line in hunk if line[0] in " -"]
        after = [line[1:] for line in hunk if line[0] in " +"]
        places = [at for at in range(len(lines)) if lines[at : at + len(before)] == before]
        if len(places) != 1:
            message = f"{where}: the diff fits {len(places)} places; its old lines are {before}"
            raise PageError(message)
        lines[places[0] : places[0] + len(before)] = after
    return "\n".join(lines) + "\n"


def _hunks(diff: list[str], where: str) -> Iterator[list[str]]:
    hunk: list[str] = []
    for line in [*diff, "@@"]:
        if line.startswith("@@"):
            if hunk:
                yield hunk
            hunk = []
        elif not line or line[0] in " -+":
            hunk.append(line or " ")
        else:
            message = f"{where}: a diff line begins with ` `, `-` or `+`, not `{line}`"
            raise PageError(message)
