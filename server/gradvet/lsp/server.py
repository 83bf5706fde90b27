"""The server's life: its start and end, the texts and settings that come in, and `main`."""

import asyncio
import logging
import os
import sys
import threading
from typing import Any

from lsprotocol import types as lsp

from gradvet.lsp import commands, features, proto  # noqa: F401  the handlers register themselves
from gradvet.lsp.abilities import from_capabilities
from gradvet.lsp.diagnostics import diagnostic, workspace_diagnostic
from gradvet.lsp.instance import server
from gradvet.lsp.session import Session
from gradvet.lsp.settings import SECTION, Chosen, from_settings
from gradvet.lsp.survey import Survey
from gradvet.lsp.wire import Input

log = logging.getLogger(__name__)

_STACK = 16 * 1024 * 1024  # a deeply nested file is parsed in a thread, and some systems give those 128 kB
_LOOK_FOR_PARENT = 10.0  # seconds
_SETTINGS_FILES = ("pyproject.toml", "gradvet.toml")


@server.feature(lsp.INITIALIZE)
def initialize(ls: Session, params: lsp.InitializeParams) -> None:
    """Get to know the client, before our capabilities are computed: only a client that pulls is told to."""
    kind = ls.workspace.position_encoding or lsp.PositionEncodingKind.Utf16
    encoding = proto.Encoding(str(getattr(kind, "value", kind)))
    ls.begin(from_capabilities(params.capabilities), encoding, Chosen())
    ls.locale = params.locale
    ls.listens()
    ls.take_settings(from_settings(params.initialization_options), {})
    ls.survey = Survey(ls)
    if ls.abilities.pull:
        options = lsp.DiagnosticOptions(
            identifier="gradvet", inter_file_dependencies=True, workspace_diagnostics=False
        )
        ls.feature(lsp.TEXT_DOCUMENT_DIAGNOSTIC, options)(diagnostic)
        if ls.settings.workspace:  # a client that is told of it asks all the time
            ls.survey.pulled = True
            ls.feature(lsp.WORKSPACE_DIAGNOSTIC)(workspace_diagnostic)
    if params.process_id is not None and os.name == "posix" and _lives(params.process_id):
        ls.parent = asyncio.ensure_future(_end_with(params.process_id))


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
            for pattern in ("**/{pyproject,gradvet}.toml", "**/*.{py,ipynb}")
        ]
        files = lsp.DidChangeWatchedFilesRegistrationOptions(watchers=watchers)
        wanted.append(lsp.Registration("gradvet-files", lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES, files))
    try:
        if wanted:
            await ls.client_register_capability_async(lsp.RegistrationParams(registrations=wanted))
    except Exception:
        log.exception("the client did not take our registrations")
    await read_settings(ls)
    watch_workspace(ls)


def watch_workspace(ls: Session) -> None:
    """Look at the files that nobody has open, where the user wants that and the client does not ask for it."""
    if not ls.survey.pulled:
        if ls.settings.workspace:
            ls.survey.publish()
        elif not ls.survey.asked:
            ls.survey.stop()


async def read_settings(ls: Session) -> None:
    """Ask the client for the settings, of each folder of the workspace too; look again when they have changed."""
    if not ls.abilities.configuration:
        return
    folders = ls.folders()
    items = [lsp.ConfigurationItem(section=SECTION)]
    items += [lsp.ConfigurationItem(scope_uri=folder, section=SECTION) for folder in folders]
    try:
        sent = await ls.workspace_configuration_async(lsp.ConfigurationParams(items=items))
    except Exception:
        log.exception("the client did not give its settings")
        return
    # null means that the client has none of ours, and leaves what the start said
    every, *of_each = [None if one is None else from_settings(one) for one in sent] or [None]
    own = {folder: one for folder, one in zip(folders, of_each) if one is not None}
    await take_settings(ls, ls.settings if every is None else every, own)


async def take_settings(ls: Session, settings: Chosen, of_folders: dict[str, Chosen]) -> None:
    """Take settings; look again at everything when they are new."""
    before = ls.settings
    if ls.take_settings(settings, of_folders):
        await ls.refresh()
        watch_workspace(ls)
        can = ls.abilities
        if before.hints != settings.hints and can.refresh_hints:
            ls.workspace_inlay_hint_refresh(None)
        if before.lens != settings.lens and can.refresh_lenses:
            ls.workspace_code_lens_refresh(None)
        if before.tokens != settings.tokens and can.refresh_tokens:
            ls.workspace_semantic_tokens_refresh(None)


