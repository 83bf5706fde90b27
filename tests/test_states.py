"""`gradvet states` as data: what every expression held, and that torch agrees."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

import torch_side
from gradvet.analysis import states
from gradvet.autograd.facts import Expression
from gradvet.autograd.run import run
from gradvet.syntax.parse import parse
from gradvet.text import Source
from states_shell import PLACE, PROGRAMS, ROOT, STATE, Shell, shell
from tools.probe.client import probing, read_program
from tools.probe.instrument import place

__all__ = ["shell"]  # pytest finds the fixture by its name

TRUTHS = {"yes", "no", "maybe"}


# -- the shape of the data


def test_a_tensor_is_an_object_with_all_of_its_state(shell: Shell) -> None:
    """In this order, with torch's own names."""
    text = "import torch\nw = torch.ones(3, requires_grad=True)\nprint(w * 2)\n"
    assert {
        "line": 3,
        "column": 6,
        "end_line": 3,
        "end_column": 11,
        "text": "w * 2",
        "kind": "tensor",
        "requires_grad": "yes",
        "is_leaf": "no",
        "is_view": "no",
        "is_inference": "no",
        "grad_fn": ["MulBackward0"],
        "grad_mode": ["grad"],
        "storage": [2],
        "assumes": [],
    } == shell.last(text, "w * 2")
    leaf = shell.last(text, "w")
    assert (["yes", [None], [1]]) == [leaf[key] for key in ("is_leaf", "grad_fn", "storage")]
    assert PLACE + STATE == list(leaf)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_every_object_has_its_keys_and_says_where_it_stands(path: Path, shell: Shell) -> None:
    """The bytes at its place are its text; objects come in the order of the text, each place once."""
    status, out, _ = shell.run(str(path), "--output-format", "json")
    assert 0 == status
    lines = path.read_bytes().splitlines(keepends=True)
    places = []
    for about in json.loads(out):
        is_tensor, is_array = about["kind"] == "tensor", about["kind"] == "ndarray"
        assert PLACE + STATE * is_tensor + ["storage"] * is_array == list(about)
        row, start, end_row, end = where = [about[key] for key in PLACE[:4]]
        span = b"".join(lines[row - 1 : end_row])
        assert about["text"].encode() == span[start : len(span) - len(lines[end_row - 1]) + end]
        places.append(where)
        if is_tensor:
            assert {about[key] for key in STATE[:4]} <= TRUTHS
            assert set(about["grad_mode"]) <= {"grad", "no_grad", "inference"}
            assert about["grad_mode"]
            assert about["grad_fn"]
            assert about["storage"]
    assert len(places) > 20
    assert places == sorted(places)
    assert len(places) == len(set(map(tuple, places)))


def test_columns_are_bytes_of_utf_8(shell: Shell) -> None:
    """Also behind emoji and wide characters, and in files with a byte order mark or Windows line ends."""
    line = 'print("汉字🔥", 重み * 2)'
    for head, end in (("", "\n"), ("\ufeff", "\n"), ("", "\r\n")):
        text = head + end.join(["import torch", "重み = torch.ones(2, requires_grad=True)", line, ""])
        about = shell.last(text, "重み * 2")
        start = len('print("汉字🔥", '.encode())
        assert [3, start, 3, start + len("重み * 2".encode())] == [about[key] for key in PLACE[:4]]
        assert "yes" == about["requires_grad"]


def test_an_expression_of_several_lines_keeps_them(shell: Shell) -> None:
    about = shell.last("import torch\nx = (torch.ones(2)\n     + 1)\n", "torch.ones(2)\n     + 1")
    assert [2, 5, 3, 8] == [about[key] for key in PLACE[:4]]


def test_only_values_of_the_program_are_told(shell: Shell) -> None:
    """No targets, no annotations (not even quoted ones), no slices, and nothing that is never run."""
    text = (
        "import torch\n"
        "def f(x: 'torch.Tensor', y: torch.Tensor) -> torch.Tensor:\n    return x[1:] + y\n"
        "z: torch.Tensor = f(torch.ones(2), torch.ones(1))\n"
        "if False:\n    hidden = z\n"
    )
    told = [(about["line"], about["text"]) for about in shell.objects(text)]
    assert [(3, "x"), (3, "x[1:]"), (3, "x[1:] + y"), (3, "1"), (3, "y")] == [t for t in told if t[0] == 3]
    assert [] == [words for row, words in told if row in {2, 6} or words == "z"]


# -- kinds

