"""Handlers of diagnostics that the client asks for, of a text and of the whole workspace."""

from collections.abc import Sequence

from lsprotocol import types as lsp

from gradvet.lsp.result_id import result_id
from gradvet.lsp.session import Session, answers
from gradvet.lsp.survey import Told

_TOGETHER = 20  # files whose reports are sent together


@answers(lambda: lsp.RelatedFullDocumentDiagnosticReport(items=[]))
async def diagnostic(ls: Session, params: lsp.DocumentDiagnosticParams) -> lsp.DocumentDiagnosticReport:
    """The diagnostics of a text, or word that they are those that the client has."""
    known = await ls.known(params.text_document.uri)
    items = [] if known is None else await ls.work(ls.diagnostics, known)
    name = result_id(items)
    if params.previous_result_id == name:
        return lsp.RelatedUnchangedDocumentDiagnosticReport(result_id=name)
    return lsp.RelatedFullDocumentDiagnosticReport(items=items, result_id=name)


@answers(lambda: lsp.WorkspaceDiagnosticReport(items=[]))
async def workspace_diagnostic(
    ls: Session, params: lsp.WorkspaceDiagnosticParams
) -> lsp.WorkspaceDiagnosticReport:
    """What is new in files that nobody has open; where nothing is, the answer waits until something is."""
    has = {previous.uri: previous.value for previous in params.previous_result_ids}
    token = params.partial_result_token
    while True:
        sent = False
        fresh: list[Told] = []
        async for told in ls.survey.look():
            if has.get(told.uri) != told.name and (told.items or told.uri in has):
                fresh.append(told)
                has[told.uri] = told.name
            if token is not None and len(fresh) >= _TOGETHER:
                _send(ls, token, fresh)
                fresh, sent = [], True
        if token is not None and fresh:
            _send(ls, token, fresh)
            fresh, sent = [], True
        if sent or fresh:
            return lsp.WorkspaceDiagnosticReport(items=_reports(fresh))
        await ls.survey.news()


def _reports(fresh: Sequence[Told]) -> list[lsp.WorkspaceDocumentDiagnosticReport]:
    return [
        lsp.WorkspaceFullDocumentDiagnosticReport(told.uri, list(told.items), result_id=told.name)
        for told in fresh
    ]


def _send(ls: Session, token: lsp.ProgressToken, fresh: Sequence[Told]) -> None:
    part = lsp.WorkspaceDiagnosticReportPartialResult(items=_reports(fresh))
    ls.progress(lsp.ProgressParams(token=token, value=part))
