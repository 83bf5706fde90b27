"""Views' actions as the protocol's code actions; their edits are made at once or when the client asks."""

import asyncio
from collections.abc import Sequence
from typing import Any

from lsprotocol import types as lsp

from gradvet.analysis import Analysis
from gradvet.finding import Applicability
from gradvet.lsp import proto
from gradvet.lsp.documents import Document
from gradvet.lsp.session import Session
from gradvet.text import Edit, Span
from gradvet.views import Action, actions, changes, fix_all

FIX_ALL = f"{lsp.CodeActionKind.SourceFixAll.value}.gradvet"
Known = tuple[Document, Analysis]


def wanted(kind: str, only: Sequence[str] | None) -> bool:
    """Whether a client that asks `only` for some kinds gets this one; `source` means `source.fixAll` too."""
    return only is None or any(kind == asked or kind.startswith(f"{asked}.") for asked in only)


async def offered(session: Session, known: Known, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
    """The code actions for a range."""
    document, analysis = known
    only = params.context.only
    found: list[tuple[lsp.CodeAction, Action | None]] = []
    if wanted(lsp.CodeActionKind.QuickFix.value, only):
        span = proto.from_range(session.place(document, analysis), params.range)
        found += [(_code_action(session, known, params, each), each) for each in actions(analysis, span)]
    # where edits are made at once, this one costs several analyses: too much for each move of the cursor
    affordable = session.abilities.lazy_edits or only is not None
    if affordable and wanted(FIX_ALL, only) and _any_safe(analysis):
        found.append((lsp.CodeAction(title="Gradvet: apply all safe fixes", kind=FIX_ALL), None))
    if session.abilities.lazy_edits:
        for code_action, action in found:
            code_action.data = _data(document, action)
        return [code_action for code_action, _ in found]
    for code_action, action in found:
        code_action.edit = await _workspace_edit(session, known, action)
    return [code_action for code_action, _ in found if code_action.edit is not None]


def _data(document: Document, action: Action | None) -> dict[str, Any]:
    """What it takes to find the action again, when the client asks for its edit."""
    data: dict[str, Any] = {"uri": document.uri, "version": document.version}
    if action is not None:
        span = action.diagnostic.span
        data |= {"key": action.key, "start": span.start, "end": span.end}
    return data


async def resolved(session: Session, code_action: lsp.CodeAction) -> lsp.CodeAction:
    """The action with its edit; without one when the text has changed since it was offered."""
    data: Any = code_action.data
    known = await session.newest.analysis(data["uri"])
    if known is None or known[0].version != data["version"]:
        return code_action
    if "key" not in data:
        code_action.edit = await _workspace_edit(session, known, None)
        return code_action
    for action in actions(known[1], Span(data["start"], data["end"])):
        if action.key == data["key"]:
            code_action.edit = await _workspace_edit(session, known, action)
    return code_action


async def _workspace_edit(session: Session, known: Known, action: Action | None) -> lsp.WorkspaceEdit | None:
    """The edit of an action, or of all safe fixes; in a thread, as it may import libcst or analyse anew."""
    document, analysis = known
    edits = await asyncio.to_thread(_edits, session, known, action)
    if not edits:
        return None
    sent = proto.to_edits(session.place(document, analysis), edits)
    if not session.abilities.versioned_edits:
        return lsp.WorkspaceEdit(changes={document.uri: sent})
    named = lsp.OptionalVersionedTextDocumentIdentifier(uri=document.uri, version=document.version)
    return lsp.WorkspaceEdit(document_changes=[lsp.TextDocumentEdit(text_document=named, edits=sent)])


def _edits(session: Session, known: Known, action: Action | None) -> Sequence[Edit]:
    document, analysis = known
    if action is not None:
        return action.edits(analysis)
    after = fix_all(analysis, lambda source: session.again(document, source))
    return changes(analysis.source.text, after)


def _code_action(
    session: Session, known: Known, params: lsp.CodeActionParams, action: Action
) -> lsp.CodeAction:
    """The action without its edit, tied to the client's own copy of the diagnostic where it sent one."""
    document, analysis = known
    can = session.abilities
    ours = proto.to_diagnostic(
        session.place(document, analysis), action.diagnostic, related=can.related, links=can.links
    )
    theirs = [d for d in params.context.diagnostics if (d.range, d.code) == (ours.range, ours.code)]
    return lsp.CodeAction(
        title=action.title,
        kind=lsp.CodeActionKind.QuickFix,
        diagnostics=[theirs[0] if theirs else ours],
        is_preferred=True if action.preferred else None,
    )


def _any_safe(analysis: Analysis) -> bool:
    return any(
        fix.applicability is Applicability.SAFE
        for diagnostic in analysis.diagnostics
        for fix in diagnostic.fixes
    )
