"""Loading a dict of states writes buffers too, so that a view among them gets another grad_fn."""

import copy

import torch
from torch import nn


class Shifted(nn.Module):
    def __init__(self, shift: torch.Tensor) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 3)
        self.register_buffer("shift", shift)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x) + self.shift


kept = nn.Linear(3, 3).weight.prod(0).expand(3, 3)
apart = nn.Linear(3, 3).weight.prod(0).expand(3, 3)
layer = nn.Linear(3, 3)
layer.register_buffer("kept", kept)
layer.register_buffer("apart", apart, persistent=False)
kept.data = kept.detach().clone()
layer.load_state_dict(copy.deepcopy(layer.state_dict()))
kept, apart, kept.sum(), layer.kept

shift = torch.ones(3, requires_grad=True) * 2
view = shift.view(1, 3)
shifted, other = Shifted(shift), copy.deepcopy(Shifted(torch.ones(3)))
shifted.load_state_dict(other.state_dict())
shifted.shift, view, shift, shifted(torch.ones(3)), other.shift
