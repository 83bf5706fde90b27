"""Commands, lenses, tokens, tags and actions over the protocol: real server, real engine, standard input and output."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types as lsp
from pytest_lsp import LanguageClient

from lsp_client import (
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
    plain,
    pulled,
    run,
    session,
    units,
)

pytestmark = pytest.mark.asyncio

NET = """\
import torch
w = torch.ones(3, requires_grad=True)
def loss_of(x):
    '😋漢é'; y = (w * x).sum()
    return y
loss = loss_of(torch.ones(3))
a = loss.detach()
loss.backward()
"""


@session(params=["utf-8", "utf-16", "utf-32"])
async def client(request: pytest.FixtureRequest, lsp_client: LanguageClient) -> Any:
    """A client that asks for diagnostics and shows everything."""
    can = capabilities(pull=True, lazy=True, snippets=True, encodings=[request.param])
    async with connected(lsp_client, can, {"codeLens": True, "semanticTokens": True}):
        yield


@session()
async def quiet(lsp_client: LanguageClient) -> Any:
    """A client whose user has chosen nothing."""
    async with connected(lsp_client, capabilities(pull=True, lazy=True)):
        yield


async def test_the_gradient_path_of_a_value(client: Any) -> None:
    encoding = client.result.capabilities.position_encoding
    commands = client.result.capabilities.execute_command_provider.commands
    assert {
        "gradvet.server.gradientPath",
        "gradvet.server.explainError",
        "gradvet.server.checkWorkspace",
        "gradvet.server.debugInformation",
    } <= set(commands)
    did_open(client, NET)
    found = await run(
        client, "gradvet.server.gradientPath", {"uri": URI, "position": {"line": 7, "character": 1}}
    )
    assert found["title"] == "The gradient path of loss"
    assert "1. `torch.ones(3, requires_grad=True)`, a leaf" in found["markdown"]
    op = next(step for step in found["steps"] if step["text"].startswith("`w * x`"))
    start = units("    '😋漢é'; y = (", encoding)
    assert op["location"]["uri"] == URI
    assert op["location"]["range"]["start"] == {"line": 3, "character": start}
    wrongs: list[Any] = [
        {},
        {"uri": URI},
        {"uri": 3, "position": []},
        {"uri": "file:///no", "position": {}},
        [],
        3,
    ]
    for wrong in wrongs:
        assert await run(client, "gradvet.server.gradientPath", wrong) is None


async def test_a_pasted_error_is_explained(client: Any) -> None:
    did_open(client, NET.replace("loss.backward()", "a.backward()"))
    message = "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn"
    found = await run(client, "gradvet.server.explainError", {"uri": URI, "text": message})
    assert "right fix" in found["markdown"]
    assert "[line 8](file:///w/train.py#L8)" in found["markdown"]
    assert [place["location"]["range"]["start"]["line"] for place in found["places"]] == [7]
    assert (
        await run(client, "gradvet.server.explainError", {"uri": URI, "text": "KeyError: 'somebody else'"})
        is None
    )
    assert await run(client, "gradvet.server.explainError", {"uri": URI}) is None


async def test_debug_information_names_versions_and_no_paths(client: Any) -> None:
    did_open(client, NET)
    told = await run(client, "gradvet.server.debugInformation")
    for word in ("Gradvet", "Python", "pygls", "positions in utf", "1 documents"):
        assert word in told
    assert "/w/" not in told


async def test_lenses_and_tokens_where_the_user_wants_them(client: Any) -> None:
    encoding = client.result.capabilities.position_encoding
    did_open(client, NET)
    [lens] = await client.text_document_code_lens_async(lsp.CodeLensParams(document()))
    assert lens.command.title == "gradient reaches torch.ones(3, requires_grad=True)"
    assert lens.range == at(2, 0, len("def loss_of"))
    tokens = await client.text_document_semantic_tokens_full_async(lsp.SemanticTokensParams(document()))
    legend = client.result.capabilities.semantic_tokens_provider.legend
    line = character = 0
    found = []
    for n in range(0, len(tokens.data), 5):
        away, step, length, kind, mark = tokens.data[n : n + 5]
        line, character = line + away, step + (0 if away else character)
        name = legend.token_modifiers[mark.bit_length() - 1]
        found.append((line, character, length, legend.token_types[kind], name))
    assert (3, units("    '😋漢é'; y = (", encoding), 1, "variable", "gradLeaf") in found
    assert (7, 0, 4, "variable", "graph") in found
    assert (6, 0, 1, "variable", "detached") in found


async def test_they_are_off_unless_chosen(quiet: Any) -> None:
    did_open(quiet, NET)
    assert not await quiet.text_document_code_lens_async(lsp.CodeLensParams(document()))
    params = lsp.SemanticTokensParams(document())
    assert await quiet.text_document_semantic_tokens_full_async(params) is None


async def test_a_hover_links_its_reasons(client: Any) -> None:
    did_open(client, NET)
    assert "([line 4](file:///w/train.py#L4))" in await hover_text(client, 7, 1)


REDUNDANT = """\
import torch
with torch.no_grad():
    with torch.no_grad():
        x = torch.ones(3)
