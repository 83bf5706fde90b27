"""Modules built of modules: lists, dicts, buffers, properties, inheritance, parameters made by hand."""
import torch
from torch import nn


class Scale(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(size))
        self.register_buffer("seen", torch.zeros(size))
        self.register_parameter("shift", nn.Parameter(torch.zeros(size)))
        self.last = None

    @property
    def log_gain(self):
        return self.gain.log()

    def forward(self, x):
        self.seen += x.detach().abs().mean(0)
        self.last = x * self.gain + self.shift
        return self.last


class Block(nn.Module):
    def __init__(self, size, depth=2):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(size, size) for _ in range(depth)])
        self.heads = nn.ModuleDict({"a": nn.Linear(size, 1), "b": Scale(size)})
        self.norm = nn.LayerNorm(size)
        self.free = torch.ones(size)

    def body(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return self.norm(x) * self.free

    def forward(self, x, head="a"):
        return self.heads[head](self.body(x))


class Residual(Block):
    def body(self, x):
        return x + super().body(x)

    def __repr__(self):
        return "Residual"


torch.manual_seed(0)
block = Block(3)
block(torch.ones(2, 3))
residual = Residual(3, depth=1)
out = residual(torch.ones(2, 3), head="b")
out
residual.heads["b"].last
residual.heads["b"].seen
residual.heads["b"].log_gain
residual.layers[0].weight
sum(p.numel() for p in residual.parameters())
for name, parameter in residual.named_parameters():
    if name.startswith("layers"):
        parameter.requires_grad = False
residual.layers[0].weight
residual.layers[0](torch.ones(1, 3))
residual.requires_grad_(False)
frozen = residual(torch.ones(1, 3))
frozen
residual.heads["a"] = nn.Linear(3, 1)
thawed = residual(torch.ones(1, 3))
thawed
tied = nn.Linear(3, 3)
tied.weight = block.layers[0].weight
tied(torch.ones(1, 3)).sum().backward()
block.layers[0].weight.grad
