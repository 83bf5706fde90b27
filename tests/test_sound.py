"""What torch holds is among what the dry run says: for every expression of many programs.

A contradiction is always a fault of the engine. `python -m tools.probe.compare FILE` shows one by one what
is wrong with a program.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pages import Case, load
from tools.probe.client import Prober, probing, read_program
from tools.probe.compare import Total
from tools.probe.false_alarms import false_alarms
from tools.probe.judgement import NOT_A_TENSOR, judge
from tools.probe.observed import Observation, Program, Range, Seen, State

ROOT = Path(__file__).parent.parent
PROGRAMS = sorted((ROOT / "tests" / "programs").glob("*.py"))
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
PAGES = [load(path) for path in sorted((ROOT / "server" / "gradvet" / "rules").glob("*.md"))]
CASES = [case for page in PAGES for case in page.cases]

MOST_UNKNOWN = 0.04
MOST_MISSING = 0.04


@pytest.fixture(scope="module")
def prober() -> Iterator[Prober]:
    """One worker for all tests."""
    with probing() as prober:
        yield prober


@pytest.mark.parametrize("path", [*PROGRAMS, *EXAMPLES], ids=lambda path: path.stem)
def test_a_program_holds_what_the_dry_run_says(prober: Prober, path: Path) -> None:
    """And no finding says that torch raises where it did not."""
    program = read_program(path)
    observation = prober.probe(program)
    assert observation.failure is None, observation.failure
    judgement = judge(program, observation)
    assert judgement.tensors > 20
    assert [] == [str(found) for found in judgement.contradictions]
    assert [] == [str(alarm) for alarm in false_alarms(program, observation)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_page_holds_what_the_dry_run_says(prober: Prober, case: Case) -> None:
    """Up to the exception, where its program raises one; and after each repair."""
    for text in (case.program, *(repair.text for repair in case.repairs)):
        program = Program(_without_reveals(text), case.id, "")
        found = judge(program, prober.probe(program)).contradictions
        assert [] == [str(contradiction) for contradiction in found]


def _without_reveals(text: str) -> str:
    """The program with `reveal_grad(x)` as `(x)`; no line moves."""
    return re.sub(r"(?m)^(\s*)reveal_grad(\(.*\))\s*$", r"\1\2", text)


def test_little_is_unknown(prober: Prober) -> None:
    """Saying nothing contradicts nothing, so it has to be rare."""
    total = Total()
    for path in PROGRAMS:
        program = read_program(path)
        list(total.add(program, prober.probe(program)))
    assert total.unknown <= MOST_UNKNOWN * total.tensors, (total.unknown, total.tensors)
    assert total.missing.total() <= MOST_MISSING * total.tensors, total.missing


def test_what_a_program_imports_from_beside_it_is_followed(prober: Prober, tmp_path: Path) -> None:
    """Torch's run and the dry run see the same modules."""
    (tmp_path / "beside.py").write_text("def double(x):\n    return x * 2\n", encoding="utf-8")
    path = tmp_path / "program.py"
    path.write_text(
        "import torch\nfrom beside import double\ny = double(torch.ones(2, requires_grad=True))\ny\n",
        encoding="utf-8",
    )
    program = read_program(path)
    judgement = judge(program, prober.probe(program))
    assert (3, 0, 0) == (judgement.tensors, judgement.unknown, judgement.missing.total())
    assert () == judgement.contradictions


PROGRAM = Program(
    "import torch\nx = torch.ones(2, requires_grad=True)\ny = x * 2\nz = len(y)\n", "<small>", ""
)
PRODUCT, LENGTH = Range(3, 4, 3, 9), Range(4, 4, 4, 10)
TRUE = State(True, False, "MulBackward0", False, False, "grad")


def observed(place: Range, *states: State, others: tuple[str, ...] = ()) -> Observation:
    return Observation({place: Seen(frozenset(states), frozenset(others))})


def test_the_truth_contradicts_nothing() -> None:
    judgement = judge(PROGRAM, observed(PRODUCT, TRUE))
    assert (1, ()) == (judgement.tensors, judgement.contradictions)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("requires_grad", False),
        ("is_leaf", True),
        ("grad_fn", "AddBackward0"),
        ("grad_fn", None),
        ("is_view", True),
        ("is_inference", True),
    ],
)
def test_each_field_can_contradict(field: str, value: Any) -> None:
    """Also where the other visits of the place held what was said."""
    judgement = judge(PROGRAM, observed(PRODUCT, TRUE, TRUE._replace(**{field: value})))
    (found,) = judgement.contradictions
    assert (field, str(value), "x * 2", 3) == (found.field, found.observed, found.text, found.place.row)


def test_a_view_that_torch_cannot_answer_for_is_not_asked_for_its_history() -> None:
    broken = TRUE._replace(is_leaf=True, grad_fn=None, broken=True)
    assert () == judge(PROGRAM, observed(PRODUCT, broken)).contradictions


