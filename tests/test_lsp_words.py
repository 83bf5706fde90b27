"""What a client with a Chinese locale is told, and one with another: real server, real engine."""

from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types as lsp
from pytest_lsp import LanguageClient

from lsp_client import (
    URI,
    capabilities,
    code_actions,
    connected,
    did_open,
    document,
    hover_text,
    pulled,
    run,
    session,
)

pytestmark = pytest.mark.asyncio

LEAK = """\
import torch
x = torch.ones(3, requires_grad=True)
total = 0
for step in range(3):
    loss = (x * 2).sum()
    loss.backward()
    total = total + loss
cut = total.detach() * 2
"""


@session(params=["zh-cn", "de"])
async def client(request: pytest.FixtureRequest, lsp_client: LanguageClient, tmp_path: Path) -> Any:
    """A client whose user reads Chinese, and one whose language nobody has written."""
    folders = [lsp.WorkspaceFolder(tmp_path.as_uri(), "ws")]
    chosen = {"codeLens": 3, "inlayHints": True}
    can = capabilities(pull=True, lazy=True)
    lsp_client.chinese = request.param == "zh-cn"  # type: ignore[attr-defined]
    async with connected(lsp_client, can, chosen, folders, locale=request.param):
        yield


async def test_all_that_is_shown_of_a_text(client: Any) -> None:
    """Findings with their reasons, hovers, hints and actions; code stays as it is."""
    did_open(client, LEAK)
    [found] = (await pulled(client)).items
    [action, *others] = await code_actions(client, found.range, diagnostics=[found])
    hover = await hover_text(client, 6, 14)
    everything = lsp.Range(lsp.Position(0, 0), lsp.Position(9, 0))
    hints = await client.text_document_inlay_hint_async(lsp.InlayHintParams(document(), everything))
    if client.chinese:
        assert found.message.startswith("`total` 保留了每次迭代的计算图：`loss` 累加时仍带着计算图")
        assert "原因：requires_grad=True：`loss`" not in found.message  # it stands at its place
        assert found.related_information[0].message.startswith("原因：requires_grad=True：`(x * 2).sum()`")
        assert action.title.startswith("保留值，丢掉计算图（`loss.detach()` 值不变")
        assert any(
            other.title.startswith("忽略这一处：# gradvet: ignore[graph-retained]") for other in others
        )
        assert "**错误**" in hover or "**警告**" in hover
        assert "**为什么不好？**" in hover
        assert "的 requires_grad=True · 非 leaf · grad_fn AddBackward0" in hover
        assert {"leaf", "已 detach"} <= {hint.label for hint in hints}
    else:
        assert found.message.startswith("`total` keeps the graph of every iteration: `loss` still carries")
        assert action.title.startswith("Keep the value, drop the graph (`loss.detach()` is the same value")
        assert "**Why is this bad?**" in hover
        assert {"leaf", "detached"} <= {hint.label for hint in hints}


async def test_commands_and_wrong_settings(client: Any) -> None:
    """What a command gives is Markdown and places; what pops up is said too."""
    did_open(client, LEAK)
    where = {"uri": URI, "position": {"line": 4, "character": 4}}
    path = await run(client, "gradvet.server.gradientPath", where)
    error = {"uri": URI, "text": "RuntimeError: Trying to backward through the graph a second time"}
    told = await run(client, "gradvet.server.explainError", error)
    [popped] = [message.message for message in client.messages if "codeLens" in message.message]
    if client.chinese:
        assert "loss 的梯度路径" == path["title"]
        assert "：requires_grad=True · 非 leaf" in path["steps"][-1]["text"]
        assert "**这个计算图已被一次 backward 用过并释放" in told["markdown"]
        assert "- **不是修复：**" in told["markdown"]
        assert popped == "Gradvet: `gradvet.codeLens` 应该是 true 或 false，而不是 `3`"
    else:
        assert "The gradient path of loss" == path["title"]
        assert "- **not a fix:**" in told["markdown"]
        assert popped == "Gradvet: `gradvet.codeLens` should be true or false, not `3`"


async def test_files_that_are_looked_at_in_another_process(client: Any, tmp_path: Path) -> None:
    """The process that looks at files which nobody has open says it in the same words."""
    (tmp_path / "leak.py").write_text(LEAK, encoding="utf-8")
    await run(client, "gradvet.server.checkWorkspace")
    [found] = client.diagnostics[(tmp_path / "leak.py").as_uri()]
    assert ("保留了每次迭代的计算图" in found.message) == client.chinese
    said = "工作区中 1 个文件有 1 处问题" if client.chinese else "1 finding in 1 file of the workspace"
    assert any(said in message.message for message in client.messages)
