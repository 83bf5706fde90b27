"""`python -m gradvet server` as an editor meets it: real engine, real rules, standard input and output."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types as lsp
from pytest_lsp import LanguageClient, client_capabilities

from gradvet.analysis import analyze
from gradvet.rules import all_rules
from gradvet.text import Source, Span, apply
from gradvet.views import actions, rule_actions, summary
from lsp_client import (
    COMMAND,
    applied,
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
    units,
)
from pages import load

RULES = Path(__file__).parent.parent / "server" / "gradvet" / "rules"


@session(params=["utf-16", "utf-8"])
async def client(request: pytest.FixtureRequest, lsp_client: LanguageClient) -> Any:
    """A client that is sent diagnostics."""
    async with connected(lsp_client, capabilities(encodings=[request.param])):
        yield


@session()
async def pulling(lsp_client: LanguageClient) -> Any:
    """A client that asks for diagnostics."""
    async with connected(lsp_client, capabilities(pull=True, lazy=True)):
        yield


@session(params=["visual_studio_code@v1.65.2", "neovim@v0.7.0", "neovim@v0.11.0", "emacs@v29.1"])
async def editor(request: pytest.FixtureRequest, lsp_client: LanguageClient) -> Any:
    """An editor whose capabilities were recorded."""
    async with connected(lsp_client, client_capabilities(request.param)):
        yield


TRAIN = """\
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total = 0.0
for _ in range(3):
    loss = model(torch.randn(8, 4)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    note = "😋漢é"; total += loss
"""
LEAK = 11  # the line of the finding, from 0
FIXED = TRAIN.replace("+= loss", "+= loss.detach()")


@pytest.mark.asyncio
async def test_a_leak_is_found_explained_and_fixed(client: Any) -> None:
    encoding = client.result.capabilities.position_encoding
    did_open(client, TRAIN)
    [found] = await pushed(client)
    assert (found.code, found.source, found.range.start.line) == ("graph-retained", "gradvet", LEAK)
    line = TRAIN.splitlines()[LEAK]
    assert found.range.start.character == units(line[: line.index("total")], encoding)
    assert any(related.location.range.start.line == 7 for related in found.related_information)

    told = await hover_text(client, LEAK, found.range.start.character + 1)
    assert found.message.splitlines()[0] in told
    assert summary(all_rules()["graph-retained"].page).splitlines()[0] in told
    assert "reveal_grad" not in told

    fix, *others = [a for a in await code_actions(client, found.range) if a.kind == "quickfix"]
    assert fix.is_preferred
    assert not any(other.is_preferred for other in others)
    fixed = applied(TRAIN, edits_of(fix), encoding)
    assert fixed == FIXED
    did_change(client, fixed, 2)
    assert list(await pushed(client)) == []


@pytest.mark.asyncio
async def test_ignoring_a_finding_silences_it(pulling: Any) -> None:
    did_open(pulling, TRAIN)
    [found] = (await pulled(pulling)).items
    offered = await code_actions(pulling, found.range, only=["quickfix"])
    [ignore] = [action for action in offered if action.title.startswith("Ignore here")]
    chosen = await pulling.code_action_resolve_async(ignore)
    after = applied(TRAIN, edits_of(chosen))
    assert after == TRAIN.replace("+= loss", "+= loss  # gradvet: ignore[graph-retained]")
    did_change(pulling, after, 2)
    assert list((await pulled(pulling)).items) == []


@pytest.mark.asyncio
async def test_an_expression_tells_its_state(pulling: Any) -> None:
    did_open(pulling, TRAIN)
    told = await hover_text(pulling, 9, 5)
    assert told.startswith("`loss` requires grad · not a leaf · grad_fn MeanBackward0")
    assert "(line 8)" in told or "line 8" in told


@pytest.mark.asyncio
async def test_findings_hovers_and_fixes_follow_an_edit_that_changes_no_code(client: Any) -> None:
    """Also back again, when the text is as it was."""
    encoding = client.result.capabilities.position_encoding
    did_open(client, TRAIN)
    [first] = await pushed(client)
    texts = ["# 😋 first\n\n" + TRAIN, TRAIN.replace("    loss = ", "    # 漢\n    loss = "), TRAIN]
    for version, (text, down) in enumerate(zip(texts, (2, 1, 0), strict=True), 2):
        did_change(client, text, version)
        [found] = await pushed(client)
        assert found.range.start.line == LEAK + down
        assert found.range.start.character == first.range.start.character
        assert found.message == first.message.replace(f"line {LEAK + 1}", f"line {LEAK + 1 + down}")
        told = await hover_text(client, LEAK + down, found.range.start.character + 1)
        assert f"line {8 + down}" in told
        fix = next(a for a in await code_actions(client, found.range) if a.is_preferred)
        assert applied(text, edits_of(fix), encoding) == text.replace("+= loss", "+= loss.detach()")


PAGES = sorted(RULES.glob("*.md"))


@pytest.mark.asyncio
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
async def test_the_server_says_and_does_what_the_analyzer_does_on_every_page(
    pulling: Any, path: Path
) -> None:
    for number, case in enumerate(load(path).cases):
        uri = f"file:///w/case_{number}.py"
        did_open(pulling, case.program, uri)
        sent = (await pulled(pulling, uri=uri)).items
        analysis = analyze(Source(f"/w/case_{number}.py", case.program))
        ours = [(analysis.source.row_column(d.span.start)[0] - 1, d.rule.name) for d in analysis.diagnostics]
        assert [(d.range.start.line, d.code) for d in sent] == ours, case.id
        span = Span(0, len(case.program))
        offered = [*actions(analysis, span), *rule_actions(analysis, span)]
        for asked in await code_actions(pulling, everything(case.program), only=["quickfix"], uri=uri):
            theirs = await pulling.code_action_resolve_async(asked)
            [same] = [action for action in offered if action.key == theirs.data["key"]]
            assert theirs.edit is not None, (case.id, theirs.title)
            after = applied(case.program, edits_of(theirs, uri))
            assert after == apply(case.program, same.edits(analysis, analyze)), (case.id, theirs.title)


def everything(text: str) -> lsp.Range:
    """The range of a whole text."""
    return lsp.Range(lsp.Position(0, 0), lsp.Position(text.count("\n"), 0))


@pytest.mark.asyncio
async def test_all_safe_fixes_leave_no_finding_that_had_one(pulling: Any) -> None:
    text = TRAIN + "    history = []\n    history.append(loss)\n"
    did_open(pulling, text)
    where = lsp.Range(lsp.Position(0, 0), lsp.Position(0, 0))
    [action] = await code_actions(pulling, where, only=["source.fixAll"])
    chosen = await pulling.code_action_resolve_async(action)
    after = applied(text, edits_of(chosen))
    assert "total += loss.detach()" in after
    did_change(pulling, after, 2)
    assert await code_actions(pulling, where, only=["source.fixAll"]) == ()


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "text",
    [
        "",
        "import torch\ndef f(:\n",
        "import torch\n\x00\x01\ufffd",
        "import torch\nx = '\ud83d'\n",
        "torch" + "(" * 300,
    ],
)
async def test_bad_texts_do_not_stop_it(pulling: Any, text: str) -> None:
    did_open(pulling, text)
    await pulled(pulling)
    await hover_text(pulling, 1, 1)
    did_change(pulling, TRAIN, 2)
    assert len((await pulled(pulling)).items) == 1


@pytest.mark.asyncio
async def test_a_broken_line_hides_only_itself(pulling: Any) -> None:
    did_open(pulling, TRAIN + "\ndef half(:\n")
    assert [d.code for d in (await pulled(pulling)).items] == ["graph-retained"]


@pytest.mark.asyncio
async def test_nothing_around_a_statement_comes_or_goes_while_it_is_typed(client: Any) -> None:
    text = """import torch


def train(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
    return losses
"""
    did_open(client, text)
    told = [(one.code, one.range, one.message) for one in await pushed(client)]
    assert [code for code, _, _ in told] == ["graph-retained"]
    for version, typed in enumerate(("optimizer.", "optimizer.zero_grad(", "optim (", "for _ in "), 2):
        did_change(client, text.replace("optimizer.zero_grad()", typed), version)
        assert [(one.code, one.range, one.message) for one in await pushed(client)] == told
        assert not await hover_text(client, 8, 10)


@pytest.mark.asyncio
async def test_editors_as_they_are(editor: Any) -> None:
    did_open(editor, TRAIN)
    pulls = editor.result.capabilities.diagnostic_provider is not None
    [found] = (await pulled(editor)).items if pulls else await pushed(editor)
    fix, *_ = await code_actions(editor, found.range, diagnostics=[found])
    if fix.edit is None:
        fix = await editor.code_action_resolve_async(fix)
    assert applied(TRAIN, edits_of(fix), editor.result.capabilities.position_encoding) == FIXED


@pytest.mark.asyncio
async def test_the_projects_settings_are_followed_when_they_change(client: Any, tmp_path: Path) -> None:
    settings = tmp_path / "pyproject.toml"
    settings.write_text('[tool.gradvet]\nignore = ["leak"]\n')
    uri = (tmp_path / "train 漢.py").as_uri()
    did_open(client, TRAIN, uri)
    assert list(await pushed(client, uri)) == []

    settings.write_text('[tool.gradvet]\nignore = ["cut"]\n')
    change = lsp.FileEvent(settings.as_uri(), lsp.FileChangeType.Changed)
    client.workspace_did_change_watched_files(lsp.DidChangeWatchedFilesParams([change]))
    assert [d.code for d in await pushed(client, uri)] == ["graph-retained"]

    settings.write_text('[tool.gradvet]\nexclude = ["train*"]\n')
    client.text_document_did_save(lsp.DidSaveTextDocumentParams(lsp.TextDocumentIdentifier(uri)))
    assert list(await pushed(client, uri)) == []

    settings.write_text('[tool.gradvet]\nignore = ["graph-retaind"]\n')
    client.text_document_did_save(lsp.DidSaveTextDocumentParams(lsp.TextDocumentIdentifier(uri)))
    assert [d.code for d in await pushed(client, uri)] == ["graph-retained"]
    [told] = client.messages
    assert told.type == lsp.MessageType.Warning
    assert "did you mean `graph-retained`?" in told.message


@pytest.mark.asyncio
async def test_installed_packages_are_left_alone(pulling: Any) -> None:
    uri = "file:///w/.venv/lib/python3.11/site-packages/timm/train.py"
    did_open(pulling, TRAIN, uri)
    assert list((await pulled(pulling, uri=uri)).items) == []
    assert (await hover_text(pulling, 9, 5, uri)).startswith("`loss` requires grad")


def test_it_ends_when_the_editor_is_gone() -> None:
    process = subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.communicate(timeout=20)
    assert process.returncode is not None


HINTED = """\
import torch
w = torch.ones(3, requires_grad=True)
s = "😋漢"; y = w * 2
z = y.detach()
print(s, y, z)
"""


@pytest.mark.asyncio
async def test_hints_stand_behind_names_whose_state_changes(client: Any) -> None:
    """Positions are in the units that were agreed on."""
    encoding = client.result.capabilities.position_encoding
    did_open(client, HINTED)
    everything = lsp.Range(lsp.Position(0, 0), lsp.Position(9, 0))
    found = await client.text_document_inlay_hint_async(lsp.InlayHintParams(document(), everything))
    assert [("leaf", 1, 1), ("detached", 3, 1)] == [
        (h.label, h.position.line, h.position.character) for h in found
    ]
    line = HINTED.splitlines()[2]
    params = lsp.DocumentHighlightParams(
        document(), lsp.Position(2, units(line[: line.index("y =")], encoding))
    )
    shared = await client.text_document_document_highlight_async(params)
    rows = [(each.range.start.line, each.kind) for each in shared]
    write, read = lsp.DocumentHighlightKind.Write, lsp.DocumentHighlightKind.Read
    assert [(2, write), (3, write), (3, read), (4, read), (4, read)] == rows


@session()
async def choosy(lsp_client: LanguageClient) -> Any:
    """A client whose user wants other hints."""
    options = {"inlayHints": {"leaf": False, "grad": True, "nosuch": True}}
    async with connected(lsp_client, capabilities(pull=True), options):
        yield


@pytest.mark.asyncio
async def test_each_kind_of_hint_is_the_users_choice(choosy: Any) -> None:
    did_open(choosy, HINTED.replace("w * 2", "torch.relu(w)"))
    everything = lsp.Range(lsp.Position(0, 0), lsp.Position(9, 0))
    found = await choosy.text_document_inlay_hint_async(lsp.InlayHintParams(document(), everything))
    assert ["detached"] == [hint.label for hint in found]
