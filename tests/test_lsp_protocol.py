"""The server's side of the protocol, over real standard input and output, with analyses made by hand."""

import asyncio
import sys
import time
from pathlib import Path
from typing import Any

import pygls.exceptions
import pytest
from lsprotocol import types as lsp
from pytest_lsp import LanguageClient, client_capabilities

from lsp_client import (
    PATIENCE,
    URI,
    applied,
    at,
    capabilities,
    code_actions,
    connected,
    did_change,
    did_open,
    document,
    edits_of,
    hover_text,
    pulled,
    pushed,
    session,
)

COMMAND = [sys.executable, str(Path(__file__).parent / "fake_server.py")]
pytestmark = pytest.mark.asyncio


@session(command=COMMAND)
async def pushing(lsp_client: LanguageClient) -> Any:
    """A client that is sent diagnostics and counts in UTF-16."""
    async with connected(lsp_client, capabilities()):
        yield


@session(command=COMMAND)
async def pulling(lsp_client: LanguageClient) -> Any:
    """A client that asks for diagnostics, resolves edits and counts in UTF-8."""
    can = capabilities(pull=True, lazy=True, encodings=["utf-8", "utf-16"])
    async with connected(lsp_client, can):
        yield


@session(command=COMMAND)
async def configured(lsp_client: LanguageClient) -> Any:
    """A client that has settings and is asked for them."""
    lsp_client.set_configuration({"gradvet": {"ignore": ["lost-graph"]}})
    async with connected(lsp_client, capabilities(configuration=True), {"ignore": []}):
        yield


@session(command=COMMAND)
async def plain(lsp_client: LanguageClient) -> Any:
    """A client that can do next to nothing, with settings at the start."""
    options = {"settings": {"gradvet": {"ignore": "lost-graph, other"}}}
    async with connected(lsp_client, lsp.ClientCapabilities(), options):
        yield


@session(
    params=["visual_studio_code_v1.65.2", "neovim_v0.7.0", "neovim_v0.11.0", "emacs_v29.1"], command=COMMAND
)
async def known(request: pytest.FixtureRequest, lsp_client: LanguageClient) -> Any:
    """An editor whose capabilities were recorded."""
    name, version = request.param.rsplit("_v", 1)
    async with connected(lsp_client, client_capabilities(f"{name}@v{version}")):
        yield


TEXT = "import torch\ns = '😋漢é'; lost(s)\n"


async def test_diagnostics_are_pushed_on_opening_and_changing_and_taken_back_on_closing(
    pushing: Any,
) -> None:
    assert pushing.result.capabilities.diagnostic_provider is None
    did_open(pushing, TEXT)
    [found] = await pushed(pushing)
    assert found.range == at(1, 12, 17)  # the emoji takes two units
    assert (found.code, found.source) == ("lost-graph", "gradvet")
    assert found.code_description.href.endswith("/rules/lost_graph.md")
    [related] = found.related_information
    assert (related.message, related.location.uri, related.location.range) == (
        "why: it is lost",
        URI,
        found.range,
    )

    did_change(pushing, TEXT.replace("lost", "found"), 2)
    assert list(await pushed(pushing)) == []
    did_change(pushing, TEXT + "lost()\n", 3)
    assert [d.range.start.line for d in await pushed(pushing)] == [1, 2]
    pushing.text_document_did_close(lsp.DidCloseTextDocumentParams(document()))
    assert list(await pushed(pushing)) == []


async def test_a_pulling_client_is_told_only_when_it_asks_and_only_what_is_new(
    pulling: Any,
) -> None:
    assert pulling.result.capabilities.diagnostic_provider.identifier == "gradvet"
    did_open(pulling, TEXT)
    first = await pulled(pulling)
    assert first.kind == "full"
    [found] = first.items
    assert found.range == at(1, 5 + 9 + 3, 5 + 9 + 3 + 5)  # UTF-8: four, three and two bytes

    assert (await pulled(pulling, first.result_id)).kind == "unchanged"
    did_change(pulling, TEXT + "# nothing new\n", 2)
    assert (await pulled(pulling, first.result_id)).kind == "unchanged"
    did_change(pulling, "\n" + TEXT, 3)
    moved = await pulled(pulling, first.result_id)
    assert [d.range.start.line for d in moved.items] == [2]
    assert pulling.diagnostics == {}


