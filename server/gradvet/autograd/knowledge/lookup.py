"""What torch's functions, modules and distributions do to autograd, as measured: read from the data files."""

import json
import pkgutil
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from gradvet.autograd.knowledge.ops import Answer, Op, Output, Saved

__all__ = [
    "Answer",
    "Distribution",
    "Knowledge",
    "Module",
    "Op",
    "Output",
    "Record",
    "Saved",
    "load",
    "renamed",
]

Record = Mapping[str, Any]
SELF, MAYBE, EVERY = "self", "?", "*"


class Module(NamedTuple):
    """What calling an instance of an `nn` class does, in training and in eval mode.

    In `grad_from`, `saves_in` and `mutates` of its two ops the module's own tensors are called
    `parameters` and `buffers`.
    """

    name: str
    init: tuple[str, ...]  # parameters of the constructor
    weights: Answer  # it owns parameters, unless `option` says otherwise
    option: str  # the argument of the constructor that gives or takes the parameters: `affine`
    train: Op
    eval: Op


class Distribution(NamedTuple):
    """What requires grad among the results of a distribution whose parameters do."""

    name: str
    init: tuple[str, ...]
    has_rsample: bool
    results: Mapping[str, str]  # sample, rsample, log_prob, mean, … -> grad, no grad; what raises is absent
    without: Mapping[str, tuple[str, ...]]  # result -> the parameters that carry no gradient to it
    again: Mapping[
        str, tuple[str, ...]
    ]  # result -> the parameters for whose gradients alone it saves nothing
    computes: frozenset[
        str
    ]  # the parameters that it computes with when it is made, and does not keep as they are
    views: Mapping[str, Answer]  # those results that are, or may be, views in autograd's sense
    sample_dtype: str
    kept: frozenset[str]  # the parameters that are attributes as they were given, or expanded
    lazy: frozenset[str]  # attributes that are computed in grad mode when they are first asked for, and kept
    same: Mapping[
        str, str
    ]  # attribute -> the parameter or attribute that it is; "parameter.attribute" inside one


class Knowledge:
    """Looks up names; records are built one at a time when they are asked for."""

    def __init__(self, data: Mapping[str, Mapping[str, Any]]) -> None:
        self._data = data
        self._ops: dict[str, Op | None] = {}
        self._modules: dict[str, Module | None] = {}

    def names(self, section: str = "functions") -> tuple[str, ...]:
        """Every name of a section: functions, modules, distributions or conversions."""
        return tuple(self._data[section])

    def function(self, qualified: str) -> Op | None:
        """A function or method by its full name: `torch.topk`, `torch.Tensor.add_`."""
        if qualified not in self._ops:
            record = self._record(qualified)
            self._ops[qualified] = None if record is None else _op(qualified, record)
        return self._ops[qualified]

    def method(self, name: str) -> Op | None:
        """A method or property of a tensor by its bare name: `add_`, `T`."""
        return self.function(f"torch.Tensor.{name}")

    def module(self, qualified: str) -> Module | None:
        """An `nn` class: `torch.nn.Linear`."""
        if qualified not in self._modules:
            self._modules[qualified] = self._module(qualified)
        return self._modules[qualified]

    def _module(self, qualified: str) -> Module | None:
        record = self._data["modules"].get(qualified)
        if record is None:
            return None
        record = self._data["modules"][record["alias_of"]] if "alias_of" in record else record
        return Module(
            qualified,
            tuple(record.get("init", ())),
            record.get("weights", "never"),
            record.get("option", ""),
            _op(qualified, record["train"]),
            _op(
                qualified,
                {k: v for k, v in (record["train"] | record.get("eval", {})).items() if v is not None},
            ),
        )

    def distribution(self, qualified: str) -> Distribution | None:
        """A distribution: `torch.distributions.Normal`."""
        record = self._data["distributions"].get(qualified)
        if record is None:
            return None
        return Distribution(
            qualified,
            tuple(record.get("init", ())),
            record.get("has_rsample", False),
            dict.fromkeys(record["grad"], "grad") | dict.fromkeys(record["no_grad"], "no grad"),
            {result: tuple(names) for result, names in record.get("without", {}).items()},
            {result: tuple(names) for result, names in record.get("again", {}).items()},
            frozenset(record.get("computes", ())),
            _answers(record.get("views", ())),
            record.get("sample_dtype", "float"),
            frozenset(record.get("kept", ())),
            frozenset(record.get("lazy", ())),
            record.get("same", {}),
        )

    @cached_property
    def keeping_nothing(self) -> frozenset[str]:
        """The names of those nodes that keep nothing for backward, at least in some ops."""
        records = [
            one
            for record in self._data["functions"].values()
            for one in (record, *record.get("forms", {}).values())
        ]
        fine = [one for one in records if one.get("twice", "raises" if "saves" in one else "fine") == "fine"]
        return frozenset(fn for one in fine for out in one.get("out", ()) for fn in out.get("fn", ()))

    def conversion(self, expression: str) -> Record | None:
        """A way out of autograd written with `t`: `t.numpy()`, `np.asarray(t)`."""
        found: Record | None = self._data["conversions"].get(expression)
        return found

    def _record(self, qualified: str) -> Record | None:
        functions = self._data["functions"]
        record: Record | None = functions.get(qualified)
        if record is not None and "alias_of" in record:
            record = renamed(functions[record["alias_of"]], qualified)
        return record


