"""Torch's messages are known as torch words them, and what is said of them leads to the cause."""

import io
import json
import re
import sys
from pathlib import Path

import pytest

from gradvet.cli.main import main
from gradvet.errors import explain, read_pasted
from gradvet.errors.known import KNOWN
from gradvet.errors.places import FINDERS
from gradvet.rules import all_rules
from gradvet.text import Source
from torch_side import Job, Outcome, run

HEAD = """\
import copy, math, warnings
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
def g(*shape): return torch.randn(*shape, requires_grad=True)
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        return x * k
    @staticmethod
    def backward(ctx, grad):
        return grad * 2
"""

RAISED = [
    ("modified-in-place", "w = g(3)\ny = torch.sigmoid(w)\ny += 1\ny.sum().backward()"),
    ("modified-in-place", "w = g(3)\nx = torch.ones(3)\ny = w * x\nx.add_(1)\ny.sum().backward()"),
    ("backward-twice", "w = g(3)\ny = (w * w).sum()\ny.backward()\ny.backward()"),
    ("element-0", "torch.ones(3).sum().backward()"),
    ("element-0", "w = g(3)\nwith torch.no_grad():\n    y = (w * 2).sum()\ny.backward()"),
    ("float-has-no-backward", "g(3).sum().item().backward()"),
    ("float-has-no-backward", "g(3).detach().numpy().backward()"),
    ("non-scalar", "(g(3) * 2).backward()"),
    ("non-scalar", "(g(3) * 2).backward(torch.ones(1))"),
    ("numpy-on-grad", "g(3).numpy()"),
    ("numpy-on-grad", "np.exp(g(3))"),
    ("leaf-in-place", "w = g(3)\nw += 1"),
    ("leaf-in-place", "w = g(3)\nw[0] = 1"),
    ("detached-view", "w = g(3) * 2\nw.view(-1).detach_()"),
    ("view-no-grad", "w = g(3) * 1\nwith torch.no_grad():\n    v = w[:2]\nv.mul_(g(2))"),
    ("view-in-place", "for row in g(2, 2) * 1:\n    row.mul_(2)"),
    ("flag-of-nonleaf", "y = g(3) * 2\ny.requires_grad = False"),
    ("flag-of-integer", "torch.tensor([1, 2], requires_grad=True)"),
    ("flag-of-integer", "torch.tensor([1, 2]).requires_grad_()"),
    ("grad-of-constant", "torch.autograd.grad(g(3).sum(), torch.ones(3))"),
    ("grad-of-unused", "torch.autograd.grad(g(3).sum(), g(3))"),
    ("inference-saved", "with torch.inference_mode():\n    x = torch.ones(3)\n(x * g(3)).sum().backward()"),
    ("inference-saved", "with torch.inference_mode():\n    x = torch.ones(3)\nx.add_(1)"),
    ("inference-saved", "with torch.inference_mode():\n    x = torch.ones(3)\nx.requires_grad_()"),
    ("deepcopy-nonleaf", "copy.deepcopy(g(3) * 2)"),
    (
        "send-nonleaf",
        "from multiprocessing.reduction import ForkingPickler\nimport torch.multiprocessing\nForkingPickler.dumps(g(3) * 2)",
    ),
    ("out-argument", "torch.stack([g(3)], out=torch.empty(1, 3))"),
    ("optimize-nonleaf", "torch.optim.SGD([g(3) * 2], lr=0.1)"),
    ("optimize-nothing", "torch.optim.SGD([], lr=0.1)"),
    ("grad-is-none", "w = g(3)\nw.grad.zero_()"),
    ("retain-grad-of-constant", "torch.ones(3).retain_grad()"),
    ("retain-grad-of-constant", "torch.ones(3).register_hook(print)"),
    ("numpy-dtype", "torch.ones(3, dtype=torch.bfloat16).numpy()"),
    ("gradient-count", "Double.apply(g(3), 2.0).sum().backward()"),
    (
        "saves-no-tensor",
        "class S(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        ctx.save_for_backward(3)\n        return x * 1\n    @staticmethod\n    def backward(ctx, d):\n        return d\nS.apply(g(3)).sum().backward()",
    ),
    (
        "invalid-gradient",
        "class S(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        return x * 1\n    @staticmethod\n    def backward(ctx, d):\n        return d.sum()[None][[0, 0]]\nS.apply(g(3)).sum().backward()",
    ),
    (
        "once-differentiable",
        "from torch.autograd.function import once_differentiable\nclass S(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        ctx.save_for_backward(x)\n        return x * x\n    @staticmethod\n    @once_differentiable\n    def backward(ctx, d):\n        return 2 * d * ctx.saved_tensors[0]\nw = g(3)\n(d,) = torch.autograd.grad((S.apply(w) ** 2 + w ** 3).sum(), w, create_graph=True)\nd.sum().backward()",
    ),
    (
        "unscaled-twice",
        "w = g(3)\no = torch.optim.SGD([w], lr=0.1)\ns = torch.amp.GradScaler('cpu')\ns.scale(w.sum()).backward()\ns.unscale_(o)\ns.unscale_(o)",
    ),
    ("mode-uncalled", "with torch.no_grad:\n    pass"),
    ("method-uncalled", "y = g(3)\ny.sum + 1"),
    ("method-uncalled", "y = g(3)\ny.mean.backward()"),
    ("not-implemented", "x = g(3)\n(x // 2.0).sum().backward()"),
    ("vmap-data", "torch.func.vmap(lambda x: x.item())(torch.ones(3))"),
    ("vmap-data", "torch.func.vmap(lambda x: x if x > 0 else -x)(torch.ones(3))"),
    ("func-not-a-tensor", "torch.func.grad(lambda x: 1.0)(torch.ones(3))"),
    ("numpy-times-tensor", "np.ones(3) * torch.ones(3)"),
]
"""The name of the message, and a program of which torch raises it on the last line or in the backward there."""

