"""The distributions section: which results require grad when the parameters do."""

import inspect
from functools import partial
from typing import Any

import torch
from torch import distributions
from torch.distributions import Distribution

from tools.measure.execute import limited
from tools.measure.fold import Record
from tools.measure.kinds import kind

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
        made = _make(recipes()[name])
        sample = made.sample()
        results: dict[str, str] = {"sample": _state(lambda: sample)}
        results["rsample"] = _state(made.rsample)
        results["log_prob"] = _state(lambda: made.log_prob(sample.detach()))
        results["cdf"] = _state(lambda: made.cdf(sample.detach()))
        for result in RESULTS:
            if hasattr(type(made), result):
                results[result] = _state(partial(getattr, made, result))
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
        return record


def _make(call: str) -> Distribution:
    torch.manual_seed(0)

    def grown(values: torch.Tensor) -> torch.Tensor:
        return values.requires_grad_().clone()

    root = torch.randn(3, 3, dtype=torch.float64)
    scope = {
        "p": grown(torch.tensor([0.2, 0.5, 0.7], dtype=torch.float64)),
        "r": grown(torch.randn(3, dtype=torch.float64)),
        "s": grown(torch.tensor([0.7, 1.0, 1.4], dtype=torch.float64)),
        "c": grown(root @ root.T + torch.eye(3, dtype=torch.float64)),
        "half": torch.tensor(0.5, dtype=torch.float64),
    }
    names = {n: getattr(distributions, n) for n in distributions.__all__}
    made: Distribution = eval(call, names | scope)  # noqa: S307
    return made


def _state(get: Any) -> str:
    """`grad`, `no_grad`, or `raises` when this distribution does not offer it."""
    try:
        found = get()
        found = found() if callable(found) else found
    except (NotImplementedError, ValueError, AttributeError, RuntimeError):
        return "raises"
    return "grad" if found.requires_grad else "no_grad"
