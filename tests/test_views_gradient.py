"""What people are told of the way of a gradient: hovers on calls that control it, its path, lenses, marks."""

import pytest

from gradvet.analysis import Analysis, analyze
from gradvet.text import Source, apply
from gradvet.views import gradient_path, highlighted, hover, lenses, marks
from gradvet.views.ignore import ignore_file_edit

NET = """\
import torch
from torch import nn, no_grad as quiet

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 8)
        self.fc2 = nn.Linear(8, 1)

    def forward(self, x):
        h = torch.relu(self.fc1(x))
        k = h.detach()
        self.last = h
        return self.fc2(h) + k.sum()

net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x in [torch.randn(3, 4)] * 3:
    '😋漢'; loss = net(x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
w = torch.ones(3, requires_grad=True)
"""


def told(text: str, word: str, *, ahead: int = 1) -> str:
    """The hover on a word of a program, without links."""
    found = hover(analyze(Source("/w/a.py", text)), text.index(word) + ahead)
    return "" if found is None else found.markdown


USES = [
    ("h.detach()", 3, "the result no longer leads back to `net.fc1.weight`, `net.fc1.bias`"),
    ("h.detach()", 3, "Memory: the graph of `h` lives on"),
    ("loss.backward", 6, "adds the gradient of `loss` to the `.grad` of `net.fc1.weight`"),
    ("opt.step", 5, "changes the parameters of `opt` in place"),
    ("opt.zero_grad", 5, "the parameters of `opt` have no `.grad`"),
    ("requires_grad=True", 0, "a new leaf"),
]


@pytest.mark.parametrize(("word", "ahead", "words"), USES)
def test_a_hover_tells_what_the_call_does_here(word: str, ahead: int, words: str) -> None:
    assert words in told(NET, word, ahead=ahead)


MORE = [
    ("y = (w * 2).detach()", ".detach", "no longer leads back to"),
    ("y = torch.ones(3).detach()", ".detach", "carries no graph, so this gives the same value"),
    ("y = (w * 2).data", ".data", "Writes through it are not seen by autograd"),
    ("y = w.clone()", ".clone", "It is part of the graph"),
    ("y = torch.ones(2).clone()", ".clone", "a copy of `torch.ones(2)` in storage of its own."),
    ("y = w.sum().item()", ".item", "a Python number"),
    ("y = (w * 2).numpy()", ".numpy", "torch raises: `w * 2` requires grad"),
    ("y = w.detach().numpy()", ".numpy", "an array over the same storage"),
    ("y = w.sum(); y.backward(retain_graph=True)", "retain_graph", "stays in memory after this backward"),
    ("y = w.sum(); y.backward(create_graph=True)", "create_graph", "a graph of their own"),
    ("w.requires_grad_(False)", ".requires_grad_", "a backward leaves `w` out"),
    ("(w * 2).requires_grad_(False)", ".requires_grad_", "torch raises"),
    ("y = w * 2; y.retain_grad()", ".retain_grad", "keeps the gradient of `y`"),
    ("w.retain_grad()", ".retain_grad", "does nothing"),
    ("y = (w * 2).grad", ".grad", "unless `retain_grad()` was called"),
    ("w.grad", ".grad", "added up for `w`"),
    ("(w * 2).is_leaf", ".is_leaf", "false: an op made it"),
    ("w.register_hook(print)", ".register_hook", "called with the gradient of `w`"),
    ("with quiet():\n    y = w * 2", "quiet():", "But for it, `w * 2` would have a graph"),
    ("with quiet():\n    y = 1 + 1", "quiet():", "from line 25, ops are not recorded."),
    ("with torch.inference_mode():\n    y = w * 2\n    z = 3", "inference_mode", "from line 25 to line 26"),
    ("torch.no_grad()", "no_grad()", "By itself, as an expression, it changes nothing."),
    ("@torch.no_grad()\ndef f():\n    return w * 2\nf()", "no_grad()", "ops are not recorded"),
    ("torch.autograd.grad(w.sum(), w)", "grad(w.sum", "leaves every `.grad` as it is"),
    ("p = nn.Parameter(torch.ones(2))", "Parameter(torch", "a leaf that requires grad"),
    (
        "y = w * 2  # gradvet: ignore[graph-retained] freed below",
        "graph-retained",
        "Hides findings of `graph-retained` on this line.",
    ),
    ("y = w * 2  # gradvet: ignore", "gradvet: ignore", "Hides every finding"),
    ("y = w * 2  # grad: keep", "grad: keep", "says that the gradient, or the graph, is wanted here"),
]


@pytest.mark.parametrize(("line", "word", "words"), MORE)
def test_a_hover_knows_the_api_by_what_it_is_used_on(line: str, word: str, words: str) -> None:
    text = NET + line + "\n"
    found = hover(analyze(Source("/w/a.py", text)), text.rindex(word) + 1)
    assert found is not None
    assert words in found.markdown


