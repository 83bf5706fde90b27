"""What a distribution has of its parameters: some are the very tensors, some are computed once, and some each time."""

import torch
from torch import nn
from torch.distributions import (
    Bernoulli,
    Beta,
    Categorical,
    Distribution,
    Gamma,
    Independent,
    Multinomial,
    MultivariateNormal,
    Normal,
    Poisson,
)

weight = nn.Parameter(torch.full((3,), 0.5))
trained, plain = weight * 1, torch.ones(3)
alone, alike, wide = Normal(weight, 1.0), Normal(plain, weight), Normal(weight, torch.ones(2, 3))
given, chosen = Categorical(logits=weight), Categorical(probs=weight)
coin, likely = Bernoulli(logits=weight), Bernoulli(probs=trained)
tilted = MultivariateNormal(weight, torch.eye(3) + trained.detach() * 0 + torch.eye(3) * weight)
several = Independent(Normal(trained, 1.0), 1)
blind = Independent(Normal(plain, 1.0), 1)


def look() -> None:
    alone.mean, alone.loc, alone.mode, alone.stddev, alone.scale, alone.variance
    alike.mean, alike.loc, alike.stddev, alike.scale, alike.variance
    wide.mean, wide.loc, wide.stddev, wide.scale, wide.variance
    given.logits, given.probs, given.mode, given.mean
    chosen.logits, chosen.probs, chosen.mode
    coin.logits, coin.probs, coin.mean, coin.mode, coin.variance
    likely.logits, likely.probs, likely.mean, likely.variance
    tilted.mean, tilted.loc, tilted.covariance_matrix, tilted.scale_tril, tilted.precision_matrix
    several.mean, several.stddev, several.variance, several.base_dist.loc, several.base_dist.mean
    blind.mean, blind.base_dist.scale, blind.variance
    Poisson(weight).mean, Gamma(weight, 1.0).mean, Gamma(weight, plain).rate, Beta(weight, plain).concentration1
    Multinomial(5, probs=weight).probs


def first_asked_for_without_grad(distribution: Distribution) -> None:
    """What is computed once is computed in grad mode."""
    with torch.no_grad():
        distribution.probs, distribution.mean
        logits = distribution.logits
    logits, logits * 2, distribution.logits, distribution.probs


with torch.no_grad():
    look()
look()
first_asked_for_without_grad(Bernoulli(probs=weight))
first_asked_for_without_grad(Categorical(logits=trained))
plain.requires_grad_()
alike.mean, blind.mean
