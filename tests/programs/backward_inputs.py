"""`backward` to some tensors only, and what a second one still finds."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Normal


class Silent(torch.autograd.Function):
    """Keeps its input, and never asks for it."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(-1, 1)

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


def the_way_to_an_input() -> None:
    """Only the way to the inputs and what made them is freed, and only they get a gradient."""
    made = nn.Linear(3, 3)(torch.ones(3)).masked_fill(torch.ones(3) > 2, 0.0)
    later = F.dropout(made)
    later.sum().backward(inputs=later)
    made.sum().backward(inputs=[made])
    later.grad * 1, made.grad * 1
    for row in torch.ones(3, 3, requires_grad=True).exp():
        row.sum().backward(inputs=row)
    kept = torch.ones(3, requires_grad=True).exp()
    kept.exp().sum().backward(inputs=kept.sin())
    kept.sum().backward()

    # Of what torch computes in several steps, a backward comes by the last, and that may have kept nothing.
    scored = Normal(3, 1.0).log_prob(torch.ones(3, requires_grad=True))
    alike = F.cosine_similarity(torch.ones(3, 3, requires_grad=True), torch.ones(3, 3))
    for _ in range(2):
        scored.sum().backward(inputs=scored)
        alike.sum().backward(inputs=alike)
    scored.grad * 1, alike.grad * 1

    # One of two is asked for: the other is come by, and gets nothing.
    source = torch.ones(3, requires_grad=True).exp()
    last = source
    for _ in range(2):
        if source.dim() > 2:
            break
        last = last + 3
    last.sum().backward(inputs=[last])
    source.grad is None, last.grad * 1

    first, second = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    torch.autograd.backward((first * second).sum(), inputs=[first])
    first.grad, second.grad


def several_roots() -> None:
    """One pass, also where the roots share a graph."""
    shared = torch.ones(3, requires_grad=True).exp()
    torch.autograd.backward([shared.sum(), shared.prod()])


def nothing_to_free() -> None:
    """What is kept only for gradients that nobody wants is not kept; what is not asked for may be gone."""
    source, index = torch.ones(3, 3), torch.arange(3)
    target = nn.Linear(3, 3).bias.repeat(3, 1).index_add_(0, index, source)
    biased = F.linear(source, source, torch.ones(3, requires_grad=True)).sign()
    custom = Silent.apply(torch.ones(3, requires_grad=True))
    for _ in range(2):
        F.mse_loss(target, source).backward()
        F.mse_loss(biased, source).backward()
        F.mse_loss(custom, torch.zeros(3)).backward()


def perhaps() -> None:
    """A branch that is not taken leaves no gradient."""
    weight = torch.ones(3, requires_grad=True)
    if weight.sum() > 100:
        weight.sum().backward()
    weight.grad


if __name__ == "__main__":
    the_way_to_an_input()
    several_roots()
    nothing_to_free()
    perhaps()
again = torch.ones(3, requires_grad=True) * 2
for _ in torch.ones(3):
    again.exp_()
    again.scatter_(0, again.argsort(), 1.0)
again.sum().backward(inputs=again)  # what made it is not gone through
again