WARNED = [
    ("grad-of-nonleaf", "y = g(3) * 2\ny.grad"),
    ("scalar-conversion", "float(g(3).sum())"),
    ("copy-construct", "torch.tensor(torch.ones(3))"),
    (
        "legacy-function",
        "class S(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        return x\nS()",
    ),
    (
        "checkpoint-no-grad",
        "from torch.utils.checkpoint import checkpoint\ncheckpoint(nn.Linear(3, 3), torch.ones(3), use_reentrant=True)",
    ),
    ("clip-nothing", "p = nn.Linear(2, 2).parameters()\nlist(p)\nnn.utils.clip_grad_norm_(p, 1.0)"),
    ("mode-on-class", "@torch.no_grad()\nclass A:\n    pass"),
    ("volatile", "torch.autograd.Variable(torch.ones(3), volatile=True)"),
    ("create-graph-cycle", "w = g(3)\n(w * w).sum().backward(create_graph=True)"),
    (
        "full-backward-hook",
        "m = nn.Linear(2, 2)\nm.register_full_backward_hook(lambda *a: None)\nm(torch.ones(2)).sum().backward()",
    ),
]

ELSEWHERE = {
    "ddp-unused": "RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one. This error indicates that your module has parameters that were not used in producing loss.",
    "out-of-memory": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 23.69 GiB",
}
"""What this machine cannot raise: the words of other builds and of several processes."""


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Outcome]:
    return run([Job(f"{name} {number}", HEAD + text) for number, (name, text) in enumerate(RAISED + WARNED)])


@pytest.mark.parametrize(
    "number", range(len(RAISED)), ids=[f"{name}-{i}" for i, (name, _) in enumerate(RAISED)]
)
def test_a_message_that_torch_raises_is_known(outcomes: dict[str, Outcome], number: int) -> None:
    name = RAISED[number][0]
    error = outcomes[f"{name} {number}"].error
    assert error is not None
    known = read_pasted(f"Traceback (most recent call last):\n{error.type}: {error.message}").known
    assert known is not None, error.message
    assert name == known.name


@pytest.mark.parametrize("number", range(len(WARNED)), ids=[name for name, _ in WARNED])
def test_a_warning_that_torch_gives_is_known(outcomes: dict[str, Outcome], number: int) -> None:
    name = WARNED[number][0]
    outcome = outcomes[f"{name} {number + len(RAISED)}"]
    assert name in {
        known.name for text in outcome.warnings if (known := read_pasted(text).known) is not None
    }, outcome


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_message_from_elsewhere_is_known(name: str) -> None:
    known = read_pasted(ELSEWHERE[name]).known
    assert known is not None
    assert name == known.name