y = torch.autograd.Variable(x)
z = 1  # gradvet: ignore[graph-retained]
"""


async def test_the_head_of_a_grad_mode_lights_up_with_what_it_keeps_from_being_recorded(client: Any) -> None:
    """What has no graph to lose stays dark."""
    encoding = client.result.capabilities.position_encoding
    did_open(client, NET + "with torch.no_grad():\n    '😋'; y = w * 2 + 1\n    z = 3\n")
    params = lsp.DocumentHighlightParams(document(), lsp.Position(8, 12))
    found = await client.text_document_document_highlight_async(params)
    start = units("    '😋'; y = ", encoding)
    assert [(each.range, each.kind) for each in found] == [
        (at(8, 5, 20), lsp.DocumentHighlightKind.Write),
        (at(9, start, start + len("w * 2 + 1")), lsp.DocumentHighlightKind.Read),
    ]
    params = lsp.DocumentHighlightParams(document(), lsp.Position(10, 8))
    assert await client.text_document_document_highlight_async(params) is None


async def test_tags_and_data_of_diagnostics(client: Any) -> None:
    did_open(client, REDUNDANT)
    items = {item.code: item for item in (await pulled(client)).items}
    assert [*items["redundant-grad-mode"].tags] == [lsp.DiagnosticTag.Unnecessary]
    assert [*items["unused-suppression"].tags] == [lsp.DiagnosticTag.Unnecessary]
    assert [*items["legacy-api"].tags] == [lsp.DiagnosticTag.Deprecated]
    assert plain(items["legacy-api"].data)["key"].startswith("legacy-api@")


LEAKS = """\
import torch
model = torch.nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
total = other = 0.0
for _ in range(3):
    loss = model(torch.randn(8, 4)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    '😋漢é'; total += loss
    other += loss
"""


async def test_what_can_be_done_about_all_findings_of_a_rule(client: Any) -> None:
    encoding = client.result.capabilities.position_encoding
    did_open(client, LEAKS)
    [first, _] = (await pulled(client)).items
    offered = await code_actions(client, first.range, only=["quickfix"], diagnostics=[first], commands=True)
    titles = [action.title for action in offered]
    assert titles[-3:] == [
        "Fix all 2 findings of `graph-retained` in this file (safe)",
        "Ignore in this file: # gradvet: ignore-file[graph-retained]",
        "Read about `graph-retained`",
    ]
    assert [getattr(action, "is_preferred", None) for action in offered].count(True) == 1
    every = await client.code_action_resolve_async(offered[-3])
    fixed = LEAKS.replace("+= loss", "+= loss.detach()")
    assert applied(LEAKS, edits_of(every), encoding) == fixed
    whole = await client.code_action_resolve_async(offered[-2])
    assert applied(LEAKS, edits_of(whole), encoding).startswith("# gradvet: ignore-file[graph-retained]\n")
    page = str(offered[-1].command)
    assert "'command': 'gradvet.server.openPage'" in page
    assert "'arguments': ['graph-retained']" in page

    [ignore] = [action for action in offered if action.title.startswith("Ignore here")]
    [edit] = edits_of(await client.code_action_resolve_async(ignore))
    assert edit.snippet.value == "  # gradvet: ignore[graph-retained] ${1:why}"
    did_change(client, f"{LEAKS}# another\n", 2)
    assert (await client.code_action_resolve_async(offered[-3])).edit is None


async def test_a_page_is_opened_in_the_browser(client: Any) -> None:
    await run(client, "gradvet.server.openPage", "graph-retained")
    await run(client, "gradvet.server.openPage", "no-such-rule")
    [params] = client.shown_documents
    assert params.external
    assert params.uri.endswith("/rules/graph_retained.md")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("start", ["", "\ufeff", "\f\n", "'''\n\f'''\n"])
async def test_line_ends_marks_and_form_feeds(client: Any, end: str, start: str) -> None:
    encoding = client.result.capabilities.position_encoding
    text = (start + LEAKS).replace("\n", end)
    did_open(client, text)
    first, second = (await pulled(client)).items
    above = start.count("\n")
    assert [first.range.start.line, second.range.start.line] == [above + 9, above + 10]
    assert first.range.start.character == units("    '😋漢é'; ", encoding)
    fix, *_ = await code_actions(client, first.range, only=["quickfix"])
    chosen = await client.code_action_resolve_async(fix)
    [edit] = edits_of(chosen)
    assert (edit.range.start.line, edit.new_text) == (above + 9, ".detach()")
    assert edit.range.start.character == units("    '😋漢é'; total += loss", encoding)


async def test_settings_that_are_wrong_are_named_and_the_rest_holds(quiet: Any, tmp_path: Path) -> None:
    folder = tmp_path / "漢"
    folder.mkdir()
    (folder / "gradvet.toml").write_text('select = 3\nignore = ["graph-retained", "no-such"]\nexclud = []\n')
    uri = (folder / "a.py").as_uri()
    did_open(quiet, LEAKS, uri)
    assert list((await pulled(quiet, uri=uri)).items) == []  # what is right in the settings holds
    told = " ".join(message.message for message in quiet.messages)
    for word in ("`select` must be a list", "`ignore` names `no-such`", "no setting `exclud`; did you mean"):
        assert word in told
    quiet.workspace_did_change_configuration(
        lsp.DidChangeConfigurationParams({"gradvet": {"codeLens": "yes", "selekt": [], "select": ["nosuch"]}})
    )
    (folder / "gradvet.toml").write_text("not toml")
    quiet.text_document_did_save(lsp.DidSaveTextDocumentParams(lsp.TextDocumentIdentifier(uri)))
    for _ in range(200):
        if len((await pulled(quiet, uri=uri)).items) == 2:
            break
        await asyncio.sleep(0.05)
    assert len((await pulled(quiet, uri=uri)).items) == 2
    told = " ".join(message.message for message in quiet.messages)
    for word in (
        "`gradvet.codeLens` should be true or false",
        "no setting `gradvet.selekt`; did you mean `select`",
        "`gradvet.select` names `nosuch`",
        "not valid TOML",
    ):
        assert word in told


@session()
async def rooted(lsp_client: LanguageClient, tmp_path: Path) -> Any:
    """A client with two folders, each with settings of its own."""
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        folder.mkdir()
    (two / "pyproject.toml").write_text('[tool.gradvet]\nignore = ["leak"]\n')
    for folder, sent in ((one, {"ignore": ["graph-retained"]}), (two, {"select": ["alias"]})):
        lsp_client.set_configuration({"gradvet": sent}, scope_uri=folder.as_uri())
    folders = [lsp.WorkspaceFolder(folder.as_uri(), folder.name) for folder in (one, two)]
    async with connected(lsp_client, capabilities(pull=True, configuration=True), folders=folders):
        yield


async def test_each_folder_has_its_own_settings(rooted: Any, tmp_path: Path) -> None:
    text = LEAKS + "loss.data\n"

    async def codes(path: str) -> set[Any]:
        uri = (tmp_path / path).as_uri()
        did_open(rooted, text, uri)
        return {item.code for item in (await pulled(rooted, uri=uri)).items}

    await codes("one/warm.py")
    assert await codes("one/a.py") == {"data-attribute"}
    assert await codes("two/a.py") == {"data-attribute"}
    assert await codes("elsewhere/a.py") == {"data-attribute", "graph-retained"}
