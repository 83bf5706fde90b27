"""Inference tensors: which of them count their versions, and what that allows."""

import torch
from torch import nn

with torch.inference_mode():
    blind = torch.ones(3)
    asking = torch.rand(3, requires_grad=True)
    normal = torch.zeros(3)
    inside = blind.detach()


def detached_outside() -> None:
    """What is detached outside of the mode has a counter of its own, and may be changed."""
    blind.detach().mul_(2)
    blind.data.add_(1)
    asking.detach_()
    asking, inside


def given_other_data() -> None:
    """With the data comes whether it is an inference tensor; the counter stays."""
    plain = torch.ones(3)
    plain.data = torch.zeros(3)
    with torch.inference_mode():
        plain.data = torch.ones(3)
    plain.mul_(2)
    plain.detach().mul_(2)
    plain, plain[:], plain.data
    layer = torch.nn.Linear(3, 3)
    with torch.inference_mode():
        torch.nn.utils.vector_to_parameters(torch.zeros(12), layer.parameters())
    layer.weight, layer.bias


if __name__ == "__main__":
    detached_outside()
    given_other_data()


class Clamped(nn.Module):
    """It ran when `limited` was an ordinary tensor, and nobody calls it afterwards."""

    def forward(self, x):
        return limited.clamp_(-1, 1) + x


limited = torch.ones(3) * nn.Linear(3, 3).bias
with torch.no_grad():
    Clamped()(torch.ones(3))
with torch.inference_mode():
    limited = limited * 2


class Given(nn.Module):
    """It gets such a tensor from another method, and only ran without grad."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 3)

    def before(self):
        return limited

    def forward(self):
        return self.inner(self.before())


with torch.no_grad():
    Given()()


def changed_in_place() -> None:
    """What has only to do with one need not be recorded, also where it requires grad for other data that it had."""
    for number in range(2):
        plain, other = torch.ones(3, 3) * nn.Linear(3, 3).bias, torch.ones(3, 3) * nn.Linear(3, 3).bias
        with torch.inference_mode():
            plain.data = other.data = torch.ones(3, 3)
        plain.t_(), plain, other.exp_().mul_(2), other


changed_in_place()
