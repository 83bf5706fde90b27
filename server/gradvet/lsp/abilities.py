"""What this client can do, asked once at the start."""

from dataclasses import dataclass

from lsprotocol import types as lsp


@dataclass(frozen=True, slots=True)
class Abilities:
    """The client's abilities that change what the server sends; by default it can do little."""

    pull: bool = False
    related: bool = False
    links: bool = False
    markdown: bool = False
    actions: bool = False
    lazy_edits: bool = False
    versioned_edits: bool = False
    refresh: bool = False
    refresh_hints: bool = False
    configuration: bool = False
    watch_configuration: bool = False
    watch_files: bool = False


def from_capabilities(client: lsp.ClientCapabilities) -> Abilities:
    """The abilities behind the protocol's tree of optional capabilities."""
    text = client.text_document or lsp.TextDocumentClientCapabilities()
    space = client.workspace or lsp.WorkspaceClientCapabilities()
    push = text.publish_diagnostics or lsp.PublishDiagnosticsClientCapabilities()
    pull = text.diagnostic or lsp.DiagnosticClientCapabilities()
    action = text.code_action or lsp.CodeActionClientCapabilities()
    formats = (text.hover.content_format if text.hover else None) or ()
    resolvable = action.resolve_support.properties if action.resolve_support else ()
    return Abilities(
        pull=text.diagnostic is not None,
        related=bool(push.related_information or pull.related_information),
        links=bool(push.code_description_support or pull.code_description_support),
        markdown=lsp.MarkupKind.Markdown in formats,
        actions=action.code_action_literal_support is not None,
        lazy_edits="edit" in resolvable and bool(action.data_support),
        versioned_edits=bool(space.workspace_edit and space.workspace_edit.document_changes),
        refresh=bool(space.diagnostics and space.diagnostics.refresh_support),
        refresh_hints=bool(space.inlay_hint and space.inlay_hint.refresh_support),
        configuration=bool(space.configuration),
        watch_configuration=bool(
            space.did_change_configuration and space.did_change_configuration.dynamic_registration
        ),
        watch_files=bool(
            space.did_change_watched_files and space.did_change_watched_files.dynamic_registration
        ),
    )
