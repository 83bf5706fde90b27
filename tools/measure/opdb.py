"""Cases from torch's own operator database."""

import itertools
import random
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from tools.measure.copies import Case
from tools.measure.names import is_operation, is_public, resolve
from tools.measure.recipes import NUMBER, number_parameters
from tools.measure.signature import argument_names, given, kind_of, parameters

SAMPLES, MOST = 6, 10
DRAWN, GLANCED = 80, 150  # how many an entry is asked for: to choose some from, and in all
# Arguments that make a call another one.
FORMS = (
    ("inplace", "true", "inplace"),
    ("training", "false", "eval"),
    ("train", "false", "eval"),
    ("dtype", "other", "dtype"),  # but not of `to`, whose every argument is one
    ("rounding_mode", "str", "rounding"),
    ("p", "str", "named"),  # the norms that have a name: one of them keeps nothing
)
# Arguments whose presence makes a call another one, for the names that end so.
GIVEN = {"dim": frozenset({"sum", "mean", "prod", "squeeze", "squeeze_"})}
DTYPES = (torch.float64, torch.float32, torch.int64, torch.bool, torch.complex128)


def entry(op: OpInfo) -> str:
    """The name of a database entry, its variant included."""
    return f"{op.name}|{op.variant_test_name}" if op.variant_test_name else op.name


def entries() -> list[OpInfo]:
    """Every entry of the database that stands for a public name."""
    return [op for op in op_db if targets(op)]


def internal() -> list[str]:
    """The entries behind no public name."""
    return sorted(entry(op) for op in op_db if not targets(op))


def targets(op: OpInfo) -> list[str]:
    """The public names that an entry exercises: function, aliases, method, in-place forms."""
    found = []
    for base in dict.fromkeys([op.name, *(a.name for a in op.aliases)]):
        plain = "." not in base
        method = f"torch.Tensor.{base}"
        names = [base if base.startswith("torch.") else f"torch.{base}"]
        if plain and (op.method_variant is not None or resolve(f"torch.{base}") is None):
            names.append(method)
        if op.inplace_variant is not None:
            names += [f"torch.{base}_"] + ([f"{method}_"] if plain else [])
        found += [n for n in names if is_public(n) and is_operation(resolve(n))]
    return list(dict.fromkeys(found))


@cache
def index() -> dict[str, list[OpInfo]]:
    """Which entries exercise a public name."""
    found: dict[str, list[OpInfo]] = {}
    for op in entries():
        for name in targets(op):
            found.setdefault(name, []).append(op)
    return found


def cases(name: str) -> Iterator[Case]:
    """The sample calls of a public name, from every entry that exercises it."""
    yield from _cases(name, lambda op: samples(entry(op)))


def more_cases(name: str) -> Iterator[Case]:
    """The calls that the sample calls were chosen from, and further ones."""
    yield from _cases(
        name, lambda op: [s for s in offered(entry(op)) if not any(s is t for t in samples(entry(op)))]
    )


def _cases(name: str, choose: Callable[[OpInfo], Sequence[SampleInput]]) -> Iterator[Case]:
    for op in real_entries(name):
        for sample in choose(op):
            made = case_of(name, op, sample)
            if made is not None:
                yield made


def real_entries(name: str) -> list[Any]:
    """The entries of a name, without those for complex tensors only where there are others."""
    ops = index().get(name, [])
    return [op for op in ops if (dtype_of(op) or DTYPES[0]).is_complex is False] or ops


def set_seed(seed: int) -> None:
    """Seed the three generators that samples are drawn from."""
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002


@lru_cache(maxsize=64)
def offered(wanted: str) -> tuple[SampleInput, ...]:
    """The samples of an entry, the same at every run; those without elements only where there are no others."""
    op: Any = next(o for o in op_db if entry(o) == wanted)
    set_seed(zlib.crc32(wanted.encode()))
    dtype = dtype_of(op)
    if dtype is None:
        return ()
    drawn = itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=False), GLANCED)
    listed = list(drawn)
    return tuple(s for s in listed if all(t.numel() for t in _tensors((s.input, s.args, s.kwargs)))) or tuple(
        listed
    )


@lru_cache(maxsize=64)
def samples(wanted: str) -> tuple[SampleInput, ...]:
    """A few samples of an entry, spread over all it offers."""
    return tuple(_varied(list(offered(wanted)[:DRAWN])))


