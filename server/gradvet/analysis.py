"""The one way in: a source and settings go in, an `Analysis` comes out. Pure; never raises."""

import ast
import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from gradvet.autograd.events_call import ResultDropped
from gradvet.autograd.facts import Expression, Facts, without
from gradvet.autograd.python.imports import texts_imported
from gradvet.autograd.run import Runs, run
from gradvet.collection import no_collection
from gradvet.config import Config
from gradvet.finding import Finding, Fix, Note, Severity
from gradvet.rules import Rule, all_rules
from gradvet.syntax.moved import moved
from gradvet.syntax.packages import Read, seen_from
from gradvet.syntax.parse import Module, Problem, parse
from gradvet.syntax.place import is_block, place
from gradvet.syntax.suppress import Comment, Ignore, Suppressions, UnusedIgnore
from gradvet.syntax.together import elsewhere
from gradvet.text import Edit, Source, Span

log = logging.getLogger(__name__)

_WORST_FIRST = (Severity.ERROR, Severity.WARNING, Severity.INFO)


@dataclass(frozen=True, slots=True)
class RelatedPlace:
    """A line under a diagnostic; `span` is None when it speaks of no place."""

    label: str
    text: str
    span: Span | None


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A finding with its rule and its place in the text."""

    rule: Rule
    severity: Severity
    span: Span
    message: str
    notes: tuple[RelatedPlace, ...]
    fixes: tuple[Fix, ...]

    @property
    def key(self) -> str:
        """What tells it apart from the others of its analysis."""
        return f"{self.rule.name}@{self.span.start}-{self.span.end}"


@dataclass(frozen=True, slots=True)
class Analysis:
    """All that is known of one source: read-only, and rebuilt from the text at any time."""

    module: Module
    diagnostics: tuple[Diagnostic, ...]
    problems: tuple[Problem, ...]
    facts: Facts
    read_paths: frozenset[str] = frozenset()
    """The files of the project that were asked for, whether they are there or not: what the answer rests on."""

    @property
    def source(self) -> Source:
        """The text that was analysed."""
        return self.module.source

    def nodes(self) -> Iterator[ast.AST]:
        """The nodes that stand in the text, outer ones first: none of a statement that will not parse."""
        gone = self.module.gone
        return (node for node in ast.walk(self.module.tree) if node not in gone)

    def elsewhere(self, node: ast.AST | None) -> str | None:
        """Where a node stands that is not in this source: `line 12 of models/net.py`."""
        return None if node is None else _elsewhere(self.module, self.facts, node)

    def line(self, node: ast.AST) -> tuple[Source, int, str] | None:
        """The source that a node stands in, its row there, and that line in words; None for what has no place."""
        other = elsewhere(self.module, self.facts.imported, node)
        if other is not None:
            row, _ = other.source.row_column(place(other, node).start)
            return other.source, row, _elsewhere(self.module, self.facts, node) or ""
        if not hasattr(node, "lineno"):
            return None
        return self.source, node.lineno, self.source.row_words(node.lineno)

    def edits(self, fix: Fix) -> Sequence[Edit]:
        """The edits of one of this analysis's fixes."""
        return self.source.settled(fix.edits(self.module))


@dataclass(slots=True)
class Draft:
    """What the analyses of one text have in common while it is edited: what an edit left as it was is not run again.

    For one thread at a time. An analysis that was made with it is outdated by one whose tree is the same, moved;
    and where another file that it rests on has changed, a new draft has to be begun.
    """

    module: Module | None = None
    """The last text."""
    runs: Runs = field(default_factory=dict)
    read_paths: frozenset[str] = frozenset()
    moved: bool = False
    """Whether the tree of the last text is that of the one before, moved."""

    def follow(self, source: Source) -> tuple[Module, Runs]:
        """The tree of the text as it is now, and what is known of its parts."""
        self.moved = False
        if self.module is not None:
            following = moved(self.module, source, same=len(self.runs) < 2)  # noqa: PLR2004
            if following is not None:
                self.module, self.moved = following, True
                return following, self.runs
        module = parse(source)
        self.module, self.runs, self.read_paths = module, {}, frozenset()
        return module, self.runs