def test_every_known_message_is_raised_here_or_quoted() -> None:
    """The table holds nothing that nobody has seen."""
    assert {known.name for known in KNOWN} == {name for name, _ in RAISED + WARNED} | set(ELSEWHERE)


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.name)
def test_an_explanation_names_rules_and_kinds_of_places_that_there_are(known: object) -> None:
    assert set(known.rules) <= set(all_rules())  # type: ignore[attr-defined]
    assert set(known.look_for) <= set(FINDERS)  # type: ignore[attr-defined]


def test_the_last_message_of_a_long_output_counts() -> None:
    """Warnings come before the error that ended the program, and a terminal breaks lines."""
    text = (
        "a.py:3: UserWarning: Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
        'Traceback (most recent call last):\n  File "/srv/train.py", line 7, in <module>\n    loss.backward()\n'
        "RuntimeError: element 0 of tensors does not\nrequire grad and does not have a grad_fn\n"
    )
    pasted = read_pasted(text)
    assert pasted.known is not None
    assert ("element-0", [7, 3]) == (pasted.known.name, [frame.row for frame in pasted.frames])


OPEN = """\
import torch

def step(encoder, decoder, residual, x):
    hidden = torch.sigmoid(encoder(x))
    logs = []
    logs.append(hidden.mean().item())
    hidden += residual
    out = decoder(hidden)
    loss = out.pow(2).mean()
    loss.backward()
    return logs
"""


def test_lines_are_guessed_where_no_rule_is_sure() -> None:
    """The message says which op saved the value; a write to what such an op made comes first."""
    message = "has been modified by an inplace operation: [torch.FloatTensor [3]], which is output 0 of Sigmoid, is at version 1"
    told = explain(
        read_pasted(f"one of the variables needed for gradient computation {message}"),
        Source("step.py", OPEN),
    )
    row, _ = Source("step.py", OPEN).row_column(told.suspects[0].span.start)
    assert 7 == row


def test_an_unknown_message_cannot_be_explained() -> None:
    with pytest.raises(ValueError, match="not known"):
        explain(read_pasted("KeyError: 'x'"), Source("a.py", ""))


def write(folder: Path, text: str) -> Path:
    path = folder / "训练.py"
    path.write_text(text, encoding="utf-8")
    return path


CUT = """\
import torch
from torch import nn

model = nn.Linear(4, 1)
with torch.no_grad():
    out = model(torch.randn(8, 4))
loss = out.mean()
loss.backward()
"""


def test_the_command_names_the_line_the_cause_and_what_is_no_fix(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, CUT)
    assert 0 == main(
        [
            "explain-error",
            str(path),
            "element 0 of tensors does not require grad and does not have a grad_fn",
        ],
        serve=lambda: None,
    )
    out = capsys.readouterr().out
    assert re.search(r"训练\.py:8:1: .*\[backward-without-graph\]", out)
    assert "cut" in out
    assert "(line 5)" in out
    assert "not a fix  loss.requires_grad = True" in out


def test_the_command_takes_a_traceback_from_the_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, CUT)
    text = f'  File "{path}", line 8, in <module>\nRuntimeError: element 0 of tensors does not require grad and does not have a grad_fn\n'
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    assert 0 == main(["explain-error", "--output-format", "json", str(path)], serve=lambda: None)
    told = json.loads(capsys.readouterr().out)
    assert ("element-0", [8]) == (told["message"], told["noticed"])
    assert [(8, "backward-without-graph")] == [(s["row"], s["code"]) for s in told["suspects"]]


def test_a_file_without_the_cause_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, "print(1)\n")
    assert 1 == main(["explain-error", "CUDA out of memory", str(path)], serve=lambda: None)
    assert "another file" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["KeyError: 1"], "not an autograd message"), ([" "], "there is no message")],
)
def test_what_cannot_be_explained_gets_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    path = write(tmp_path, CUT)
    assert 2 == main(["explain-error", str(path), *arguments], serve=lambda: None)
    assert words in capsys.readouterr().err


def test_a_message_without_a_file_gets_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == main(["explain-error", "element 0 of tensors"], serve=lambda: None)
    assert "name the Python file" in capsys.readouterr().err