def test_a_tensor_that_never_was_one_contradicts() -> None:
    (found,) = judge(PROGRAM, observed(PRODUCT, others=("int",))).contradictions
    assert NOT_A_TENSOR == found.field
    assert () == judge(PROGRAM, observed(PRODUCT, TRUE, others=("int",))).contradictions


def test_a_tensor_without_a_state_is_missing_with_its_reason() -> None:
    assert {"Number": 1} == judge(PROGRAM, observed(LENGTH, TRUE)).missing
    unreached = replace(PROGRAM, text=PROGRAM.text + "if 0 > 1:\n    print(x)\n")
    assert {"not visited": 1} == judge(unreached, observed(Range(6, 10, 6, 11), TRUE)).missing


def test_a_state_that_rests_on_an_assumption_is_set_apart() -> None:
    program = Program("import torch\ndef f(model: torch.nn.Module, x):\n    return model(x)\n", "<small>", "")
    judgement = judge(
        program, observed(Range(3, 11, 3, 19), TRUE._replace(requires_grad=False, is_leaf=True))
    )
    assert (1, 1, ()) == (judgement.tensors, judgement.assumed, judgement.contradictions)


def test_an_error_on_a_line_that_ran_is_a_false_alarm() -> None:
    """A fault that torch keeps silent about cannot be disproved, and neither can one that is caught."""
    text = "import torch\nx = torch.ones(2, requires_grad=True)\n"
    raises = Program(text + "x.numpy()\n", "<small>", "")
    call = Range(3, 0, 3, 9)
    ran = observed(call, others=("ndarray",))
    came_by = Observation({**ran.seen, **observed(Range(2, 4, 2, 37), TRUE).seen})
    (alarm,) = false_alarms(raises, came_by)
    assert (3, "numpy-on-grad") == (alarm.row, alarm.rule)
    assert [] == false_alarms(raises, ran)  # where the leaf is made was not run
    assert [] == false_alarms(raises, Observation({}))
    caught = replace(raises, text=text + "try:\n    x.numpy()\nexcept RuntimeError:\n    pass\n")
    assert [] == false_alarms(caught, observed(Range(4, 4, 4, 13), others=("ndarray",)))


LEFT_EARLY = """
import torch
x = torch.ones(2)
w = torch.ones(2, requires_grad=True)
for _ in range(3):
    x.requires_grad = True
    x = x * w
    if x.sum() > 0:
        break
"""


def test_what_a_second_round_would_have_raised_is_no_false_alarm_where_none_came(prober: Prober) -> None:
    """A loop that was left in its first round disproves nothing of the others."""
    left = Program(LEFT_EARLY, "<small>", "")
    assert [] == false_alarms(left, prober.probe(left))
    target = Range(6, 4, 6, 5)
    twice = Observation({**prober.probe(left).seen, target: Seen(frozenset(), frozenset({"Tensor"}), 2)})
    assert ["requires-grad-of-nonleaf"] == [alarm.rule for alarm in false_alarms(left, twice)]


FIRST_OF_TWO = """
import torch
a, b = torch.ones(2), torch.ones(2, requires_grad=True) * 2
for _ in range(3):
    max([a, b], key=lambda x: x.sum().item()).sum().backward()
    torch.set_grad_enabled(False)
    if a.sum() > 0:
        break
"""


def test_a_lambda_in_a_place_that_runs_twice_does_not_mean_that_the_place_does(prober: Prober) -> None:
    once = Program(FIRST_OF_TWO, "<small>", "")
    assert [] == false_alarms(once, prober.probe(once))


ONE_BATCH = """
import torch
from torch.utils.data import DataLoader, TensorDataset
total = torch.ones(3)
for (rows,) in DataLoader(TensorDataset(torch.ones(3)), batch_size=3):
    total.copy_(rows)
    total.requires_grad_()
"""


def test_one_batch_disproves_nothing_of_those_after_it(prober: Prober) -> None:
    """The dry run takes a loader to have several: what the second one would raise is not false where there is one."""
    one = Program(ONE_BATCH, "<small>", "")
    assert [] == false_alarms(one, prober.probe(one))
    several = replace(
        one, text=ONE_BATCH.replace("DataLoader(TensorDataset(torch.ones(3)), batch_size=3)", "[(total,)]")
    )
    assert [] == false_alarms(several, prober.probe(several))
    ran = Observation(
        {**prober.probe(one).seen, Range(6, 4, 6, 9): Seen(frozenset(), frozenset({"Tensor"}), 2)}
    )
    assert ["inplace-on-leaf"] == [alarm.rule for alarm in false_alarms(one, ran)]


def test_that_a_gradient_is_zero_cannot_be_disproved(prober: Prober) -> None:
    text = """
import torch
w = torch.ones(2, requires_grad=True)
optimizer = torch.optim.SGD([w], lr=0.1)
loss = w.sign().sum()
loss.backward()
optimizer.step()
"""
    program = Program(text, "<small>", "")
    assert [] == false_alarms(program, prober.probe(program))