def analyze(
    source: Source,
    config: Config = Config(),
    read: Read | None = None,
    draft: Draft | None = None,
) -> Analysis:
    """Dry-run autograd over a source and let every chosen rule look at what it did.

    `read` gives the text of another module of the project by its path, or None. The answer depends
    on nothing else: no clock, no disk, no environment. A `draft` is of earlier texts of the same file: with it
    the answer is the same and comes sooner.
    """
    with no_collection():
        return _analyze(source, config, read, draft or Draft())


def _analyze(source: Source, config: Config, read: Read | None, draft: Draft) -> Analysis:
    module, runs = draft.follow(source)
    asked: dict[str, str | None] = {}
    facts = _run(module, read and _remembering(read, asked), runs)
    read_paths = frozenset(asked)
    if module is draft.module:
        read_paths = draft.read_paths = draft.read_paths | read_paths
    desk = _Desk(module, facts, Suppressions.of(module))
    for rule, finding in _findings(module, facts, config, facts.events):
        desk.take(rule, finding)
    if not module.problems and not facts.limits:  # what was not seen may need its comment
        for rule, finding in _findings(module, facts, config, _unused_ignores(desk, config)):
            desk.take(rule, finding)
    diagnostics = tuple(sorted(desk.kept.values(), key=lambda found: (found.span, found.rule.name)))
    return Analysis(module, diagnostics, module.problems, without(facts, module.gone), read_paths)


@dataclass(slots=True)
class _Desk:
    """Takes findings, keeps those that are to be told, and notes which comments hid one: each with a name."""

    module: Module
    facts: Facts
    comments: Suppressions
    kept: dict[tuple[str, Span], Diagnostic] = field(default_factory=dict)
    used: set[tuple[Ignore, str]] = field(default_factory=set)

    def take(self, rule: Rule, finding: Finding) -> None:
        diagnostic = _diagnostic(self.module, self.facts, rule, finding)
        rows = _rows(self.module, finding.node, diagnostic.span)
        hiding = self.comments.hiding(rule.name, rule.family, rows)
        if isinstance(finding.node, Comment):  # one that hides everything does not hide that it hides nothing
            hiding = tuple(ignore for ignore in hiding if ignore.names is not None)
        self.used.update((ignore, name) for ignore in hiding for name in (rule.name, rule.family))
        if hiding or self.comments.justifies(rule.family, rows):
            return
        # One place may have been reached in several contexts; the worst of them is told.
        other = self.kept.get((rule.name, diagnostic.span))
        if other is None or _badness(diagnostic) < _badness(other):
            self.kept[rule.name, diagnostic.span] = diagnostic


def _unused_ignores(desk: _Desk, config: Config) -> Iterator[UnusedIgnore]:
    """The `ignore` comments, or names in them, that hide nothing. What the settings turn off is not judged."""
    rules = all_rules().values()
    families = {rule.family for rule in rules}
    known = {rule.name: rule.family for rule in rules}
    everything = all(config.enables(rule.name, rule.family) for rule in rules)
    for ignore in desk.comments.ignores:
        node = Comment.at(desk.module, ignore.span)
        if ignore.names is None:
            if everything and not any(found is ignore for found, _ in desk.used):
                yield UnusedIgnore(node, ignore, None, ())
            continue
        unknown = tuple(sorted(name for name in ignore.names if name not in known and name not in families))
        judged = (
            name
            for name in ignore.names - set(unknown)
            if (config.enables(name, known[name]) if name in known else everything)
        )
        vain = tuple(sorted(name for name in judged if (ignore, name) not in desk.used))
        if vain or unknown:
            yield UnusedIgnore(node, ignore, (*unknown, *vain), unknown)


def _remembering(read: Read, asked: dict[str, str | None]) -> Read:
    """A reader that asks for each path once and notes that it did."""

    def text(path: str) -> str | None:
        if path not in asked:
            asked[path] = read(path)
        return asked[path]

    return text


@dataclass(frozen=True, slots=True)
class States:
    """What autograd would hold for every expression of a source that the dry run came to, in its order.

    `expressions` is None when the dry run failed; `limits` are the bounds that it reached.
    """

    module: Module
    expressions: Sequence[Expression] | None
    limits: Sequence[str] = ()


def states(source: Source, read: Read | None = None) -> States:
    """Dry-run autograd over a source and tell what every expression held. Pure, as `analyze`; never raises."""
    module = parse(source)
    try:
        facts = run(module, watch=True, read=read)
    except Exception:
        log.exception("the dry run of %s failed; it has no states", source.path)
        return States(module, None)
    return States(module, facts.expressions, facts.limits)


