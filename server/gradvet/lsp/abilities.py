"""What this client can do, asked once at the start."""

from dataclasses import dataclass, field

from lsprotocol import types as lsp

from gradvet.lsp.proto import Shows


@dataclass(frozen=True, slots=True)
class Abilities:
    """The client's abilities that change what the server sends; by default it can do little."""

    pull: bool = False
    shows: Shows = field(default_factory=Shows)
    markdown: bool = False
    actions: bool = False
    lazy_edits: bool = False
    versioned_edits: bool = False
    snippets: bool = False
    shows_documents: bool = False
    refresh: bool = False
    refresh_hints: bool = False
    refresh_lenses: bool = False
    refresh_tokens: bool = False
    progress: bool = False
    configuration: bool = False
    watch_configuration: bool = False
    watch_files: bool = False


def from_capabilities(client: lsp.ClientCapabilities) -> Abilities:
    """The abilities behind the protocol's tree of optional capabilities."""
    text = client.text_document or lsp.TextDocumentClientCapabilities()
    space = client.workspace or lsp.WorkspaceClientCapabilities()
    window = client.window or lsp.WindowClientCapabilities()
    action = text.code_action or lsp.CodeActionClientCapabilities()
    formats = (text.hover.content_format if text.hover else None) or ()
    resolvable = action.resolve_support.properties if action.resolve_support else ()
    return Abilities(
        pull=text.diagnostic is not None,
        shows=_shows(text),
        markdown=lsp.MarkupKind.Markdown in formats,
        actions=action.code_action_literal_support is not None,
        lazy_edits="edit" in resolvable and bool(action.data_support),
        versioned_edits=bool(space.workspace_edit and space.workspace_edit.document_changes),
        snippets=bool(
            space.workspace_edit
            and space.workspace_edit.document_changes
            and space.workspace_edit.snippet_edit_support
        ),
        shows_documents=bool(window.show_document and window.show_document.support),
        refresh=bool(space.diagnostics and space.diagnostics.refresh_support),
        refresh_hints=bool(space.inlay_hint and space.inlay_hint.refresh_support),
        refresh_lenses=bool(space.code_lens and space.code_lens.refresh_support),
        refresh_tokens=bool(space.semantic_tokens and space.semantic_tokens.refresh_support),
        progress=bool(window.work_done_progress),
        configuration=bool(space.configuration),
        watch_configuration=bool(
            space.did_change_configuration and space.did_change_configuration.dynamic_registration
        ),
        watch_files=bool(
            space.did_change_watched_files and space.did_change_watched_files.dynamic_registration
        ),
    )


def _shows(text: lsp.TextDocumentClientCapabilities) -> Shows:
    """What of a diagnostic is shown. A client says it for those that are pushed or for those that it asks for."""
    push = text.publish_diagnostics or lsp.PublishDiagnosticsClientCapabilities()
    pull = text.diagnostic or lsp.DiagnosticClientCapabilities()
    tags = [*(sup.value_set for sup in (push.tag_support, pull.tag_support) if sup is not None)]
    return Shows(
        related=bool(push.related_information or pull.related_information),
        links=bool(push.code_description_support or pull.code_description_support),
        data=bool(push.data_support or pull.data_support),
        tags=frozenset(tag for values in tags for tag in values),
    )
