"""The server object, on which the handlers register themselves."""

from lsprotocol import types as lsp

from gradvet import __version__
from gradvet.lsp.session import Session

server = Session(
    "gradvet",
    __version__,
    text_document_sync_kind=lsp.TextDocumentSyncKind.Full,
    notebook_document_sync=lsp.NotebookDocumentSyncOptions(
        notebook_selector=[
            lsp.NotebookDocumentFilterWithCells(notebook="*", cells=[lsp.NotebookCellLanguage("python")])
        ],
        save=True,
    ),
)
