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
_FIX_ALL_KEY = "*"


def wanted(kind: str, only: Sequence[str] | None) -> bool:
    """Whether a client that asks `only` for some kinds gets this one; `source` means `source.fixAll` too."""
    return only is None or any(kind == asked or kind.startswith(f"{asked}.") for asked in only)


async def offered(
    session: Session, known: tuple[Document, Analysis], params: lsp.CodeActionParams
) -> list[lsp.CodeAction]:
    """The code actions for a range."""
    document, analysis = known
    only = params.context.only
    found = []
    if wanted(lsp.CodeActionKind.QuickFix.value, only):
        span = proto.from_range(session.place(document, analysis), params.range)
        found += [(_code_action(session, known, params, a), a.key) for a in actions(analysis, span)]
    if wanted(FIX_ALL, only) and _any_safe(analysis):
        title = "Gradvet: apply all safe fixes"
        found.append((lsp.CodeAction(title=title, kind=FIX_ALL), _FIX_ALL_KEY))
    if session.abilities.lazy_edits:
        for code_action, key in found:
            code_action.data = {"uri": document.uri, "version": document.version, "key": key}
        return [code_action for code_action, _ in found]
    for code_action, key in found:
        code_action.edit = await _workspace_edit(session, known, key)
    return [code_action for code_action, _ in found if code_action.edit is not None]


async def resolved(session: Session, action: lsp.CodeAction) -> lsp.CodeAction:
    """The action with its edit; without one when the text has changed since it was offered."""
    data: Any = action.data
    known = await session.newest.analysis(data["uri"])
    if known is not None and known[0].version == data["version"]:
        action.edit = await _workspace_edit(session, known, data["key"])
    return action


async def _workspace_edit(
    session: Session, known: tuple[Document, Analysis], key: str
) -> lsp.WorkspaceEdit | None:
    """The edit behind a key; in a thread, since it may import libcst or analyse the text again."""
    document, analysis = known
    edits = await asyncio.to_thread(_edits, session, document, analysis, key)
    if not edits:
        return None
    sent = proto.to_edits(session.place(document, analysis), edits)
    if not session.abilities.versioned_edits:
        return lsp.WorkspaceEdit(changes={document.uri: sent})
    named = lsp.OptionalVersionedTextDocumentIdentifier(uri=document.uri, version=document.version)
    return lsp.WorkspaceEdit(document_changes=[lsp.TextDocumentEdit(text_document=named, edits=sent)])


def _edits(session: Session, document: Document, analysis: Analysis, key: str) -> Sequence[Edit]:
    if key == _FIX_ALL_KEY:
        after = fix_all(analysis, lambda source: session.again(document, source))
        return changes(analysis.source.text, after)
    whole = Span(0, len(analysis.source.text))
    action = next((action for action in actions(analysis, whole) if action.key == key), None)
    return () if action is None else action.edits(analysis)


def _code_action(
    session: Session, known: tuple[Document, Analysis], params: lsp.CodeActionParams, action: Action
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