def _varied(samples: list[SampleInput]) -> list[SampleInput]:
    """A few samples spread over all, and those that bring two kinds of argument together for the first time.

    Otherwise a condition of a form might rest on a coincidence: `ceil_mode` that is always given with
    `return_indices`.
    """
    taken = dict(enumerate(samples)) if len(samples) <= SAMPLES else {}
    met: set[tuple[str, str]] = set()
    pairs = [_pairs(sample) for sample in samples]
    while len(taken) < min(MOST, len(samples)):
        best = max(range(len(samples)), key=lambda i: (len(pairs[i] - met), -i))
        if not pairs[best] - met:
            break
        met |= pairs[best]
        taken[best] = samples[best]
    for i in range(0, len(samples), max(1, len(samples) // SAMPLES)):
        if len(taken) < SAMPLES:
            taken[i] = samples[i]
    return [taken[i] for i in sorted(taken)]


def _pairs(sample: SampleInput) -> set[tuple[str, str]]:
    positional = {str(i): kind_of(value) for i, value in enumerate((sample.input, *sample.args))}
    kinds = positional | {key: kind_of(value) for key, value in sample.kwargs.items()}
    words = [f"{name}={kind}" for name, kind in sorted(kinds.items())]
    return set(itertools.product(words, words))


def dtype_of(op: Any) -> torch.dtype | None:
    """The dtype to measure an entry with: float where it has a gradient."""
    supported = set(op.supported_dtypes("cpu"))
    trained = set(op.supported_backward_dtypes("cpu")) if op.supports_autograd else set()
    for dtype in (*(d for d in DTYPES[:2] if d in trained), *DTYPES):
        if dtype in supported:
            return dtype
    return None


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))


def case_of(name: str, op: OpInfo, sample: SampleInput) -> Case | None:
    """The call of a public name that a sample stands for, where there is one."""
    public: Any = resolve(name)
    args, kwargs = (sample.input, *sample.args), dict(sample.kwargs)
    base = name.rpartition(".")[2]
    variant = _variant(name, op)
    if variant is not public:  # the entry may wrap it: learn the real arguments
        caught = _caught(variant, public, args, kwargs)
        if caught is None and resolve(f"torch.{op.name}") not in (None, op.op):
            return None
        args, kwargs = caught if caught is not None else (args, kwargs)
    if name.startswith("torch.Tensor.") and not isinstance(args[0], torch.Tensor):
        return None
    call: Callable[..., Any] = public if callable(public) else lambda self: getattr(self, base)
    given_kinds = given(name, args, kwargs)
    form = _form(name, given_kinds)
    promotes = any(isinstance(v, float) for v in (*args, *kwargs.values()))
    names = tuple(argument_names(name, args))
    return Case(name, call, args, kwargs, names, parameters(name), form, given_kinds, promotes)


def _form(name: str, kinds: Mapping[str, str]) -> str:
    """The form that certain arguments select, or nothing."""
    base = name.rpartition(".")[2]
    for parameter, names in GIVEN.items():
        if base in names and "masked" not in name:
            return parameter if kinds.get(parameter, "none") != "none" else ""
    if base != "to":
        for parameter, kind, form in FORMS:
            if kinds.get(parameter) == kind:
                return form
    return NUMBER if any(kinds.get(p) == NUMBER for p in number_parameters(name)) else ""


def _variant(name: str, op: OpInfo) -> Any:
    """The callable of an entry that leads to this name."""
    inplace = name.endswith("_") and not name.endswith("__")
    if name.startswith("torch.Tensor."):
        found = op.inplace_variant if inplace else op.method_variant
        return found if found is not None else op.op
    return op.inplace_variant if inplace and op.inplace_variant is not None else op.op


class _Catch(TorchFunctionMode):
    """Notes the arguments of the first call of one function."""

    def __init__(self, wanted: Any) -> None:
        super().__init__()
        self.wanted = wanted
        self.found: tuple[tuple[Any, ...], dict[str, Any]] | None = None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if self.found is None and func == self.wanted:
            self.found = args, dict(kwargs or {})
        return func(*args, **(kwargs or {}))


def _caught(
    wrapper: Callable[..., Any], wanted: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    with _Catch(wanted) as catch:
        try:
            wrapper(*args, **kwargs)
        except Exception:
            return None
    found: tuple[tuple[Any, ...], dict[str, Any]] | None = catch.found
    return found
