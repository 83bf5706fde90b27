"""A checkpoint runs its function once more in backward: what that reads may have been changed since."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

outside = nn.Linear(3, 3).weight * 2
weight = nn.Linear(3, 3).weight


def scaled(x: torch.Tensor, scale: torch.Tensor = outside.clone()) -> torch.Tensor:
    y = x + outside
    return y * scale


kept = checkpoint(scaled, weight.tanh(), use_reentrant=False)
again = checkpoint(scaled, weight.tanh(), use_reentrant=True)
outside.uniform_()
kept.sum().backward(retain_graph=True)
outside = outside.detach()
again.sum().backward()
kept, again, outside, weight.grad

module = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
for _ in range(2):
    loss = checkpoint(module, torch.ones(3), use_reentrant=False).sum()
    loss.backward()
loss, module[0].weight.grad
