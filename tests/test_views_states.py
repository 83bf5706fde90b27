"""What hovers, hints and highlights tell of states, on programs that the engine has run."""

import pytest

from gradvet.analysis import Analysis, analyze
from gradvet.text import Source, Span
from gradvet.views import KINDS, QUIET, hover, inlays, shared_places

PROGRAM = """\
import torch
from torch import nn

encoder, head = nn.Linear(4, 4), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
漢, w = "😋", torch.randn(4, requires_grad=True)
leaf = torch.randn(4, requires_grad=True)
h = torch.sigmoid(encoder(torch.randn(8, 4)))
flat = h.view(-1)
same = h
cut = h.detach()
after = cut * 2
with torch.no_grad():
    quiet = h * 2
with torch.inference_mode():
    fast = encoder(torch.randn(8, 4))
raw = leaf.data
index = h.argmax(1)
picked = h[0] if index.sum() > 3 else None
loss = head(h).mean()
"""


@pytest.fixture(scope="module")
def program() -> Analysis:
    return analyze(Source("program.py", PROGRAM))


def hints(analysis: Analysis, *kinds: str) -> dict[str, str]:
    """The label behind each name that has one."""
    text = analysis.source.text
    found = inlays(analysis, Span(0, len(text)), kinds or KINDS)
    return {text[: hint.offset].split()[-1]: hint.label for hint in found}


def test_hints_tell_where_what_autograd_holds_changes(program: Analysis) -> None:
    """Nothing is said of `same`, which is as it was, of `after`, which was cut before, and of whole numbers."""
    assert hints(program) == {
        "leaf": "leaf",
        "h": "grad",
        "flat": "alias of `h`",
        "cut": "detached",
        "quiet": "no grad",
        "fast": "inference",
        "raw": "alias of `leaf`",
    }


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_each_kind_of_hint_can_be_had_alone(program: Analysis, kind: str) -> None:
    everything, alone = hints(program), hints(program, kind)
    assert alone
    assert alone.items() < everything.items()


def test_graphs_that_begin_are_not_told_unless_asked_for(program: Analysis) -> None:
    """Every call of a model begins one."""
    assert "h" not in hints(program, *QUIET)


def test_hints_are_given_for_the_lines_that_are_asked_for(program: Analysis) -> None:
    start = PROGRAM.index("flat")
    assert ["alias of `h`"] == [hint.label for hint in inlays(program, Span(start, start + 4), KINDS)]


def test_a_hint_explains_itself(program: Analysis) -> None:
    [hint] = inlays(program, Span(PROGRAM.index("cut ="), PROGRAM.index("cut =") + 1), KINDS)
    assert hint.tooltip.startswith("`cut` does not require grad")


def at(text: str) -> int:
    return PROGRAM.index(text)


def test_names_that_share_storage_are_shown_together(program: Analysis) -> None:
    found = shared_places(program, at("flat ="))
    words = [(PROGRAM[span.start : span.end], written) for span, written in found]
    assert {"h", "flat", "same", "cut"} == {name for name, _ in words}
    assert [("h", True), ("flat", True)] == [word for word in words if word[1]][:2]
    assert not any(word == ("after", True) for word in words)


@pytest.mark.parametrize("place", ["import torch", "漢", "optimizer"])
def test_what_is_no_tensor_has_no_storage_to_show(program: Analysis, place: str) -> None:
    assert [] == shared_places(program, at(place))


HOVERS = [
    ("h.view", ["*shares storage with* `flat` (line 9), `same` (line 10), `cut` (line 11)"]),
    ("h.view", ["*saved for backward by*", "do not change it in place"]),
    ("h.view", ["*gradient reaches* `encoder.weight`, `encoder.bias`"]),
    ("cut * 2", ["*gradient reaches nothing*: cut by `detach()` (line 11)"]),
    ("h * 2", ["`h` requires grad"]),
]


@pytest.mark.parametrize(("place", "words"), HOVERS)
def test_a_hover_tells_what_depends_on_a_value(program: Analysis, place: str, words: list[str]) -> None:
    found = hover(program, at(place))
    assert found is not None
    assert all(word in found.markdown for word in words), found.markdown


def test_a_value_of_a_block_without_grad_says_what_turned_it_off() -> None:
    text = "import torch\nw = torch.ones(3, requires_grad=True)\nwith torch.no_grad():\n    y = w * 2\nprint(y)\n"
    found = hover(analyze(Source("x.py", text)), text.index("y)"))
    assert found is not None
    assert "*gradient reaches nothing*: grad mode is off (line 3)" in found.markdown
