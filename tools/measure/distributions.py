"""The distributions section: which results require grad when the parameters do."""

import ast
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import distributions
from torch.distributions import Distribution
from torch.distributions.utils import lazy_property

from tools.measure.execute import attempt, limited
from tools.measure.fold import Record, answer, listed
from tools.measure.kinds import kind

SHAPES: tuple[tuple[int, ...], ...] = ((3,), (), (2, 3))  # of the parameters
RESULTS = ("mean", "variance", "stddev", "mode", "entropy", "perplexity", "enumerate_support")
# Constructors written with: p in (0, 1), real r, positive s, covariance c. A class not listed is left out.
RECIPES = """
Bernoulli(probs=p) | Beta(s, s) | Binomial(5, probs=p) | Categorical(logits=r) | Cauchy(r, s) | Chi2(s)
ContinuousBernoulli(p) | Dirichlet(s) | Exponential(s) | FisherSnedecor(s, s) | Gamma(s, s)
GeneralizedPareto(r, s, p) | Geometric(p) | Gumbel(r, s) | HalfCauchy(s) | HalfNormal(s)
Independent(Normal(r, s), 1) | InverseGamma(s, s) | Kumaraswamy(s, s) | LKJCholesky(3, s[0]) | Laplace(r, s)
LogNormal(r, s) | LogisticNormal(r, s) | LowRankMultivariateNormal(r, r[:, None], s)
MixtureSameFamily(Categorical(logits=r), Normal(r, s)) | Multinomial(5, logits=r)
MultivariateNormal(r, c) | NegativeBinomial(s, logits=r) | Normal(r, s) | OneHotCategorical(logits=r)
OneHotCategoricalStraightThrough(logits=r) | Pareto(s, s) | Poisson(s) | RelaxedBernoulli(half, logits=r)
RelaxedOneHotCategorical(half, logits=r) | StudentT(s, r, s) | Uniform(r, r + s) | VonMises(r, s)
TransformedDistribution(Normal(r, s), [ExpTransform()]) | Weibull(s, s) | Wishart(half + 4, c)
"""
_INSTEAD = (("logits=r", "probs=p"), ("probs=p", "logits=r"))
"""What may be written in a recipe instead of what stands there."""


def recipes() -> dict[str, str]:
    """The constructor call of each class."""
    calls = (call.strip() for line in RECIPES.strip().splitlines() for call in line.split("|"))
    return {f"torch.distributions.{call.partition('(')[0]}": call for call in calls}


def public() -> list[str]:
    """Every public distribution that can be sampled."""
    found = []
    for name in distributions.__all__:
        cls = getattr(distributions, name)
        if (
            inspect.isclass(cls)
            and issubclass(cls, Distribution)
            and cls not in (Distribution, distributions.ExponentialFamily)
        ):
            found.append(f"torch.distributions.{name}")
    return sorted(found)


def measure(name: str) -> Record:
    """The record of one distribution, all of whose float parameters require grad."""
    with limited():
        made = _make(recipes()[name], SHAPES[0])
        sample = made.sample()
        results = {result: _state(get) for result, get in _results(made).items()}
        cls = getattr(distributions, name.rpartition(".")[2])
        init = [
            p
            for p in inspect.signature(cls.__init__).parameters
            if p not in ("self", "validate_args", "kwargs")
        ]
        record: Record = {"init": init, "has_rsample": bool(made.has_rsample)}
        for state in ("grad", "no_grad"):  # what it does not offer is in neither
            record[state] = sorted(result for result, found in results.items() if found == state)
        if kind(sample) != "float":
            record["sample_dtype"] = kind(sample)
        extras = {
            "without": _without(recipes()[name], init, record["grad"]),
            "again": _again(recipes()[name], init, record["grad"]),
            "computes": _computes(recipes()[name], init, record["grad"]),
            "views": _views(recipes()[name]),
            **_attributes(recipes()[name], init),
        }
        return record | {key: found for key, found in extras.items() if found}


def _results(made: Distribution) -> dict[str, Callable[[], Any]]:
    """How to get each result."""
    sample = made.sample().detach()
    found: dict[str, Callable[[], Any]] = {
        "sample": made.sample,
        "rsample": made.rsample,
        "log_prob": lambda: made.log_prob(sample),
        "cdf": lambda: made.cdf(sample),
    }
    offered = (result for result in RESULTS if hasattr(type(made), result))
    return found | {result: partial(_read, made, result) for result in offered}