@pytest.mark.parametrize(
    "uri", [URI, "untitled:Untitled-1", "file:///no/such/%E6%BC%A2%20dir/a.py", "git:/x.py?a"]
)
async def test_texts_that_are_nowhere_on_disk(pulling: Any, uri: str) -> None:
    assert list((await pulled(pulling, uri=uri)).items) == []  # not even open
    did_open(pulling, TEXT, uri)
    assert len((await pulled(pulling, uri=uri)).items) == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "def f(:\n  lost(",
        "\x00\x01\ufffd\x7fELF",
        "x = '\ud83d'\nlost()",
        "lost(" * 500,
        "crash lost()",
    ],
)
async def test_bad_texts_do_not_stop_the_server(pulling: Any, text: str) -> None:
    did_open(pulling, text)
    await pulled(pulling)
    await hover_text(pulling, 0, 0)
    await code_actions(pulling, at(0, 0, 99))
    did_change(pulling, TEXT, 2)
    assert len((await pulled(pulling)).items) == 1


async def test_a_file_that_breaks_the_engine_is_answered_as_empty(pulling: Any) -> None:
    did_open(pulling, "crash lost()")
    assert list((await pulled(pulling)).items) == []
    assert await hover_text(pulling, 0, 6) == ""
    assert await code_actions(pulling, at(0, 6, 10)) == ()
    assert pulling.messages == []  # no pop-up either


async def test_a_fix_is_sent_with_its_edit_and_makes_the_finding_go(pushing: Any) -> None:
    did_open(pushing, TEXT)
    [found] = await pushed(pushing)
    fix, ignore, ignore_file = await code_actions(pushing, found.range, diagnostics=[found])
    assert (fix.title, fix.kind, fix.is_preferred) == ("Put it right", "quickfix", True)
    assert list(fix.diagnostics) == [found]
    assert applied(TEXT, edits_of(ignore_file)) == f"# gradvet: ignore-file[lost-graph]\n{TEXT}"
    assert (ignore.title, ignore.is_preferred) == ("Ignore here: # gradvet: ignore[lost-graph]", None)
    [every] = await code_actions(pushing, found.range, only=["source.fixAll"])
    assert applied(TEXT, edits_of(every)) == TEXT.replace("lost", "found")
    [change] = fix.edit.document_changes
    assert (change.text_document.uri, change.text_document.version) == (URI, 1)
    fixed = applied(TEXT, change.edits)
    assert fixed == TEXT.replace("lost", "found")
    did_change(pushing, fixed, 2)
    assert list(await pushed(pushing)) == []
    [change] = ignore.edit.document_changes
    assert (
        applied(TEXT, change.edits).splitlines()[1] == "s = '😋漢é'; lost(s)  # gradvet: ignore[lost-graph]"
    )


async def test_edits_are_made_only_for_the_action_that_is_chosen(pulling: Any) -> None:
    did_open(pulling, TEXT)
    [found] = (await pulled(pulling)).items
    offered = await code_actions(pulling, found.range, only=["quickfix"])
    assert [action.edit for action in offered] == [None, None, None]
    chosen = await pulling.code_action_resolve_async(offered[0])
    assert applied(TEXT, edits_of(chosen), "utf-8") == TEXT.replace("lost", "found")

    did_change(pulling, TEXT + "# the action is from before this\n", 2)
    stale = await pulling.code_action_resolve_async(offered[0])
    assert stale.edit is None


async def test_all_safe_fixes_at_once(pulling: Any) -> None:
    text = "lost(lost(1))\n漢 = lost(2)\n"
    did_open(pulling, text)
    for asked in ("source", "source.fixAll", "source.fixAll.gradvet"):
        [action] = await code_actions(pulling, at(0, 0, 0), only=[asked])
        assert action.kind == "source.fixAll.gradvet"
    chosen = await pulling.code_action_resolve_async(action)
    assert applied(text, edits_of(chosen), "utf-8") == text.replace("lost", "found")
    assert await code_actions(pulling, at(0, 0, 0), only=["refactor", "source.organizeImports"]) == ()
    did_change(pulling, "found()\n", 2)
    assert await code_actions(pulling, at(0, 0, 0), only=["source.fixAll"]) == ()


