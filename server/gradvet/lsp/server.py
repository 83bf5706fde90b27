"""The server: small handlers, and `main`, which speaks over standard input and output."""

import logging
import sys
import threading
from typing import Any

from lsprotocol import types as lsp

from gradvet import __version__
from gradvet.lsp import code_actions, proto
from gradvet.lsp.abilities import from_capabilities
from gradvet.lsp.session import Session, answers, result_id
from gradvet.lsp.settings import SECTION, from_settings
from gradvet.project import unknown_rules
from gradvet.views import hover, inlays, shared_places

log = logging.getLogger(__name__)

_STACK = 16 * 1024 * 1024  # a deeply nested file is parsed in a thread, and some systems give those 128 kB

server = Session(
    "gradvet",
    __version__,
    # ranged changes of text documents would go through pygls's own copy first, which alters their positions
    text_document_sync_kind=lsp.TextDocumentSyncKind.Full,
    notebook_document_sync=lsp.NotebookDocumentSyncOptions(
        notebook_selector=[
            lsp.NotebookDocumentFilterWithCells(notebook="*", cells=[lsp.NotebookCellLanguage("python")])
        ]
    ),
)


@server.feature(lsp.INITIALIZE)
def initialize(ls: Session, params: lsp.InitializeParams) -> None:
    """Get to know the client, before our capabilities are computed: only a client that pulls is told to."""
    kind = ls.workspace.position_encoding or lsp.PositionEncodingKind.Utf16
    encoding = proto.Encoding(str(getattr(kind, "value", kind)))
    ls.begin(from_capabilities(params.capabilities), encoding, from_settings(params.initialization_options))
    if ls.abilities.pull:
        options = lsp.DiagnosticOptions(
            identifier="gradvet", inter_file_dependencies=True, workspace_diagnostics=False
        )
        ls.feature(lsp.TEXT_DOCUMENT_DIAGNOSTIC, options)(diagnostic)


@server.feature(lsp.INITIALIZED)
async def initialized(ls: Session, _params: lsp.InitializedParams) -> None:
    """Ask to be told when settings change, and for the settings as they are."""
    wanted = []
    if ls.abilities.watch_configuration:
        options = lsp.DidChangeConfigurationRegistrationOptions(section=SECTION)
        wanted.append(lsp.Registration("gradvet-settings", lsp.WORKSPACE_DID_CHANGE_CONFIGURATION, options))
    if ls.abilities.watch_files:
        watchers = [
            lsp.FileSystemWatcher(glob_pattern=pattern)
            for pattern in ("**/{pyproject,gradvet}.toml", "**/*.py")
        ]
        files = lsp.DidChangeWatchedFilesRegistrationOptions(watchers=watchers)
        wanted.append(lsp.Registration("gradvet-files", lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES, files))
    try:
        if wanted:
            await ls.client_register_capability_async(lsp.RegistrationParams(registrations=wanted))
        await read_settings(ls)
        check_settings(ls)
    except Exception:
        log.exception("the client did not take our registrations")


async def read_settings(ls: Session) -> None:
    """Ask the client for the settings; look again at everything when they have changed."""
    if ls.abilities.configuration:
        items = [lsp.ConfigurationItem(section=SECTION)]
        [sent] = await ls.workspace_configuration_async(lsp.ConfigurationParams(items=items))
        change_settings(ls, sent)


def change_settings(ls: Session, sent: Any) -> None:
    """Take new settings; null means that the client has none of ours, and leaves what the start said."""
    if sent is not None:
        before, ls.settings = ls.settings, from_settings(sent)
        ls.refresh()
        if before.hints != ls.settings.hints and ls.abilities.refresh_hints:
            ls.workspace_inlay_hint_refresh(None)
        check_settings(ls)


def check_settings(ls: Session) -> None:
    """Tell the user of names in the settings that no rule has."""
    for key, names in (("select", ls.settings.config.select), ("ignore", ls.settings.config.ignore)):
        if (complaint := unknown_rules(sorted(names))) is not None:
            ls.warn(f"the setting `{SECTION}.{key}` names {complaint}")


@server.feature(lsp.WORKSPACE_DID_CHANGE_CONFIGURATION)
async def did_change_configuration(ls: Session, params: lsp.DidChangeConfigurationParams) -> None:
    """The user changed settings: some clients send them, others only say so."""
    if ls.abilities.configuration:
        await read_settings(ls)
    else:
        change_settings(ls, params.settings)


@server.feature(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES)
def did_change_watched_files(ls: Session, params: lsp.DidChangeWatchedFilesParams) -> None:
    """A `pyproject.toml`, a `gradvet.toml` or a module came, went or changed."""
    modules = [change.uri for change in params.changes if change.uri.endswith(".py")]
    if modules:
        ls.touched(*modules)
    if len(modules) < len(params.changes):
        ls.refresh()


@server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
def did_open(ls: Session, params: lsp.DidOpenTextDocumentParams) -> None:
    """A text is shown."""
    ls.documents.open(params.text_document)
    ls.push(params.text_document.uri)
    ls.touched(params.text_document.uri)


@server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
def did_change(ls: Session, params: lsp.DidChangeTextDocumentParams) -> None:
    """A text was edited."""
    ls.sweep()
    ls.documents.change(params.text_document, params.content_changes)
    ls.push(params.text_document.uri)
    ls.touched(params.text_document.uri)