KINDS = [
    ("torch.ones(2)", "tensor"),
    ("torch.nn.Parameter(torch.ones(2))", "tensor"),
    ("torch.nn.Linear(2, 2)", "module"),
    ("Net()", "module"),
    ("torch.nn.ModuleList([Net()])", "module"),
    ("[torch.ones(2)]", "container"),
    ("(1, 2)", "container"),
    ("{'a': 1}", "container"),
    ("range(3)", "container"),
    ("torch.ones(2).shape", "container"),
    ("Net().state_dict()", "container"),
    ("torch.ones(2).numpy()", "ndarray"),
    ("np.zeros(2)", "ndarray"),
    ("1", "number"),
    ("1.5j", "number"),
    ("True", "number"),
    ("torch.ones(1).item()", "number"),
    ("len([1])", "number"),
    ("None", "other"),
    ("'text'", "other"),
    ("lambda: 0", "other"),
    ("Plain()", "other"),
    ("Net", "other"),
    ("torch.float32", "other"),
    ("torch.optim.SGD(Net().parameters(), 0.1)", "other"),
    ("made_elsewhere()", "unknown"),
    ("elsewhere", "unknown"),
    ("Strange()", "unknown"),
    ("None if elsewhere else torch.ones(2)", "unknown"),
    ("1 if elsewhere else 'text'", "unknown"),
    ("1 if elsewhere else 2.5", "number"),
]
HEAD = """\
import numpy as np
import torch
from far_away import Base, elsewhere, made_elsewhere
class Net(torch.nn.Module): ...
class Plain: ...
class Strange(Base): ...
"""


@pytest.mark.parametrize(("expression", "kind"), KINDS)
def test_an_expression_has_a_kind(shell: Shell, expression: str, kind: str) -> None:
    """The one that it has on every path; else it is unknown."""
    assert kind == shell.last(f"{HEAD}held = {expression}\n", expression)["kind"]
    assert kind == shell.last(f"{HEAD}held = {expression}\nprint(held)\n", "held")["kind"]


def test_a_kind_has_to_hold_at_every_visit(shell: Shell) -> None:
    """One function called with this and with that."""
    text = "import torch\ndef same(x):\n    return x\nsame(torch.ones(2))\n"
    assert "tensor" == shell.last(text, "x")["kind"]
    assert "unknown" == shell.last(f"{text}same(1)\n", "x")["kind"]
    assert PLACE == list(shell.last(f"{text}same(1)\n", "x"))


def test_modules_of_the_project_are_run_too(shell: Shell) -> None:
    """What they give is known; the expressions in them are told only when they are asked for."""
    shell.write("def double(x):\n    return x * 2  # theirs\n", "doubling.py")
    text = "import torch\nfrom doubling import double\nprint(double(torch.ones(2, requires_grad=True)))\n"
    found = {about["text"]: about for about in shell.objects(text)}
    assert ["MulBackward0"] == found["double(torch.ones(2, requires_grad=True))"]["grad_fn"]
    assert "x * 2" not in found


def test_what_calls_go_too_deep_to_see_is_unknown(shell: Shell) -> None:
    """Since it may be anything down there, what it was above says nothing."""
    text = (
        "import torch\ndef power(x, n):\n    return x if n == 0 else x * power(x, n - 1)\nw = torch.ones(2)\n"
        "power(w, 9)\n"
    )
    assert "unknown" == shell.last(text, "x")["kind"]
    assert "tensor" == shell.last(text, "w")["kind"]


# -- states


def test_visits_are_joined(shell: Shell) -> None:
    """What one call requires and the other does not is `maybe`; every name and every mode is told."""
    text = """\
import torch
def half(x):
    return x / 2
w = torch.ones(2, requires_grad=True)
half(w)
with torch.no_grad():
    half(w * 2)
"""
    operand = shell.last(text, "x")
    assert ["maybe", "yes", "no", "no"] == [operand[key] for key in STATE[:4]]
    result = shell.last(text, "x / 2")
    assert ["maybe", "maybe", "no", "no"] == [result[key] for key in STATE[:4]]
    assert ["DivBackward0", None] == result["grad_fn"]
    assert ["grad", "no_grad"] == result["grad_mode"]


