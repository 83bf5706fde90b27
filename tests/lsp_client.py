"""What the sessions in the tests of the server have in common: capabilities, opening, editing, waiting."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import pytest_lsp
from lsprotocol import types as lsp
from pytest_lsp import ClientServerConfig, LanguageClient

Fixture = TypeVar("Fixture", bound=Callable[..., Any])

COMMAND = (sys.executable, "-m", "gradvet", "server")
URI = "file:///w/train.py"
PATIENCE = 90.0
"""Seconds to wait for an answer: a busy machine may be slow, and only no answer is a failure."""


def capabilities(
    *,
    pull: bool = False,
    encodings: Sequence[str] | None = None,
    lazy: bool = False,
    configuration: bool = False,
    refresh: bool = False,
    snippets: bool = False,
) -> lsp.ClientCapabilities:
    """A client that shows everything."""
    resolve = lsp.ClientCodeActionResolveOptions(properties=["edit"]) if lazy else None
    kinds = lsp.ClientCodeActionKindOptions(value_set=[lsp.CodeActionKind.QuickFix])
    return lsp.ClientCapabilities(
        general=lsp.GeneralClientCapabilities(position_encodings=encodings),
        workspace=lsp.WorkspaceClientCapabilities(
            workspace_edit=lsp.WorkspaceEditClientCapabilities(
                document_changes=True, snippet_edit_support=snippets
            ),
            configuration=configuration,
            diagnostics=lsp.DiagnosticWorkspaceClientCapabilities(refresh_support=refresh),
        ),
        text_document=lsp.TextDocumentClientCapabilities(
            diagnostic=lsp.DiagnosticClientCapabilities() if pull else None,
            publish_diagnostics=lsp.PublishDiagnosticsClientCapabilities(
                related_information=True,
                code_description_support=True,
                data_support=True,
                tag_support=lsp.ClientDiagnosticsTagOptions(value_set=list(lsp.DiagnosticTag)),
            ),
            code_action=lsp.CodeActionClientCapabilities(
                code_action_literal_support=lsp.ClientCodeActionLiteralOptions(code_action_kind=kinds),
                resolve_support=resolve,
                data_support=lazy,
            ),
            hover=lsp.HoverClientCapabilities(content_format=[lsp.MarkupKind.Markdown]),
        ),
        window=lsp.WindowClientCapabilities(
            work_done_progress=True, show_document=lsp.ShowDocumentClientCapabilities(support=True)
        ),
        notebook_document=lsp.NotebookDocumentClientCapabilities(
            synchronization=lsp.NotebookDocumentSyncClientCapabilities()
        ),
    )


def session(
    params: Sequence[str] | None = None, command: Sequence[str] = COMMAND
) -> Callable[[Fixture], Fixture]:
    """Make a fixture of a session with a server that is started for it."""
    config = ClientServerConfig(server_command=list(command))
    decorate: Callable[[Fixture], Fixture] = pytest_lsp.fixture(config=config, params=params)
    return decorate


async def initialize(
    client: Any,
    can: lsp.ClientCapabilities,
    options: Any = None,
    folders: Sequence[lsp.WorkspaceFolder] | None = None,
    locale: str | None = None,
) -> None:
    """Introduce the client to the server; what the server can do is kept as `client.result`.

    The client takes registrations, which pytest-lsp's own does not.
    """
    client.feature(lsp.CLIENT_REGISTER_CAPABILITY)(lambda params: None)
    params = lsp.InitializeParams(
        capabilities=can,
        root_uri="file:///w",
        initialization_options=options,
        workspace_folders=folders,
        locale=locale,
    )
    client.result = await client.initialize_session(params)


@asynccontextmanager
async def connected(client: Any, *introduced: Any, **more: Any) -> AsyncIterator[None]:
    """A session from its beginning, as `initialize` takes it, to its end."""
    await initialize(client, *introduced, **more)
    yield
    await client.shutdown_session()


def document(uri: str = URI) -> lsp.TextDocumentIdentifier:
    """The identifier of a document."""
    return lsp.TextDocumentIdentifier(uri)


def did_open(client: LanguageClient, text: str, uri: str = URI) -> None:
    """Show a text."""
    item = lsp.TextDocumentItem(uri=uri, language_id="python", version=1, text=text)
    client.text_document_did_open(lsp.DidOpenTextDocumentParams(text_document=item))


def did_change(client: LanguageClient, text: str, version: int, uri: str = URI) -> None:
    """Put another text in its place."""
    client.text_document_did_change(
        lsp.DidChangeTextDocumentParams(
            text_document=lsp.VersionedTextDocumentIdentifier(uri=uri, version=version),
            content_changes=[lsp.TextDocumentContentChangeWholeDocument(text)],
        )
    )


async def pushed(client: LanguageClient, uri: str = URI) -> Sequence[Any]:
    """The diagnostics that the server sends next."""
    await asyncio.wait_for(client.wait_for_notification(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS), PATIENCE)
    return client.diagnostics[uri]


async def pulled(client: LanguageClient, previous: str | None = None, uri: str = URI) -> Any:
    """The report that the server gives when it is asked."""
    params = lsp.DocumentDiagnosticParams(text_document=document(uri), previous_result_id=previous)
    return await asyncio.wait_for(client.text_document_diagnostic_async(params), PATIENCE)


async def code_actions(
    client: LanguageClient,
    where: lsp.Range,
    only: Sequence[str] | None = None,
    diagnostics: Sequence[lsp.Diagnostic] = (),
    uri: str = URI,
    *,
    commands: bool = False,
) -> Sequence[Any]:
    """The code actions for a range that edit; those that only run a command on demand.

    lsprotocol takes an action that has a command for a command, though they differ in what `command` is.
    """
    context = lsp.CodeActionContext(diagnostics=diagnostics, only=only)
    params = lsp.CodeActionParams(text_document=document(uri), range=where, context=context)
    found = await asyncio.wait_for(client.text_document_code_action_async(params), PATIENCE) or ()
    return tuple(action for action in found if commands or isinstance(action, lsp.CodeAction))


async def hover_text(client: LanguageClient, line: int, character: int, uri: str = URI) -> str:
    """The Markdown of a hover; empty without one."""
    params = lsp.HoverParams(text_document=document(uri), position=lsp.Position(line, character))
    found = await asyncio.wait_for(client.text_document_hover_async(params), PATIENCE)
    if found is None:
        return ""
    assert isinstance(found.contents, lsp.MarkupContent)
    return found.contents.value


def at(line: int, start: int, end: int) -> lsp.Range:
    """A range within one line."""
    return lsp.Range(lsp.Position(line, start), lsp.Position(line, end))


_CODECS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}


def units(text: str, encoding: str) -> int:
    """The code units of a text, reckoned in another way than the server's."""
    codec, size = _CODECS[encoding]
    return len(text.encode(codec)) // size