def _run(module: Module, read: Read | None, runs: Runs) -> Facts:
    """What the engine found out; nothing when it failed, and nothing where torch is never spoken of."""
    try:
        if _concerns_torch(module, read):
            return run(module, read=read, runs=runs)
    except Exception:
        log.exception("the dry run of %s failed; it has no findings", module.source.path)
        return Facts((), {}, limits=("the dry run failed",))
    return Facts((), {})


def _concerns_torch(module: Module, read: Read | None) -> bool:
    """Whether a module, or one that it imports, speaks of torch."""
    if "torch" in module.words:
        return True
    return read is not None and any("torch" in text for text in texts_imported(module, read))


def _findings(
    module: Module, facts: Facts, config: Config, events: Iterable[Any]
) -> Iterator[tuple[Rule, Finding]]:
    """What the chosen rules say of some events, in their order. A rule that fails says no more."""
    failed: set[str] = set()
    listeners: dict[type, list[Rule]] = defaultdict(list)
    for rule in all_rules().values():
        if config.enables(rule.name, rule.family):
            for kind in rule.on:
                listeners[kind].append(rule)
    for event in events:
        if type(event) is ResultDropped and event.node in module.displayed:
            continue
        for rule in listeners.get(type(event), ()):
            if rule.name in failed:
                continue
            try:
                found = [
                    (rule, here)
                    for finding in rule.check(event)
                    if (here := _told_here(module, facts, event, finding)) is not None
                ]
            except Exception:
                failed.add(rule.name)
                log.exception(
                    "the rule %s failed on %s; findings of it may be missing", rule.name, module.source.path
                )
            else:
                yield from found


_ONLY_TOLD = frozenset({"evidence", "holder_node", "loss", "owner"})
"""Nodes of events that are spoken of and never changed."""


def _told_here(module: Module, facts: Facts, event: Any, finding: Finding) -> Finding | None:
    """A finding as far as it concerns this module: not in others, and only with fixes that fit.

    None fits that would have to change another module, what is now a tensor and now a number, or what is of an
    earlier text, since it does not parse now.
    """
    if not facts.imported and not facts.mixed and not module.former:
        return finding
    if finding.node in module.gone:
        return None
    if elsewhere(module, facts.imported, finding.node) is not None:
        return None
    parts = [getattr(event, part.name) for part in fields(event) if part.name not in _ONLY_TOLD]
    nodes = [part for part in parts if isinstance(part, ast.AST)]
    if any(
        node in facts.mixed or module.is_former(node) or elsewhere(module, facts.imported, node) is not None
        for node in nodes
    ):
        return replace(finding, fixes=())
    return finding


def _elsewhere(module: Module, facts: Facts, node: ast.AST) -> str | None:
    other = elsewhere(module, facts.imported, node)
    if other is None:
        return None
    row, _ = other.source.row_column(place(other, node).start)
    return f"line {row} of {seen_from(module.source.path, other.source.path)}"


def _related(module: Module, facts: Facts, note: Note) -> RelatedPlace:
    if note.node is None:
        return RelatedPlace(note.label, note.text, None)
    where = _elsewhere(module, facts, note.node)
    if where is None:
        return RelatedPlace(note.label, note.text, place(module, note.node))
    text = f"{note.text} {where}" if note.text.endswith("`") else f"{note.text} ({where})"
    return RelatedPlace(note.label, text, None)


def _diagnostic(module: Module, facts: Facts, rule: Rule, finding: Finding) -> Diagnostic:
    notes = tuple(_related(module, facts, note) for note in finding.notes)
    severity = finding.severity or rule.severity
    return Diagnostic(rule, severity, place(module, finding.node), finding.message, notes, finding.fixes)


def _badness(diagnostic: Diagnostic) -> int:
    return _WORST_FIRST.index(diagnostic.severity)


def _rows(module: Module, node: ast.AST, span: Span) -> set[int]:
    """The rows on which a comment speaks of a finding: where it and its statement begin and end."""
    rows = {module.source.row_column(offset)[0] for offset in (span.start, span.end)}
    if node in module.parents:
        statement = module.statement(node)
        rows.add(statement.lineno)
        if not is_block(statement):
            rows.add(statement.end_lineno or statement.lineno)
    return rows
