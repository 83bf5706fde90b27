"""Layers that normalise or are parametrised, with and without what they may leave out."""

import torch, torch.nn as nn
from torch.nn.utils import parametrizations, parametrize, weight_norm, spectral_norm
bn = nn.BatchNorm2d(3)
x = torch.randn(2, 3, 4, 4)
bn(x)
bn.running_mean
bn.running_var
bn.num_batches_tracked
bn.eval()
bn(x)
bn.train()
nn.BatchNorm1d(3, affine=False)(torch.randn(4, 3))
nn.BatchNorm1d(3, affine=False)(torch.randn(4, 3, requires_grad=True))
nn.BatchNorm1d(3, track_running_stats=False).running_mean
nn.InstanceNorm2d(3)(x)
nn.InstanceNorm2d(3, affine=True)(x)
nn.GroupNorm(1, 3)(x)
nn.LayerNorm(4, elementwise_affine=False)(x)
nn.RMSNorm(4)(x)
emb = nn.Embedding(5, 3, max_norm=1.0)
with torch.no_grad():
    emb(torch.arange(3))
emb.weight
try:
    emb(torch.arange(3))
except RuntimeError:
    pass
se = nn.Embedding(5, 3, sparse=True)
se(torch.arange(3)).sum().backward()
se.weight.grad
se.weight.grad.is_sparse
nn.EmbeddingBag(5, 3, mode='sum')(torch.arange(4).view(2, 2))
w = parametrizations.weight_norm(nn.Linear(3, 3))
w.weight
w(torch.ones(3))
w.parametrizations.weight.original0
sn = parametrizations.spectral_norm(nn.Linear(3, 3))
sn(torch.ones(3))
sn.weight
ow = weight_norm(nn.Linear(3, 3))
ow.weight_g
ow.weight
ow(torch.ones(3))
ow.weight
os = spectral_norm(nn.Linear(3, 3))
os(torch.ones(3))
os.weight_orig
os.weight
class Sym(nn.Module):
    def forward(self, X):
        return X.triu() + X.triu(1).transpose(-1, -2)
lin = nn.Linear(3, 3)
parametrize.register_parametrization(lin, 'weight', Sym())
lin.weight
lin(torch.ones(3))
parametrize.remove_parametrizations(lin, 'weight')
lin.weight
lazy = nn.LazyLinear(2)
lazy(torch.ones(3))
lazy.weight
lc = nn.LazyConv2d(2, 1)
lc(x)
lc.bias
orth = parametrizations.orthogonal(nn.Linear(3, 3))
orth.weight
mha = nn.MultiheadAttention(8, 2, batch_first=True)
seq = torch.randn(2, 5, 8)
attended, weights = mha(seq, seq, seq, need_weights=False)
attended
weights
mha(seq, seq, seq)[1]

# Complex numbers, numbers for tensors, and what is told of indices.
z = torch.randn(3, dtype=torch.cfloat, requires_grad=True)
z.conj()
z.conj().T.abs()
z.real
z.resolve_conj()
x.conj()
z.unsqueeze(0).mH
t = torch.ones(3, requires_grad=True)
t.fmod(2)
t.remainder(2)
t.float_power(2)
torch.xlogy(t, 2.0)
torch.rsub(t, 2.0)
nn.MaxPool2d(2, return_indices=True)(nn.Conv2d(3, 3, 1)(x))[1]