@server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
def did_close(ls: Session, params: lsp.DidCloseTextDocumentParams) -> None:
    """A text is no longer shown."""
    ls.closed(params.text_document.uri)


@server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
def did_save(ls: Session, _params: lsp.DidSaveTextDocumentParams) -> None:
    """A text was saved: perhaps the project's settings, which not every client watches for us."""
    if not ls.abilities.watch_files:
        ls.refresh()


@server.feature(lsp.NOTEBOOK_DOCUMENT_DID_OPEN)
def notebook_did_open(ls: Session, params: lsp.DidOpenNotebookDocumentParams) -> None:
    """A notebook is shown: each cell is a text of its own."""
    for cell in params.cell_text_documents:
        ls.documents.open(cell)
        ls.push(cell.uri)


@server.feature(lsp.NOTEBOOK_DOCUMENT_DID_CHANGE)
def notebook_did_change(ls: Session, params: lsp.DidChangeNotebookDocumentParams) -> None:
    """Cells came, went or were edited."""
    cells = params.change.cells or lsp.NotebookDocumentCellChanges()
    if cells.structure is not None:
        for cell in cells.structure.did_open or ():
            ls.documents.open(cell)
            ls.push(cell.uri)
        for gone in cells.structure.did_close or ():
            ls.closed(gone.uri)
    for edited in cells.text_content or ():
        ls.documents.change(edited.document, edited.changes)
        ls.push(edited.document.uri)


@server.feature(lsp.NOTEBOOK_DOCUMENT_DID_CLOSE)
def notebook_did_close(ls: Session, params: lsp.DidCloseNotebookDocumentParams) -> None:
    """A notebook is no longer shown."""
    for cell in params.cell_text_documents:
        ls.closed(cell.uri)


@answers(lambda: lsp.RelatedFullDocumentDiagnosticReport(items=[]))
async def diagnostic(ls: Session, params: lsp.DocumentDiagnosticParams) -> lsp.DocumentDiagnosticReport:
    """The diagnostics of a document, or word that they are those that the client has."""
    known = await ls.newest.analysis(params.text_document.uri)
    items = [] if known is None else ls.diagnostics(*known)
    name = result_id(items)
    if params.previous_result_id == name:
        return lsp.RelatedUnchangedDocumentDiagnosticReport(result_id=name)
    return lsp.RelatedFullDocumentDiagnosticReport(items=items, result_id=name)


@server.feature(lsp.TEXT_DOCUMENT_HOVER)
@answers(lambda: None)
async def text_document_hover(ls: Session, params: lsp.HoverParams) -> lsp.Hover | None:
    """The rule's page on a diagnostic, the autograd state on an expression."""
    known = await ls.newest.analysis(params.text_document.uri)
    if known is None:
        return None
    place = ls.place(*known)
    found = hover(known[1], proto.from_position(place, params.position))
    return None if found is None else proto.to_hover(place, found, markdown=ls.abilities.markdown)


@server.feature(lsp.TEXT_DOCUMENT_INLAY_HINT)
@answers(list)
async def text_document_inlay_hint(ls: Session, params: lsp.InlayHintParams) -> list[lsp.InlayHint]:
    """Where what autograd holds changes, in the lines that are shown."""
    known = await ls.newest.analysis(params.text_document.uri) if ls.settings.hints else None
    if known is None:
        return []
    place = ls.place(*known)
    found = inlays(known[1], proto.from_range(place, params.range), ls.settings.hints)
    return [proto.to_inlay(place, inlay) for inlay in found]


@server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
@answers(lambda: None)
async def text_document_highlight(
    ls: Session, params: lsp.DocumentHighlightParams
) -> list[lsp.DocumentHighlight] | None:
    """All names that share storage with the one under the cursor; None leaves it to the editor's own words."""
    known = await ls.newest.analysis(params.text_document.uri)
    if known is None:
        return None
    place = ls.place(*known)
    found = shared_places(known[1], proto.from_position(place, params.position))
    return [proto.to_highlight(place, span, written=written) for span, written in found] or None


@server.feature(
    lsp.TEXT_DOCUMENT_CODE_ACTION,
    lsp.CodeActionOptions(
        code_action_kinds=[lsp.CodeActionKind.QuickFix, code_actions.FIX_ALL], resolve_provider=True
    ),
)
@answers(list)
async def code_action(ls: Session, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
    """The fixes for the diagnostics in a range."""
    if not ls.abilities.actions:
        return []
    known = await ls.newest.analysis(params.text_document.uri)
    return [] if known is None else await code_actions.offered(ls, known, params)


@server.feature(lsp.CODE_ACTION_RESOLVE)
async def code_action_resolve(ls: Session, params: lsp.CodeAction) -> lsp.CodeAction:
    """The edit of the action that the user chose."""
    try:
        return await code_actions.resolved(ls, params)
    except Exception:
        log.exception("%r could not be resolved", params.title)
        return params


def main() -> None:
    """Serve one client over standard input and output until it says goodbye."""
    logging.basicConfig(stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    # it calls every ranged change of a notebook cell an error; `documents` applies them
    logging.getLogger("pygls.workspace.text_document").setLevel(logging.CRITICAL)
    threading.stack_size(_STACK)
    channel, sys.stdout = sys.stdout.buffer, sys.stderr  # a stray print must not break the protocol
    server.start_io(stdout=channel)
