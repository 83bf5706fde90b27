"""Handlers of diagnostics that the client asks for."""

import hashlib

from lsprotocol import types as lsp

from gradvet.lsp.session import Session, answers


def result_id(items: list[lsp.Diagnostic]) -> str:
    """A name for these very diagnostics: the same ones have the same name, so nothing need be remembered."""
    return hashlib.blake2b(repr(items).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


@answers(lambda: lsp.RelatedFullDocumentDiagnosticReport(items=[]))
async def diagnostic(ls: Session, params: lsp.DocumentDiagnosticParams) -> lsp.DocumentDiagnosticReport:
    """The diagnostics of a text, or word that they are those that the client has."""
    known = await ls.known(params.text_document.uri)
    items = [] if known is None else await ls.work(ls.diagnostics, known)
    name = result_id(items)
    if params.previous_result_id == name:
        return lsp.RelatedUnchangedDocumentDiagnosticReport(result_id=name)
    return lsp.RelatedFullDocumentDiagnosticReport(items=items, result_id=name)