@lru_cache(maxsize=1)
def load() -> Knowledge:
    """The checked-in knowledge: what was measured, and the few entries written by hand."""
    data = _read("torch_ops.json")
    for section, entries in _read("by_hand.json").items():
        data[section].update(entries)
    return Knowledge(data)


def _read(name: str) -> dict[str, Any]:
    # `importlib.resources` would take longer to import than all of this takes.
    found: dict[str, Any] = json.loads(pkgutil.get_data(__package__ or "", f"data/{name}") or b"{}")
    return found


def renamed(record: Record, target: str) -> Record:
    """A function's record as that of the method `target`: the first parameter is called `self`."""
    params = list(record.get("params", ()))
    if not target.startswith("torch.Tensor.") or not params or params[0] == SELF:
        return record
    return _with_self(record, params[0])


def _with_self(record: Record, first: str) -> Record:
    def name(old: str) -> str:
        bare = old.rstrip(MAYBE)
        return SELF + old[len(bare) :] if bare == first else old

    def names(old: Any) -> Any:
        return old if isinstance(old, str) else sorted(map(name, old))

    made = dict(record)
    if "params" in made:
        made["params"] = [name(p) for p in made["params"]]
    for key in ("grad_from", "mutates", "no_backward"):
        if key in made:
            made[key] = names(made[key])
    for key in ("raises_on_grad", "when"):
        if key in made:
            made[key] = {name(p): value for p, value in made[key].items()}
    if "saves" in made:
        made["saves"] = {
            side: {name(o) if side == "in" else o: names(needs) for o, needs in saved.items()}
            for side, saved in made["saves"].items()
        }
    if "out" in made:
        made["out"] = [o | {"of": names(o["of"])} if "of" in o else o for o in made["out"]]
    if "forms" in made:
        made["forms"] = {form: _with_self(value, first) for form, value in made["forms"].items()}
    return made


def _op(name: str, record: Record, params: tuple[str, ...] = ()) -> Op:
    params = tuple(record.get("params", params))
    first = params[0].lstrip("*").split("|")[:1] if params else []
    outs = record.get("out", ())
    default = first if any(o.get("grad") != "never" for o in outs) else ()
    grad_from = _answers(record.get("grad_from", default))
    saves = record.get("saves", {})
    return Op(
        name=name,
        params=params,
        ret=record.get("ret", "tensor"),
        fields=tuple(record.get("fields", ())),
        out=tuple(_output(i, o, tuple(first)) for i, o in enumerate(outs)),
        grad_from=grad_from,
        mutates=_answers(record.get("mutates", ())),
        raises_on_grad=record.get("raises_on_grad", {}),
        leaf_ok=record.get("leaf_ok", False),
        needs_grad=record.get("needs_grad", False),
        no_backward=_answers(record.get("no_backward", ())),
        saves_in=_saved(saves.get("in", {}), grad_from),
        saves_out=_saved(saves.get("out", {}), grad_from),
        saves_hidden=record.get("saves_hidden", "never"),
        twice=record.get("twice", "raises" if saves else "fine"),
        flat=record.get("flat", False),
        no_grad_inside=record.get("no_grad_inside", False),
        property=record.get("property", False),
        forms={form: _op(name, value, params) for form, value in record.get("forms", {}).items()},
        when=record.get("when", {}),
    )


def _output(index: int, record: Record, first: tuple[str, ...]) -> Output:
    same: Answer = record.get("same", "never")
    view: Answer = record.get("view", "never")
    implied: Answer = (
        "always" if "always" in (same, view) else "maybe" if "maybe" in (same, view) else "never"
    )
    share: Answer = record.get("share", implied)
    return Output(
        at=record.get("at", str(index)),
        grad=record.get("grad", "always"),
        share=share,
        view=view,
        inner=record.get("inner", "never"),
        same=same,
        of=() if share == "never" else tuple(record.get("of", first)),
        leaf=record.get("leaf", "never"),
        dtype=record.get("dtype", "same"),
        fn=tuple(record.get("fn", ())),
        zero=record.get("zero", False),
        many=record.get("many", False),
    )


def _answers(names: Any) -> Mapping[str, Answer]:
    return {n.rstrip(MAYBE): "maybe" if n.endswith(MAYBE) else "always" for n in names}


def _saved(side: Mapping[str, Any], grad_from: Mapping[str, Answer]) -> tuple[Saved, ...]:
    return tuple(
        Saved(
            operand.rstrip(MAYBE),
            "maybe" if operand.endswith(MAYBE) else "always",
            frozenset(grad_from if needs == EVERY else needs),
        )
        for operand, needs in side.items()
    )
