"""Handlers of what is shown in a text: hovers, hints, highlights, code actions."""

import logging

from lsprotocol import types as lsp

from gradvet.lsp import code_actions, proto
from gradvet.lsp.instance import server
from gradvet.lsp.session import Session, answers
from gradvet.views import (
    KINDS_OF_NAMES,
    MARKS,
    highlighted,
    hover,
    inlays,
    lenses,
    marks,
    no_links,
    shared_places,
)

log = logging.getLogger(__name__)


@server.feature(lsp.TEXT_DOCUMENT_HOVER)
@answers(lambda: None)
async def text_document_hover(ls: Session, params: lsp.HoverParams) -> lsp.Hover | None:
    """The rule's page on a diagnostic, the autograd state on an expression."""
    known = await ls.known(params.text_document.uri)
    if known is None:
        return None
    place = known.place
    link = proto.links(place) if ls.abilities.markdown else no_links
    found = await ls.work(hover, known.analysis, proto.from_position(place, params.position), link)
    return None if found is None else proto.to_hover(place, found, ls.words, markdown=ls.abilities.markdown)


@server.feature(lsp.TEXT_DOCUMENT_INLAY_HINT)
@answers(list)
async def text_document_inlay_hint(ls: Session, params: lsp.InlayHintParams) -> list[lsp.InlayHint]:
    """Where what autograd holds changes, in the lines that are shown."""
    kinds = ls.chosen(params.text_document.uri).hints
    known = await ls.known(params.text_document.uri) if kinds else None
    if known is None:
        return []
    place = known.place
    found = await ls.work(inlays, known.analysis, proto.from_range(place, params.range), kinds)
    return [proto.to_inlay(place, inlay, ls.words) for inlay in found]


@server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
@answers(lambda: None)
async def text_document_highlight(
    ls: Session, params: lsp.DocumentHighlightParams
) -> list[lsp.DocumentHighlight] | None:
    """All names that share storage with the one under the cursor, or what a grad mode keeps from being recorded.

    None leaves it to the editor's own words.
    """
    known = await ls.known(params.text_document.uri)
    if known is None:
        return None
    place = known.place
    offset = proto.from_position(place, params.position)
    found = await ls.work(shared_places, known.analysis, offset)
    found = found or await ls.work(highlighted, known.analysis, offset)
    here = [(span, written) for span, written in found if place.holds(span)]
    return [proto.to_highlight(place, span, written=written) for span, written in here] or None


@server.feature(
    lsp.TEXT_DOCUMENT_CODE_ACTION,
    lsp.CodeActionOptions(
        code_action_kinds=[
            lsp.CodeActionKind.QuickFix,
            code_actions.FIX_ALL,
            code_actions.FIX_ALL_IN_NOTEBOOK,
        ],
        resolve_provider=True,
    ),
)
@answers(list)
async def code_action(ls: Session, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
    """The fixes for the diagnostics in a range."""
    if not ls.abilities.actions:
        return []
    known = await ls.known(params.text_document.uri)
    return [] if known is None else await code_actions.offered(ls, known, params)


@server.feature(lsp.CODE_ACTION_RESOLVE)
async def code_action_resolve(ls: Session, params: lsp.CodeAction) -> lsp.CodeAction:
    """The edit of the action that the user chose."""
    try:
        return await code_actions.resolved(ls, params)
    except Exception:
        log.exception("%r could not be resolved", params.title)
        return params


@server.feature(lsp.TEXT_DOCUMENT_CODE_LENS)
@answers(list)
async def code_lens(ls: Session, params: lsp.CodeLensParams) -> list[lsp.CodeLens]:
    """Above each function, what a gradient reaches, what cuts it, and who holds on to it."""
    wanted = ls.chosen(params.text_document.uri).lens
    known = await ls.known(params.text_document.uri) if wanted else None
    if known is None:
        return []
    place = known.place
    found = await ls.work(lenses, known.analysis)
    return [proto.to_lens(place, lens, ls.words) for lens in found if place.holds(lens.span)]


@server.feature(
    lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL,
    lsp.SemanticTokensLegend(token_types=list(KINDS_OF_NAMES), token_modifiers=list(MARKS)),
)
@answers(lambda: None)
async def semantic_tokens(ls: Session, params: lsp.SemanticTokensParams) -> lsp.SemanticTokens | None:
    """Names of tensors by what autograd holds for them; None leaves colours to others."""
    wanted = ls.chosen(params.text_document.uri).tokens
    known = await ls.known(params.text_document.uri) if wanted else None
    if known is None:
        return None
    place = known.place

    def encoded() -> list[int]:
        return proto.to_tokens(place, [mark for mark in marks(known.analysis) if place.holds(mark.span)])

    return lsp.SemanticTokens(data=await ls.work(encoded))