def _read(made: Distribution, result: str) -> Any:
    found = getattr(made, result)
    return found() if callable(found) else found


def _views(call: str) -> list[str]:
    """The results that are views, with a question mark those that are at times, over parameters of several shapes."""
    met: dict[str, list[bool]] = {}
    for shape in SHAPES:
        made = attempt(partial(_make, call, shape))
        if isinstance(made, Exception):
            continue
        several: list[tuple[str, Callable[[], Any]]] = [
            ("sample", partial(made.sample, (2,))),
            ("rsample", partial(made.rsample, (2,))),
        ]
        several += [(name, partial(getattr, made, name)) for name in dir(type(made)) if _is_lazy(made, name)]
        for result, get in (*_results(made).items(), *several):
            found = attempt(get)
            if isinstance(found, torch.Tensor):
                met.setdefault(result, []).append(found._is_view())
    return listed({result: answer(values) for result, values in met.items()})


def _without(call: str, init: list[str], results: list[str]) -> Record:
    """The parameters that carry no gradient to a result, though they do to others."""
    tree = _parsed(call)
    names = [*init[: len(tree.args)], *(str(k.arg) for k in tree.keywords)]
    carried: dict[str, set[str]] = {}
    for at, name in enumerate(names):
        made = attempt(partial(_make, call, SHAPES[0], at))
        for result, get in _results(made).items() if not isinstance(made, Exception) else ():
            if result in results and _state(get) == "grad":
                carried.setdefault(result, set()).add(name)
    every = set().union(*carried.values())
    return {result: sorted(every - reached) for result, reached in carried.items() if reached != every}


def _again(call: str, init: list[str], results: list[str]) -> Record:
    """The parameters for whose gradients alone a result saves nothing: a second backward goes through it."""
    tree = _parsed(call)
    names = [*init[: len(tree.args)], *(str(k.arg) for k in tree.keywords)]
    found: dict[str, set[str]] = {}
    for at, name in enumerate(names):
        for result in results:
            made = attempt(
                partial(_make, call, SHAPES[0], at)
            )  # anew: a backward frees what it was made with
            get = None if isinstance(made, Exception) else _results(made)[result]
            if get is not None and _state(get) == "grad" and _runs_twice(get().sum()):
                found.setdefault(result, set()).add(name)
    return {result: sorted(names) for result, names in sorted(found.items())}


def _runs_twice(root: torch.Tensor) -> bool:
    return not any(isinstance(attempt(root.backward), Exception) for _ in range(2))


def _attributes(call: str, init: list[str]) -> Record:
    """What the attributes are: `kept` what was given, where shapes agree, or computed from it at once; `lazy` made once.

    These are computed in grad mode, whatever the mode is when one is first asked for. Some are the `same` as another
    of these, or as an attribute of a distribution that was given.
    """
    kept, lazy, same = set[str](), set[str](), list[set[tuple[str, str]]]()
    for one in _spellings(call, init):
        args, named = _arguments(one, SHAPES[0])
        found = attempt(partial(_built, one, args, named))
        if not isinstance(found, Distribution):
            continue
        given = dict(zip(init, args, strict=False)) | named
        lazy |= {name for name in dir(type(found)) if name[0] != "_" and _is_lazy(found, name)}
        held = _held(found)
        kept |= {name for name, value in given.items() if held.get(name) is value or _is_made(found, name)}
        places = {name: held[name] for name in (*init, *sorted(lazy)) if name in held} | given
        inside = {p: _held(inner) for p, inner in given.items() if isinstance(inner, Distribution)}
        found_again = set()
        for name in held.keys() - kept - lazy:
            parts = {f"{p}.{name}": inner[name] for p, inner in inside.items() if name in inner}
            same_as = [place for place, other in (parts | places).items() if other is held[name]]
            found_again |= {(name, place) for place in same_as[:1]}
        same.append(found_again)
    record = {"kept": sorted(kept), "lazy": sorted(lazy), "same": dict(sorted(set.intersection(*same)))}
    return {key: found for key, found in record.items() if found}