async def test_a_hover_tells_of_the_diagnostic_and_of_the_expression(pushing: Any) -> None:
    did_open(pushing, TEXT)
    told = await hover_text(pushing, 1, 13)
    assert "`lost` loses the graph" in told
    assert "What `lost` holds is lost." in told
    line = f"([line 2]({URI}#L2))"
    assert f"`lost` requires grad\n\n- it is called lost {line}" in told
    assert await hover_text(pushing, 1, 17) == f"`s` requires grad\n\n- it is called s {line}"
    assert await hover_text(pushing, 0, 0) == ""


async def test_the_clients_settings_are_asked_for_and_followed(configured: Any) -> None:
    did_open(configured, TEXT)
    while list(await pushed(configured)):
        pass  # what was found before the settings came is taken back
    configured.set_configuration({"gradvet": {"ignore": []}})
    configured.workspace_did_change_configuration(lsp.DidChangeConfigurationParams(settings=None))
    assert len(await pushed(configured)) == 1


async def test_a_client_that_can_do_little_is_served_with_that(plain: Any) -> None:
    did_open(plain, TEXT)
    assert list(await pushed(plain)) == []  # ignored by the options at the start
    plain.workspace_did_change_configuration(
        lsp.DidChangeConfigurationParams({"gradvet": {"ignore": "other"}})
    )
    [found] = await pushed(plain)
    assert found.message == "`lost` loses the graph\nwhy: it is lost (line 2)"
    assert found.related_information is None
    assert found.code_description is None
    assert await code_actions(plain, found.range) == ()  # it would take them for commands
    params = lsp.HoverParams(document(), found.range.start)
    hover = await plain.text_document_hover_async(params)
    assert hover.contents.kind == lsp.MarkupKind.PlainText


async def test_editors_as_they_are(known: Any) -> None:
    did_open(known, TEXT)
    if known.result.capabilities.diagnostic_provider:
        [found] = (await pulled(known)).items
    else:
        [found] = await pushed(known)
    assert found.range.start.line == 1
    fix, *_ = await code_actions(known, found.range, diagnostics=[found])
    if fix.edit is None:
        fix = await known.code_action_resolve_async(fix)
    encoding = known.result.capabilities.position_encoding
    assert applied(TEXT, edits_of(fix), encoding) == TEXT.replace("lost", "found")
    assert "loses the graph" in await hover_text(known, 1, found.range.start.character)


async def test_nothing_is_held_of_edits_that_are_over(pushing: Any) -> None:
    did_open(pushing, "")
    for version in range(2, 100):
        did_change(pushing, f"lost({version})", version)
    await pushed(pushing)
    held = await pushing.workspace_execute_command_async(lsp.ExecuteCommandParams(command="fake.held"))
    assert held < 10


@pytest.mark.parametrize("speed", ["", "slow = 1\n"])
async def test_typing_does_not_pile_up_work(pulling: Any, speed: str) -> None:
    """30 edits 30 ms apart; each asks anew and cancels what it asked before."""
    did_open(pulling, speed)
    await pulled(pulling)
    asked: list[Any] = []
    pauses = []
    for number in range(30):
        began = time.monotonic()
        did_change(pulling, f"{speed}x = {number}\nlost()\n", number + 2)
        if asked:
            pulling.cancel_request(lsp.CancelParams(id=f"pull-{number - 1}"))
        params = lsp.DocumentDiagnosticParams(document())
        request = pulling.protocol.send_request(lsp.TEXT_DOCUMENT_DIAGNOSTIC, params, msg_id=f"pull-{number}")
        asked.append(asyncio.wrap_future(request))
        await asyncio.sleep(0.03)
        pauses.append(time.monotonic() - began)
    answers: list[Any] = await asyncio.wait_for(asyncio.gather(*asked, return_exceptions=True), PATIENCE)
    *earlier, last = answers
    assert len(last.items) == 1
    cancelled = [isinstance(answer, pygls.exceptions.JsonRpcRequestCancelled) for answer in earlier]
    assert all(gone or answer.items for gone, answer in zip(cancelled, earlier, strict=True))
    ran = await pulling.workspace_execute_command_async(lsp.ExecuteCommandParams(command="fake.analyses"))
    print(f"{sum(cancelled)} of 30 cancelled, {ran} analyses in all")
    # one on opening, one for the last text, and one for each pause that a busy machine made too long
    assert 2 <= ran <= 4 + sum(pause > 0.045 for pause in pauses)
