"""Parameters that are computed from others: parametrizations, weight_norm, spectral_norm."""

import torch
from torch import nn
from torch.nn.utils import parametrize
from torch.nn.utils.parametrizations import orthogonal, spectral_norm, weight_norm


class Symmetric(nn.Module):
    def forward(self, X):
        return X.triu() + X.triu(1).transpose(-1, -2)


class LoRAParametrization(nn.Module):
    def __init__(self, fin, fout, rank=2, alpha=1.0):
        super().__init__()
        self.A = nn.Parameter(torch.zeros(rank, fout))
        self.B = nn.Parameter(torch.randn(fin, rank))
        self.scale = alpha / rank
        self.enabled = True

    def forward(self, W):
        if self.enabled:
            return W + (self.B @ self.A).view(W.shape) * self.scale
        return W


layer = nn.Linear(4, 4)
parametrize.register_parametrization(layer, "weight", Symmetric())
A = layer.weight
assert torch.allclose(A, A.T)
loss = layer(torch.randn(2, 4)).sum()
loss.backward()
print(layer.parametrizations.weight.original.grad.norm())

wn = weight_norm(nn.Linear(4, 3))
print(wn.weight.requires_grad, wn.parametrizations.weight.original0.shape)
sn = spectral_norm(nn.Linear(4, 3))
out = sn(wn(torch.randn(2, 4)).repeat(1, 2)[:, :4])
out.mean().backward()
orth = orthogonal(nn.Linear(3, 3, bias=False))
print(orth.weight @ orth.weight.T)
old = nn.utils.weight_norm(nn.Conv1d(2, 2, 3))
y = old(torch.randn(1, 2, 8))
print(old.weight_g.requires_grad, old.weight.requires_grad, y.requires_grad)
nn.utils.remove_weight_norm(old)
w = old.weight
print(w.requires_grad)

lora = nn.Linear(4, 4)
for p in lora.parameters():
    p.requires_grad_(False)
parametrize.register_parametrization(lora, "weight", LoRAParametrization(4, 4))
opt = torch.optim.Adam([p for p in lora.parameters() if p.requires_grad], lr=1e-2)
for _ in range(2):
    opt.zero_grad()
    l = lora(torch.randn(3, 4)).pow(2).mean()
    l.backward()
    opt.step()
with parametrize.cached():
    first = lora.weight
    second = lora.weight
print(l.item(), first.requires_grad)