def _is_lazy(made: Distribution, name: str) -> bool:
    return isinstance(inspect.getattr_static(type(made), name), lazy_property)


def _is_made(made: Distribution, name: str) -> bool:
    """Whether an attribute is a tensor that was computed when the distribution was made."""
    found = vars(made).get(name)
    return isinstance(found, torch.Tensor) and not found._is_view()


def _held(made: Distribution) -> dict[str, Any]:
    """The attributes that are tensors or distributions."""
    found = {name: attempt(partial(getattr, made, name)) for name in dir(made) if name[0] != "_"}
    return {name: value for name, value in found.items() if isinstance(value, torch.Tensor | Distribution)}


def _spellings(call: str, init: list[str]) -> list[str]:
    """A recipe, and what may be written instead."""
    return [call, *(call.replace(a, b) for a, b in _INSTEAD if a in call and b.partition("=")[0] in init)]


def _computes(call: str, init: list[str], results: list[str]) -> list[str]:
    """The parameters that a distribution computes with when it is made: made without grad mode, it leads to none."""
    found = set()
    for one in _spellings(call, init):
        tree = _parsed(one)
        names = [*init[: len(tree.args)], *(str(k.arg) for k in tree.keywords)]
        for at, name in enumerate(names):
            usual, blind = (attempt(partial(_make, one, SHAPES[0], at, grad=grad)) for grad in (True, False))
            if isinstance(usual, Exception) or isinstance(blind, Exception):
                continue
            if _leads(usual, results) and not _leads(blind, results):
                found.add(name)
    return sorted(found)


def _leads(made: Distribution, results: list[str]) -> bool:
    return any(_state(get) == "grad" for result, get in _results(made).items() if result in results)


def _parsed(call: str) -> ast.Call:
    match ast.parse(call, mode="eval").body:
        case ast.Call() as tree:
            return tree
    raise ValueError(f"not a call: {call}")


def _make(call: str, shape: tuple[int, ...], only: int | None = None, *, grad: bool = True) -> Distribution:
    """Build a distribution whose parameters require grad, or only the one at a place; without grad mode if asked."""
    args, named = _arguments(call, shape, only)
    with torch.set_grad_enabled(grad):
        return _built(call, args, named)


def _arguments(
    call: str, shape: tuple[int, ...], only: int | None = None
) -> tuple[list[Any], dict[str, Any]]:
    tree = _parsed(call)
    given = [*tree.args, *(k.value for k in tree.keywords)]
    values = [_value(node, shape, trained=only in (None, i)) for i, node in enumerate(given)]
    count = len(tree.args)
    return values[:count], {str(k.arg): value for k, value in zip(tree.keywords, values[count:], strict=True)}


def _built(call: str, args: list[Any], named: dict[str, Any]) -> Distribution:
    made: Distribution = getattr(distributions, ast.unparse(_parsed(call).func))(*args, **named)
    return made


def _value(node: ast.expr, shape: tuple[int, ...], *, trained: bool) -> Any:
    torch.manual_seed(0)

    def grown(values: torch.Tensor) -> torch.Tensor:
        return values.requires_grad_().clone() if trained else values

    def shaped(values: torch.Tensor) -> torch.Tensor:
        return grown((values.expand(shape) if shape else values[0]).clone())

    root = torch.randn(3, 3, dtype=torch.float64)
    scope = {
        "p": shaped(torch.tensor([0.2, 0.5, 0.7], dtype=torch.float64)),
        "r": shaped(torch.randn(3, dtype=torch.float64)),
        "s": shaped(torch.tensor([0.7, 1.0, 1.4], dtype=torch.float64)),
        "c": grown(root @ root.T + torch.eye(3, dtype=torch.float64)),
        "half": torch.tensor(0.5, dtype=torch.float64),
    }
    names = {n: getattr(distributions, n) for n in distributions.__all__}
    return eval(ast.unparse(node), names | scope)  # noqa: S307


def _state(get: Callable[[], Any]) -> str:
    """`grad`, `no_grad`, or `raises` when this distribution does not offer it."""
    try:
        return "grad" if get().requires_grad else "no_grad"
    except (NotImplementedError, ValueError, AttributeError, RuntimeError):
        return "raises"
