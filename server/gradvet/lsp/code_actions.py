"""Views' actions as the protocol's code actions; their edits are made at once or when the client asks."""

from collections.abc import Sequence
from typing import Any

from lsprotocol import types as lsp

from gradvet.analysis import Analysis
from gradvet.finding import Applicability
from gradvet.lsp import proto
from gradvet.lsp.documents import Notebook
from gradvet.lsp.session import Known, Session
from gradvet.syntax.rewrite import CannotRewriteError
from gradvet.text import Edit, Span
from gradvet.views import FIX_RULE, IGNORE, PAGE, Action, actions, fix_all_edits, rule_actions

FIX_ALL = f"{lsp.CodeActionKind.SourceFixAll.value}.gradvet"
FIX_ALL_IN_NOTEBOOK = f"notebook.{FIX_ALL}"
OPEN_PAGE = "gradvet.server.openPage"


def wanted(kind: str, only: Sequence[str] | None) -> bool:
    """Whether a client that asks `only` for some kinds gets this one; `source` means `source.fixAll` too."""
    return only is None or any(kind == asked or kind.startswith(f"{asked}.") for asked in only)


async def offered(session: Session, known: Known, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
    """The code actions for a range."""
    only = params.context.only
    lazy = session.abilities.lazy_edits
    found: list[tuple[lsp.CodeAction, Action | None]] = []
    if wanted(lsp.CodeActionKind.QuickFix.value, only):
        span = proto.from_range(known.place, params.range)
        near = await session.work(_all_actions, known.analysis, span)
        found += [
            (_code_action(session, known, params, each), each)
            for each in near
            if known.place.holds(each.diagnostic.span) and _affordable(session, each)
        ]
    # Where edits are made at once, this one costs several analyses: too much for each move of the cursor.
    # A notebook has one of its own: a client asks each cell, and would make the same edits many times.
    kind = FIX_ALL_IN_NOTEBOOK if isinstance(known.document, Notebook) else FIX_ALL
    if (lazy or only is not None) and wanted(kind, only) and _any_safe(known.analysis):
        found.append(
            (lsp.CodeAction(title=f"Gradvet: {session.words.say('apply all safe fixes')}", kind=kind), None)
        )
    for code_action, action in found:
        if action is not None and action.kind == PAGE:
            arguments = [action.diagnostic.rule.name]
            code_action.command = lsp.Command(code_action.title, OPEN_PAGE, arguments=arguments)
        elif lazy:
            code_action.data = _data(known, action)
        else:
            code_action.edit = await _workspace_edit(session, known, action)
    return [code_action for code_action, _ in found if lazy or code_action.edit or code_action.command]


def _all_actions(analysis: Analysis, span: Span) -> list[Action]:
    """The actions for single findings, then those for all findings of a rule."""
    return [*actions(analysis, span), *rule_actions(analysis, span)]


def _affordable(session: Session, action: Action) -> bool:
    """Whether an action can be offered here: with edits that do not cost too much, and pages that can be opened."""
    if action.kind == PAGE:
        return session.abilities.shows_documents
    return action.kind != FIX_RULE or session.abilities.lazy_edits


def _data(known: Known, action: Action | None) -> dict[str, Any]:
    """What it takes to find the action again, when the client asks for its edit."""
    data: dict[str, Any] = {"uri": known.place.uri, "versions": _versions(known)}
    if action is not None:
        span = action.diagnostic.span
        data |= {"key": action.key, "start": span.start, "end": span.end}
    return data


def _versions(known: Known) -> list[list[Any]]:
    """The versions of all texts that an edit may touch."""
    return [[piece.uri, piece.version] for piece in known.place.pieces]


async def resolved(session: Session, code_action: lsp.CodeAction) -> lsp.CodeAction:
    """The action with its edit; without one when the text has changed since it was offered."""
    data: Any = code_action.data
    known = await session.known(data["uri"]) if isinstance(data, dict) else None
    if known is None or _versions(known) != [list(version) for version in data["versions"]]:
        return code_action
    if "key" not in data:
        code_action.edit = await _workspace_edit(session, known, None)
        return code_action
    for action in await session.work(_all_actions, known.analysis, Span(data["start"], data["end"])):
        if action.key == data["key"]:
            code_action.edit = await _workspace_edit(session, known, action)
            break
    return code_action


async def _workspace_edit(session: Session, known: Known, action: Action | None) -> lsp.WorkspaceEdit | None:
    """The edit of an action, or of all safe fixes; in a thread, as it may import libcst or analyse anew."""
    can = session.abilities
    try:
        edits = await session.work(_edits, session, known, action)
    except CannotRewriteError as error:
        if can.lazy_edits:  # the user has chosen it, and waits
            message = f"Gradvet: {session.words.say(str(error))}"
            session.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Error, message))
        return None
    snippet = " ${1:why}" if can.snippets and action is not None and action.kind == IGNORE else ""
    return proto.to_workspace_edit(known.place, edits, versioned=can.versioned_edits, snippet=snippet)


def _edits(session: Session, known: Known, action: Action | None) -> Sequence[Edit]:
    def again(source: Any) -> Analysis:
        return session.again(known.document, source)

    if action is not None:
        return action.edits(known.analysis, again)
    return fix_all_edits(known.analysis, again)


def _code_action(
    session: Session, known: Known, params: lsp.CodeActionParams, action: Action
) -> lsp.CodeAction:
    """The action without its edit, tied to the client's own copy of the diagnostic where it sent one."""
    ours = proto.to_diagnostic(known.place, action.diagnostic, session.words, can=session.abilities.shows)
    theirs = [d for d in params.context.diagnostics if _same(d, ours)]
    return lsp.CodeAction(
        title=session.words.say(action.title),
        kind=lsp.CodeActionKind.QuickFix,
        diagnostics=[theirs[0] if theirs else ours],
        is_preferred=True if action.preferred else None,
    )


def _same(theirs: lsp.Diagnostic, ours: lsp.Diagnostic) -> bool:
    """Whether a diagnostic that the client hands back is this one: by its data, which not every client keeps."""
    if isinstance(theirs.data, dict) and ours.data is not None:
        return bool(theirs.data.get("key") == ours.data["key"])
    return (theirs.range, theirs.code) == (ours.range, ours.code)


def _any_safe(analysis: Analysis) -> bool:
    return any(
        fix.applicability is Applicability.SAFE
        for diagnostic in analysis.diagnostics
        for fix in diagnostic.fixes
    )