@server.feature(lsp.WORKSPACE_DID_CHANGE_CONFIGURATION)
async def did_change_configuration(ls: Session, params: lsp.DidChangeConfigurationParams) -> None:
    """The user changed settings: some clients send them, others only say so."""
    if ls.abilities.configuration:
        await read_settings(ls)
    elif params.settings is not None:
        await take_settings(ls, from_settings(params.settings), {})


@server.feature(lsp.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
async def did_change_workspace_folders(ls: Session, _params: lsp.DidChangeWorkspaceFoldersParams) -> None:
    """A folder came or went, and its settings with it."""
    await read_settings(ls)
    await ls.refresh()


@server.feature(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES)
async def did_change_watched_files(ls: Session, params: lsp.DidChangeWatchedFilesParams) -> None:
    """A `pyproject.toml`, a `gradvet.toml` or a module came, went or changed."""
    modules = [change.uri for change in params.changes if change.uri.endswith((".py", ".ipynb"))]
    if modules:
        ls.touched(*modules)
    if len(modules) < len(params.changes):
        await ls.refresh()


@server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
def did_open(ls: Session, params: lsp.DidOpenTextDocumentParams) -> None:
    """A text is shown."""
    ls.documents.open(params.text_document)
    ls.survey.opened(params.text_document.uri)
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
    ls.documents.close(params.text_document.uri)
    ls.closed(params.text_document.uri)


@server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
async def did_save(ls: Session, params: lsp.DidSaveTextDocumentParams) -> None:
    """A text was saved: perhaps the project's settings, which not every client watches for us."""
    if not ls.abilities.watch_files:
        await ls.refresh()


@server.feature(lsp.NOTEBOOK_DOCUMENT_DID_OPEN)
def notebook_did_open(ls: Session, params: lsp.DidOpenNotebookDocumentParams) -> None:
    """A notebook is shown: its cells are analysed together, in their order."""
    ls.documents.open_notebook(params.notebook_document, params.cell_text_documents)
    ls.survey.opened(params.notebook_document.uri)
    ls.push(params.notebook_document.uri)
    ls.touched(params.notebook_document.uri)


@server.feature(lsp.NOTEBOOK_DOCUMENT_DID_CHANGE)
def notebook_did_change(ls: Session, params: lsp.DidChangeNotebookDocumentParams) -> None:
    """Cells came, went, moved or were edited."""
    ls.sweep()
    ls.documents.change_notebook(params.notebook_document, params.change.cells)
    ls.push(params.notebook_document.uri)
    edited = (params.change.cells and params.change.cells.text_content) or ()
    ls.touched(params.notebook_document.uri, *(cell.document.uri for cell in edited))


@server.feature(lsp.NOTEBOOK_DOCUMENT_DID_CLOSE)
def notebook_did_close(ls: Session, params: lsp.DidCloseNotebookDocumentParams) -> None:
    """A notebook is no longer shown."""
    uri = params.notebook_document.uri
    cells = ls.documents.close_notebook(uri, [cell.uri for cell in params.cell_text_documents])
    ls.closed(*cells, whole=uri)
    ls.touched(uri)


@server.feature(lsp.NOTEBOOK_DOCUMENT_DID_SAVE)
async def notebook_did_save(ls: Session, _params: lsp.DidSaveNotebookDocumentParams) -> None:
    """A notebook was saved."""
    if not ls.abilities.watch_files:
        await ls.refresh()


def _lives(process: int) -> bool:
    """Whether a process is there."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


async def _end_with(process: int) -> None:
    """End when the editor is gone without a word, even when somebody else holds our input open."""
    while _lives(process):  # noqa: ASYNC110  nobody tells
        await asyncio.sleep(_LOOK_FOR_PARENT)
    log.warning("the editor (process %d) is gone", process)
    os._exit(1)


def main() -> None:
    """Serve one client over standard input and output until it says goodbye."""
    logging.basicConfig(stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    threading.stack_size(_STACK)
    channel, sys.stdout = sys.stdout.buffer, sys.stderr  # a stray print must not break the protocol
    stdin: Any = Input(sys.stdin.buffer)
    server.start_io(stdin=stdin, stdout=channel)
    sys.stderr.flush()
    # Python would wait for analyses that nobody waits for any more.
    os._exit(0 if server.said_goodbye else 1)
