"""Shallow copies: objects and containers with the same parts, tensors on the same storage."""

import copy

import torch
from torch import nn


class Box:
    def __init__(self, held: torch.Tensor) -> None:
        self.held = held


class Many(list):  # type: ignore[type-arg]
    pass


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 3)
        self.scale = torch.ones(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x) * self.scale


leaf = torch.ones(3, requires_grad=True)
made = leaf * 2
first = copy.copy(Box(torch.ones(3)))
second = copy.copy(first)


def held() -> torch.Tensor:
    return copy.copy(second).held


for _ in range(2):
    first.held = made
    held()
held(), first.held

net = Net()
other = copy.copy(net)
other.scale = made
net.scale, other.scale, net(torch.ones(3)), other(torch.ones(3))
other.inner.weight.requires_grad_(False)
net.inner.weight
layers = nn.Sequential(nn.Linear(3, 3), nn.Dropout())
quiet = copy.copy(layers)
quiet[0].weight, quiet(torch.ones(3))

copies = copy.copy(leaf), copy.copy(made), copy.copy(net.inner.bias), copy.copy(torch.ones(3, 3)[0])
copies[0], copies[0] * 2, copies[1], copies[1] * 2, copies[2], copies[3] * 2
with torch.no_grad():
    copies[1].add_(1)
made, copies[1]

many = Many([leaf, leaf])
more = copy.copy(many)
more.append(made)
more[2], many[0]

plain = torch.ones(3, 3)
rows = copy.deepcopy([plain, plain[0], plain.expand(2, 3, 3)])
rows[0], rows[1], rows[2]
row = copy.deepcopy(plain.t()[1])
row.mul_(2)
