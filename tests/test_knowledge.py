"""The knowledge file says what the installed torch does, and the server can read it."""

import json
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from gradvet.autograd.knowledge.lookup import Knowledge, load, renamed

ROOT = Path(__file__).parent.parent
DATA = ROOT / "server" / "gradvet" / "autograd" / "knowledge" / "data"
FILE = json.loads((DATA / "torch_ops.json").read_text(encoding="utf-8"))
BY_HAND = json.loads((DATA / "by_hand.json").read_text(encoding="utf-8"))

ANSWERS = {"always", "maybe", "never"}
RETURNS = {"tensor", "tuple", "list", "dict", "number", "bool", "none", "ndarray", "str", "other"}
DTYPES = {"float", "int", "bool", "complex", "promote", "maybe"}
OUT = {"at", "dtype", "fn", "grad", "inner", "leaf", "many", "of", "same", "share", "view", "zero"}
OP = {
    "fields", "flat", "forms", "grad_from", "leaf_ok", "mutates", "needs_grad", "no_backward", "no_grad_inside", "out", "params",
    "property", "raises_on_grad", "ret", "saves", "saves_hidden", "twice", "when",
}  # fmt: skip
SAMPLE, SEED = 150, 20
pytestmark = pytest.mark.filterwarnings("ignore")  # torch deprecates some of what it is asked here


@pytest.fixture(scope="module")
def measure() -> ModuleType:
    """The tool that made the file; it needs torch."""
    import torch

    torch.set_num_threads(1)  # the examples are tiny
    import tools.measure.build

    return tools.measure.build


def test_a_sample_of_names_still_behaves_as_the_file_says(measure: ModuleType) -> None:
    """Drift means another torch, or a tool that changed: run `python -m tools.measure` and read the diff."""
    import torch

    assert torch.__version__.startswith(FILE["meta"]["torch"]), "the file speaks of another torch"
    drift = measure.drift(FILE, measure.sample(FILE, SAMPLE, SEED))
    assert not drift, "\n".join(drift)


def test_the_records_hold_for_calls_they_were_not_made_from(measure: ModuleType) -> None:
    """The operator database has many more samples than the few that were measured in full."""
    from tools.measure import wide

    calls, found = wide.contradictions(load(), wide.names(SAMPLE, SEED))
    assert calls > SAMPLE
    assert not found, "\n".join(found)


def test_the_file_covers_torchs_own_operator_database(measure: ModuleType) -> None:
    """The coverage in the file is the coverage of the file, and it is at least 95 %."""
    found = measure.coverage(FILE)
    assert found == FILE["meta"]["coverage"]
    measured, entries = map(int, found["op_db"].split("/"))
    assert entries > 600
    assert measured >= 0.95 * entries


def test_comparing_notices_a_changed_record(measure: ModuleType) -> None:
    """A file that calls `torch.exp` a view, and says nothing of what it saves, is found out."""
    changed = FILE["functions"]["torch.exp"] | {"out": [{"fn": ["ExpBackward0"], "view": "always"}]}
    drift = measure.drift({"functions": {"torch.exp": changed}}, ["torch.exp"])
    assert len(drift) == 1
    assert "torch.exp" in drift[0]


def test_the_file_is_written_one_record_a_line_with_sorted_keys(measure: ModuleType) -> None:
    """So that a diff of two torch versions can be read."""
    from tools.measure.table import dump

    assert (DATA / "torch_ops.json").read_text(encoding="utf-8") == dump(FILE)


@pytest.mark.parametrize("name", [*FILE["functions"], *BY_HAND["functions"]])
def test_each_function_record_is_well_formed(name: str) -> None:
    record = (FILE["functions"] | BY_HAND["functions"])[name]
    if "alias_of" in record:
        assert set(record) == {"alias_of"}
        assert "alias_of" not in FILE["functions"][record["alias_of"]]
    else:
        assert problems(record, tuple(record.get("params", ()))) == []


@pytest.mark.parametrize("name", FILE["modules"])
def test_each_module_record_is_well_formed(name: str) -> None:
    record = FILE["modules"][name]
    assert set(record) <= {"eval", "init", "option", "train", "weights"}
    assert record.get("option", record["init"][0] if record["init"] else None) in [*record["init"], None]
    assert record.get("weights", "never") in ANSWERS
    params = (*record["train"]["params"], "parameters", "buffers")
    assert problems(record["train"], params) == []
    evaluated = {k: v for k, v in (record["train"] | record.get("eval", {})).items() if v is not None}
    assert problems(evaluated, params) == []