def edits_of(action: Any, uri: str = URI) -> Sequence[Any]:
    """The edits of a code action, in whichever of the two shapes the client takes them."""
    if action.edit.document_changes is None:
        return list(action.edit.changes[uri])
    [change] = action.edit.document_changes
    assert change.text_document.uri == uri
    return list(change.edits)


def applied(text: str, edits: Sequence[lsp.TextEdit], encoding: str = "utf-16") -> str:
    """The text after edits, reckoned in another way than the server's: in bytes of the client's encoding."""
    codec, size = _CODECS[encoding]
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(f"{line}\n".encode(codec)))

    def offset(position: lsp.Position) -> int:
        return starts[position.line] + position.character * size

    whole = text.encode(codec)
    for edit in sorted(edits, key=lambda edit: offset(edit.range.start), reverse=True):
        start, end = offset(edit.range.start), offset(edit.range.end)
        whole = whole[:start] + edit.new_text.encode(codec) + whole[end:]
    return whole.decode(codec)


async def run(client: Any, command: str, *arguments: Any) -> Any:
    """What a command gives."""
    params = lsp.ExecuteCommandParams(command, arguments=list(arguments))
    found = await asyncio.wait_for(client.workspace_execute_command_async(params), PATIENCE)
    return plain(found)


def plain(value: Any) -> Any:
    """A result as the JSON that it was."""
    if hasattr(value, "_asdict"):
        return {key: plain(part) for key, part in value._asdict().items()}
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return value


async def until(holds: Any) -> None:
    """Wait until something holds, but not for ever."""

    async def wait() -> None:
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.05)

    await asyncio.wait_for(wait(), PATIENCE)