@pytest.mark.parametrize(
    "text", ["class A:\n    def detach(self): ...\nA().detach()\n", "from mine import no_grad\nno_grad()\n"]
)
def test_what_only_has_the_same_name_is_left_alone(text: str) -> None:
    assert " here: " not in told(f"import torch\n{text}", text.rsplit(maxsplit=1)[-1][-10:])


def test_reasons_are_linked_to_their_lines() -> None:
    analysis = analyze(Source("/w/a.py", NET))
    found = hover(analysis, NET.index("loss.backward"), lambda source, row: f"file://{source.path}#L{row}")
    assert found is not None
    assert "([line 19](file:///w/a.py#L19))" in found.markdown


def paths(text: str, word: str) -> list[str]:
    """The steps of the path of a value."""
    found = gradient_path(analyze(Source("/w/a.py", text)), text.index(word))
    return [] if found is None else [step.text for step in found.steps]


def test_a_path_leads_from_the_parameters_past_the_cuts_to_the_value() -> None:
    steps = paths(NET, "loss.backward")
    assert steps[0] == "`net.fc1.weight`, a leaf that asks for a gradient"
    order = [
        "`self.fc1(x)`",
        "`torch.relu(self.fc1(x))`",
        "`self.fc2(h) + k.sum()`",
        "`net(x).pow(2).mean()`",
    ]
    at = [next(n for n, step in enumerate(steps) if step.startswith(words)) for words in order]
    assert at == sorted(at)
    assert steps[-2] == "**the gradient is cut: `h.detach()` gives the value without its graph**"
    assert steps[-1] == "`loss`: requires grad · not a leaf · grad_fn MeanBackward0"


def test_a_path_that_ends_at_a_cut_tells_what_was_before_it() -> None:
    steps = paths(NET + "y = (w * 3).data\n", "y = (w")
    assert [step.split(",")[0] for step in steps] == [
        "`torch.ones(3",
        "`w * 3` records `*`",
        "**the gradient is cut in silence: `(w * 3).data` gives the storage without its graph**",
        "`y`: does not require grad · leaf · grad_fn None",
    ]


def test_there_is_no_path_of_what_is_no_tensor() -> None:
    assert paths(NET, "import torch") == []


def test_a_long_path_is_told_in_part() -> None:
    text = "import torch\ny = torch.ones(3, requires_grad=True)\n" + "y = y + 1\n" * 90 + "y.sum()\n"
    steps = paths(text, "y.sum()")
    assert len(steps) < 50
    assert any("more ops" in step for step in steps)


def test_a_lens_tells_what_a_gradient_reaches_and_what_cuts_it() -> None:
    [lens] = lenses(analyze(Source("/w/a.py", NET)))
    assert NET[lens.span.start : lens.span.end] == "def forward"
    assert lens.title == (
        "gradient reaches `net.fc1.weight`, `net.fc1.bias`, `net.fc2.weight`, `net.fc2.bias` · "
        "cut by `detach()` (line 12) · graph held by `self.last`"
    )
    assert lenses(analyze(Source("/w/a.py", "import torch\ndef f(a):\n    return a + 1\n"))) == []


def test_names_are_marked_by_what_they_hold() -> None:
    text = (
        "import torch\nw = torch.ones(3, requires_grad=True)\ny = w * 2\nz = y.detach()\nprint(y, z, '漢')\n"
    )
    found = [(text[m.span.start : m.span.end], m.mark) for m in marks(analyze(Source("a.py", text)))]
    assert set(found) == {("w", "gradLeaf"), ("y", "graph"), ("z", "detached")}


def test_the_head_of_a_grad_mode_lights_up_with_what_it_keeps_from_being_recorded() -> None:
    text = NET + "with torch.no_grad():\n    y = w * 2 + 1\n"
    found = highlighted(analyze(Source("a.py", text)), text.index("no_grad():"))
    assert [(text[span.start : span.end], head) for span, head in found] == [
        ("torch.no_grad()", True),
        ("w * 2 + 1", False),
    ]
    assert highlighted(analyze(Source("a.py", text)), 0) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 1\n", "# gradvet: ignore-file[a]\nx = 1\n"),
        ("\ufeffx = 1\r\n", "\ufeff# gradvet: ignore-file[a]\r\nx = 1\r\n"),
        (
            "#!/usr/bin/python\n# -*- coding: utf-8 -*-\nx = 1\n",
            "#!/usr/bin/python\n# -*- coding: utf-8 -*-\n# gradvet: ignore-file[a]\nx = 1\n",
        ),
        ("'''doc'''\nx = 1\n", "# gradvet: ignore-file[a]\n'''doc'''\nx = 1\n"),
        ("# gradvet: ignore-file[b]\nx = 1\n", "# gradvet: ignore-file[b, a]\nx = 1\n"),
        ("", "# gradvet: ignore-file[a]\n"),
    ],
)
def test_a_file_is_told_to_ignore_a_rule_above_its_first_statement(before: str, after: str) -> None:
    analysis: Analysis = analyze(Source("a.py", before))
    assert apply(before, [ignore_file_edit(analysis.module, "a")]) == after