@pytest.mark.parametrize(
    ("manager", "modes", "states"),
    [
        ("torch.no_grad()", ["no_grad"], ["no", "yes", "no", "no"]),
        ("torch.inference_mode()", ["inference"], ["no", "yes", "no", "yes"]),
        ("torch.enable_grad()", ["grad"], ["yes", "no", "no", "no"]),
        ("torch.set_grad_enabled(elsewhere)", ["grad", "no_grad"], ["maybe", "maybe", "no", "no"]),
    ],
)
def test_the_grad_mode_is_told(shell: Shell, manager: str, modes: list[str], states: list[str]) -> None:
    """It is the one around the expression; the head of the block stands outside."""
    text = f"{HEAD}w = torch.ones(2, requires_grad=True)\nwith {manager}:\n    print(w * 2)\nprint(w)\n"
    inside = shell.last(text, "w * 2")
    assert (modes, states) == (inside["grad_mode"], [inside[key] for key in STATE[:4]])
    assert ["grad"] == shell.last(text, "w")["grad_mode"]


def test_the_forward_of_a_custom_function_never_records(shell: Shell) -> None:
    """It is run where it is applied, and not once more as one that trains."""
    text = """\
import torch
class Half(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x / 2
    @staticmethod
    def backward(ctx, grad):
        return grad / 2
Half.apply(torch.ones(2, requires_grad=True)).sum().backward()
"""
    result = shell.last(text, "x / 2")
    assert ["no", "yes", ["no_grad"]] == [result[key] for key in (*STATE[:2], "grad_mode")]


def test_a_name_that_is_not_known_is_a_star(shell: Shell) -> None:
    """With null beside it where there may be none."""
    text = "import torch\ndef f(x: torch.Tensor):\n    return x\n"
    assert ["*", None] == shell.last(text, "x")["grad_fn"]


def test_assumptions_are_named(shell: Shell) -> None:
    """A function that nobody calls here, and a module of which only the type is known."""
    text = "import torch\ndef f(model: torch.nn.Module, x: torch.Tensor):\n    return model(x * 2)\n"
    assert shell.last(text, "x * 2")["assumes"] == [
        "the caller, which is not in this file, leaves grad mode on"
    ]
    result = shell.last(text, "model(x * 2)")
    assert "it is one tensor, and not several in a tuple or a dict" in result["assumes"]
    assert len(result["assumes"]) > 1
    assert "*" in result["storage"]


# -- storage

SHARING = """\
import copy
import numpy
import torch
w = torch.ones(2, 3, requires_grad=True)
flat = w.detach().view(-1)
part = flat[:4]
array = part.numpy()
back = torch.from_numpy(array)
twice = w * 2
bare = twice.data
clone = flat.clone()
kept = [clone]
item = kept[0]
other = copy.deepcopy(w)
summed = clone.add_(1)
turned = twice.t()
"""
NAMES = ["w", "flat", "part", "array", "back", "twice", "bare", "clone", "item", "other", "summed", "turned"]


def test_names_share_a_number_where_torch_shares_storage(shell: Shell) -> None:
    """And only there."""
    said = {name: set(shell.last(f"{SHARING}{name}\n", name)["storage"]) for name in NAMES}
    pairs = [[a, b] for a, b in itertools.combinations(NAMES, 2) if said[a] & said[b]]
    assert len(pairs) > 10
    proof = f"""\
import itertools
def memory(x):
    return x.untyped_storage().data_ptr() if torch.is_tensor(x) else x.__array_interface__["data"][0]
held = {{name: memory(globals()[name]) for name in {NAMES}}}
found = [[a, b] for a, b in itertools.combinations({NAMES}, 2) if held[a] == held[b]]
assert found == {pairs}, found
"""
    outcome = torch_side.run([torch_side.Job("sharing", SHARING, proof)])["sharing"]
    assert (None, None) == (outcome.error, outcome.proof)


MAY_SHARE = """\
import numpy
import torch
from torch.distributions import MultivariateNormal, Normal
loc = torch.zeros(3, requires_grad=True)
scale = torch.ones(3)
normal = Normal(loc, scale)
mean, deviation = normal.mean, normal.stddev
cov = torch.eye(3)
kept = MultivariateNormal(loc, cov).covariance_matrix
numbers = numpy.ones(3, dtype=numpy.float32)
wrapped = torch.Tensor(numbers)
again = torch.Tensor(wrapped)
layer = torch.nn.Linear(3, 3)
state = {name: value.clone() for name, value in layer.state_dict().items()}
given = state["weight"]
layer.load_state_dict(state, assign=True)
weight = layer.weight
class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, grad):
        global back
        back = grad * 2
        return back
Twice.apply(loc).sum().backward()
gradient = loc.grad
"""
MAY_NAMES = [
    "loc", "scale", "mean", "deviation", "cov", "kept", "numbers", "wrapped", "again", "given", "weight", "back", "gradient",
]  # fmt: skip