@pytest.mark.parametrize("name", FILE["distributions"])
def test_each_distribution_record_is_well_formed(name: str) -> None:
    record = FILE["distributions"][name]
    assert set(record) <= {
        "grad",
        "has_rsample",
        "init",
        "no_grad",
        "sample_dtype",
        "views",
        "without",
        "computes",
        "kept",
        "again",
        "lazy",
        "same",
    }
    assert not set(record["grad"]) & set(record["no_grad"])
    assert set(record.get("computes", ())) | set(record.get("kept", ())) <= set(record["init"])
    assert "sample" in record["no_grad"] or name.endswith("OneHotCategoricalStraightThrough")
    assert ("rsample" in record["grad"]) is record["has_rsample"]


@pytest.mark.parametrize("expression", FILE["conversions"])
def test_each_conversion_record_is_well_formed(expression: str) -> None:
    record = FILE["conversions"][expression]
    assert "nonleaf" in record
    assert set(record) <= {"leaf", "leaf, no_grad", "nonleaf", "nonleaf, no_grad"}
    for row in record.values():
        assert set(row) <= {"fn", "leaf", "raises", "requires_grad", "same", "shares", "type", "warns"}
        assert ("raises" in row) is not bool({"type", "requires_grad"} & set(row))


def test_every_entry_written_by_hand_names_its_source() -> None:
    for section, entries in BY_HAND.items():
        assert not set(entries) & set(FILE[section]), "measured by now: take it out of the hand file"
        for name, entry in entries.items():
            assert entry["source"].endswith("."), name


def problems(record: Mapping[str, Any], params: tuple[str, ...]) -> list[str]:
    """What is wrong with the shape of an op's record."""
    found = [f"unknown key {key}" for key in set(record) - OP - {"source"}]
    if record.get("ret", "tensor").split(":")[0] not in {*RETURNS, "namedtuple"}:
        found.append(f"unknown kind of result {record['ret']}")
    for out in record.get("out", ()):
        found += [f"unknown key {key}" for key in set(out) - OUT]
        found += [
            f"{key}: {out[key]}"
            for key in ("grad", "inner", "leaf", "same", "share", "view")
            if out.get(key, "never") not in ANSWERS
        ]
        if out.get("dtype", "int") not in DTYPES:
            found.append(f"unknown dtype {out['dtype']}")
        if out.get("grad") == "never" and out.get("zero"):
            found.append("a gradient that is zero and not there")
    if record.get("twice", "fine") not in {"raises", "fine", "maybe"}:
        found.append(f"unknown word {record['twice']}")
    saves = record.get("saves", {})
    for operand in saves.get("out", {}):
        if not operand.rstrip("?").isdigit() or int(operand.rstrip("?")) >= len(record["out"]):
            found.append(f"a saved output is named by its place in `out`, not {operand}")
    words = [
        *record.get("grad_from", ()),
        *record.get("mutates", ()),
        *record.get("raises_on_grad", {}),
        *saves.get("in", {}),
    ]
    if params and any(not word.rstrip("?").isidentifier() for word in words):
        found.append(f"not parameter names: {words}")
    for name, form in record.get("forms", {}).items():
        found += [f"{name}: {problem}" for problem in problems(form, params)]
    return found


# ------------------------------------------------------------------ what the server reads


@pytest.fixture(scope="module")
def known() -> Knowledge:
    return load()


def test_a_function_is_looked_up_by_its_qualified_name(known: Knowledge) -> None:
    op = known.function("torch.topk")
    assert op is not None
    assert (op.ret, op.fields) == ("namedtuple:topk", ("values", "indices"))
    assert [out.grad for out in op.out] == ["always", "never"]
    assert op.out[1].dtype == "int"
    assert op.params[:2] == ("input", "k")
    assert [saved.operand for saved in op.saves_out] == ["1"]


def test_an_unknown_name_gives_nothing(known: Knowledge) -> None:
    assert known.function("torch.no_such_function") is None
    assert known.method("no_such_method") is None
    assert known.module("torch.nn.NoSuchModule") is None
    assert known.distribution("torch.distributions.NoSuch") is None


def test_a_method_that_shares_a_functions_record_calls_its_receiver_self(known: Knowledge) -> None:
    assert "alias_of" in FILE["functions"]["torch.Tensor.mul"]
    op = known.method("mul")
    assert op is not None
    assert op.params == ("self", "other")
    assert set(op.grad_from) == {"self", "other"}
    assert {s.operand: s.needs for s in op.saves_in} == {
        "other": frozenset({"self"}),
        "self": frozenset({"other"}),
    }


def test_renaming_leaves_a_functions_own_record_alone() -> None:
    record = FILE["functions"]["torch.mul"]
    assert renamed(record, "torch.multiply") is record
    assert renamed(record, "torch.Tensor.mul")["params"] == ["self", "other"]
    assert record["params"] == ["input", "other"]