def test_names_that_torch_lets_share_storage_may_share_it(shell: Shell) -> None:
    """What is kept, assigned, wrapped or given back is not known to lie elsewhere."""
    said = {name: shell.last(f"{MAY_SHARE}{name}\n", name).get("storage", ["*"]) for name in MAY_NAMES}
    pairs = [
        [a, b]
        for a, b in itertools.combinations(MAY_NAMES, 2)
        if set(said[a]) & set(said[b]) or "*" in said[a] + said[b]
    ]
    proof = f"""\
import itertools
def memory(x):
    return x.untyped_storage().data_ptr() if torch.is_tensor(x) else x.__array_interface__["data"][0]
held = {{name: memory(globals()[name]) for name in {MAY_NAMES}}}
found = [[a, b] for a, b in itertools.combinations({MAY_NAMES}, 2) if held[a] == held[b]]
assert len(found) > 6, found
assert not [pair for pair in found if pair not in {pairs}], found
"""
    outcome = torch_side.run([torch_side.Job("sharing", MAY_SHARE, proof)])["sharing"]
    assert (None, None) == (outcome.error, outcome.proof)


def test_what_an_older_iteration_made_is_in_the_same_group(shell: Shell) -> None:
    """The tensor of the last iteration is there after the loop."""
    text = (
        "import torch\nkept = []\nfor step in range(9):\n    new = torch.ones(2)\n    kept.append(new)\n"
        "print(kept[0])\n"
    )
    assert shell.last(text, "torch.ones(2)")["storage"] == shell.last(text, "kept[0]")["storage"]


def test_numbers_are_small_and_in_the_order_of_the_text(shell: Shell) -> None:
    found = shell.objects("import torch\na, b = torch.ones(1), torch.ones(1)\nb + a\n")
    assert [[1], [2], [2], [3], [1]] == [about["storage"] for about in found if about["kind"] == "tensor"]


# -- held against torch

HELD = ["closures", "containers", "control_flow", "grad_modes", "in_place", "views"]


def test_torch_holds_what_is_said() -> None:
    """A tensor is one at every visit, in one of the modes; null is among the names wherever there is no grad_fn."""
    checked = 0
    with probing() as prober:
        for name in HELD:
            program = read_program(ROOT / "tests" / "programs" / f"{name}.py")
            observation = prober.probe(program)
            assert observation.failure is None
            for expression in states(Source(program.path, program.text)).expressions or ():
                seen = observation.seen.get(place(expression.node))
                if seen is None or expression.state is None or expression.state.assumes:
                    continue
                checked += 1
                where = f"{name}:{expression.node.lineno}"
                assert (where, set()) == (where, set(seen.others))
                for state in seen.states:
                    assert state.grad_mode in expression.grad_mode, where
                    if state.grad_fn is None and not state.broken:
                        assert None in expression.state.grad_fn, where
    assert checked > 500


# -- a run that is watched


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_watching_changes_nothing(path: Path) -> None:
    """Events, states and bounds are those of any run, and a run that is not watched tells no expressions."""
    text = path.read_text(encoding="utf-8")
    module = parse(Source(str(path), text))
    plain, watched = run(module), run(module, watch=True)
    assert () == plain.expressions
    assert len(watched.expressions) > 20
    assert [type(event) for event in plain.events] == [type(event) for event in watched.events]
    assert [event.node for event in plain.events] == [event.node for event in watched.events]
    tree = {node for node, _ in module.parents.items() if node in plain.states}
    assert {node: plain.states[node] for node in tree} == {node: watched.states[node] for node in tree}
    assert plain.limits == watched.limits


def test_the_answer_depends_on_nothing_but_the_text() -> None:
    """Twice the same text gives twice the same, and a file without torch is no exception."""
    for text in (PROGRAMS[0].read_text(encoding="utf-8"), "x = [1]\nprint(x)\n"):
        once, again = (states(Source("x.py", text)).expressions for _ in range(2))
        assert told(once) == told(again) != []


def told(expressions: Any) -> list[tuple[Any, ...]]:
    """All but the nodes."""
    return [(e.kind, e.grad_mode, e.storage, e.state, e.reason) for e in expressions]


def test_expressions_are_plain_values() -> None:
    """They can be compared, and nobody can change them."""
    (found,) = states(Source("x.py", "print\n")).expressions or ()
    assert isinstance(found, Expression)
    with pytest.raises(AttributeError):
        found.kind = "tensor"  # type: ignore[misc]