def test_arguments_choose_the_form(known: Knowledge) -> None:
    """`max` gives a tensor, and with a dimension a pair whose second part has no gradient."""
    op = known.method("max")
    assert op is not None
    assert op.form({"self": "tensor"}).ret == "tensor"
    with_dim = op.form({"self": "tensor", "dim": "number"})
    assert with_dim.ret == "namedtuple:max"
    assert [out.grad for out in with_dim.out] == ["always", "never"]
    unique = known.function("torch.unique")
    assert unique is not None
    assert unique.form({"input": "tensor", "return_counts": "true"}).ret == "tuple"
    relu = known.function("torch.nn.functional.relu")
    assert relu is not None
    assert not relu.mutates
    assert relu.form({"input": "tensor", "inplace": "true"}).mutates == {"input": "always"}


def test_every_index_form_says_view_or_copy(known: Knowledge) -> None:
    op = known.method("__getitem__")
    assert op is not None
    views = {name for name, form in op.forms.items() if form.out[0].view == "always"}
    assert views == {"None", "ellipsis", "full_slice", "int", "slice", "tensor0d", "tuple_slice"}
    unsure = {name for name, form in op.forms.items() if form.out[0].view == "maybe"}
    assert unsure == {"index_tensor"}, "a tensor of one integer selects, any other copies"


def test_an_index_is_named_by_what_it_does_last(known: Knowledge) -> None:
    op = known.method("__getitem__")
    assert op is not None
    names = {name: form.out[0].fn for name, form in op.forms.items()}
    assert names["int"] == names["tensor0d"] == ("SelectBackward0",)
    assert names["None"] == ("UnsqueezeBackward0",)
    assert names["slice"] == names["full_slice"] == ("SliceBackward0",)
    assert names["bool"] == names["bool_mask"] == names["tensor1d"] == names["list"] == ("IndexBackward0",)
    assert set(names["tuple_slice"]) > {"SelectBackward0", "SliceBackward0"}


def test_numbers_and_dimensions_choose_the_form(known: Knowledge) -> None:
    """The node of `clamp` depends on whether its bounds are tensors, that of `sum` on whether it has a dimension."""
    for name, plain, given, chosen in (
        ("clamp", "ClampBackward0", {"min": "number"}, "ClampBackward1"),
        ("clip", "ClampBackward0", {"max": "number"}, "ClampBackward1"),
        ("clamp_min", "ClampMinBackward1", {"min": "number"}, "ClampMinBackward0"),
        ("sum", "SumBackward0", {"dim": "number"}, "SumBackward1"),
        ("mean", "MeanBackward0", {"dim": "list"}, "MeanBackward1"),
        ("prod", "ProdBackward0", {"dim": "number"}, "ProdBackward1"),
    ):
        op = known.method(name)
        assert op is not None
        assert op.form({"self": "tensor"}).out[0].fn == (plain,), name
        assert op.form({"self": "tensor"} | given).out[0].fn == (chosen,), name


@pytest.mark.parametrize(
    ("name", "exponent"), [("__pow__", "exponent"), ("pow", "exponent"), ("__ipow__", "exponent")]
)
def test_the_exponent_of_a_power_carries_gradients_when_it_is_a_tensor(
    known: Knowledge, name: str, exponent: str
) -> None:
    op = known.method(name)
    assert op is not None
    assert op.parameter(1) == exponent
    assert set(op.form({"self": "tensor", exponent: "tensor"}).grad_from) == {"self", exponent}
    assert set(op.form({"self": "tensor", exponent: "number"}).grad_from) == {"self"}


def test_an_argument_of_unknown_kind_leaves_every_form_possible(known: Knowledge) -> None:
    op = known.method("clamp")
    assert op is not None
    either = op.form({"self": "tensor", "min": "other"})
    assert set(either.out[0].fn) == {"ClampBackward0", "ClampBackward1"}
    assert either.grad_from["self"] == "always"
    assert either.grad_from["min"] == "maybe"
    assert {s.answer for s in either.saves_in if s.operand == "min"} == {"maybe"}


def test_a_view_of_something_made_inside_shares_nothing_with_an_input(known: Knowledge) -> None:
    """A linear layer flattens what has more than two dimensions, and gives a view of the product."""
    linear = known.module("torch.nn.Linear")
    assert linear is not None
    assert [(o.inner, o.view, o.share) for o in linear.train.out] == [("maybe", "never", "never")]
    assert {"AddmmBackward0", "MmBackward0", "UnsafeViewBackward0", "ViewBackward0"} <= set(
        linear.train.out[0].fn
    )
    pool = known.function("torch.nn.functional.avg_pool1d")
    assert pool is not None
    assert [(o.inner, o.view) for o in pool.out] == [("always", "never")]


def test_a_recurrent_layer_may_end_in_many_ways(known: Knowledge) -> None:
    """With and without a batch, in both layouts and directions, and with the kernels of MKL-DNN."""
    lstm = known.module("torch.nn.LSTM")
    assert lstm is not None
    assert [o.at for o in lstm.train.out] == ["0", "1.0", "1.1"]
    assert {"CatBackward0", "SqueezeBackward1", "StackBackward0", "TransposeBackward0"} <= set(
        lstm.train.out[0].fn
    )
    assert {"SqueezeBackward1", "StackBackward0"} <= set(lstm.train.out[1].fn)
    assert lstm.train.out[0].inner == "maybe"


def test_a_norm_owns_parameters_unless_an_option_says_otherwise(known: Knowledge) -> None:
    modules = [
        known.module(f"torch.nn.{name}") for name in ("BatchNorm2d", "InstanceNorm2d", "LayerNorm", "Linear")
    ]
    assert [(m.weights, m.option) for m in modules if m is not None] == [
        ("always", "affine"),
        ("never", "affine"),
        ("always", "elementwise_affine"),
        ("always", ""),
    ]


def test_a_module_changes_its_buffers_only_in_training(known: Knowledge) -> None:
    norm = known.module("torch.nn.BatchNorm1d")
    assert norm is not None
    assert norm.train.mutates == {"buffers": "always"}
    assert not norm.eval.mutates


def test_a_second_backward_is_said_to_raise_where_something_is_saved(known: Knowledge) -> None:
    ops = [known.function(f"torch.{name}") for name in ("add", "exp", "mul")]
    assert [op.twice for op in ops if op is not None] == ["fine", "raises", "raises"]
    times = known.function("torch.mul")
    assert times is not None
    assert not times.form({"input": "tensor", "other": "number"}).saves_in
    assert times.form({"input": "tensor", "other": "number"}).twice == "raises"


def test_a_module_tells_training_from_eval(known: Knowledge) -> None:
    dropout = known.module("torch.nn.Dropout")
    assert dropout is not None
    assert dropout.train.out[0].same == "never"
    assert dropout.eval.out[0].same == "always"
    assert dropout.eval.twice == "fine"
    assert dropout.init[:2] == ("p", "inplace")


def test_a_module_tells_its_parameters_from_its_input(known: Knowledge) -> None:
    """The input of a linear layer is saved for the weight's gradient, the weight for the input's."""
    linear = known.module("torch.nn.Linear")
    assert linear is not None
    assert linear.weights == "always"
    assert linear.train.grad_from == {"input": "always", "parameters": "always"}
    assert {s.operand: set(s.needs) for s in linear.train.saves_in} == {
        "input": {"parameters"},
        "parameters": {"input"},
    }


def test_a_module_written_by_hand_follows_the_measured_one(known: Knowledge) -> None:
    by_hand, measured = known.module("torch.nn.SyncBatchNorm"), known.module("torch.nn.BatchNorm2d")
    assert by_hand is not None
    assert measured is not None
    assert by_hand.train.out == measured.train.out


def test_a_distribution_tells_sample_from_rsample(known: Knowledge) -> None:
    normal = known.distribution("torch.distributions.Normal")
    assert normal is not None
    assert normal.has_rsample
    assert normal.results["rsample"] == "grad"
    assert normal.results["sample"] == "no grad"
    categorical = known.distribution("torch.distributions.Categorical")
    assert categorical is not None
    assert "rsample" not in categorical.results
    assert categorical.views["sample"] == categorical.views["log_prob"] == "always"
    assert "sample" not in normal.views
    assert normal.without["mean"] == ("scale",)
    assert normal.without["entropy"] == normal.without["variance"] == ("loc",)
    assert "log_prob" not in normal.without
    assert categorical.sample_dtype == "int"


def test_a_conversion_tells_grad_mode_from_no_grad(known: Knowledge) -> None:
    row = known.conversion("t.numpy()")
    assert row is not None
    assert row["nonleaf"]["raises"].startswith(
        "RuntimeError: Can't call numpy() on Tensor that requires grad"
    )
    assert row["nonleaf, no_grad"] == {"shares": True, "type": "ndarray"}


def test_every_record_can_be_built(known: Knowledge) -> None:
    """Names are looked up lazily: none may fail when its turn comes."""
    assert all(known.function(name) is not None for name in known.names())
    assert all(known.module(name) is not None for name in known.names("modules"))
    assert all(known.distribution(name) is not None for name in known.names("distributions"))


def test_the_file_stays_small() -> None:
    """It ships with the server and is read at every start."""
    assert (DATA / "torch_ops.json").stat().st_size < 320_000
