"""Derivatives depend on the constants that are handed in beside what they are taken of."""

import torch
import torch.nn.functional as F
from torch import nn
x = torch.ones(3, 3)
y = torch.ones(3, 3, requires_grad=True) * 2
p = torch.ones(3, 3, requires_grad=True)
gv = torch.func.grad_and_value(lambda x, y: (x * y).sum())
gv(x, x)[0], gv(x, y)[0], gv(y, x)[0], gv(y, y)[0], gv(p, y)[0], gv(y, p)[1]
g = torch.func.grad(lambda x, y: (x + y).sum())
g(x, y), g(y, x), g(y, y)
h = torch.func.grad(lambda x, y: (x * F.softmax(y, 0)).sum())
h(x, y), h(x, x), h(y, x)
i = torch.func.grad(lambda x, y: (x * y.detach()).sum())
i(x, y), i(x, x), i(y, x)
j = torch.func.grad(lambda x, y: (x.exp() * y).sum(), argnums=(0, 1))
j(x, y)[0], j(x, x)[1], j(y, x)[0], j(y, x)[1]
k = torch.func.grad(lambda x, y=x: (x * y[0]).sum())
k(x, y=y), k(x), k(y)
l = torch.func.grad(lambda x, y: torch.stack([x, y]).sum())
l(x, y), l(y, x)
n = torch.func.grad(lambda x, y: torch.stack([x, y]).prod())
n(x, y), n(y, x)
o = torch.func.grad(lambda x, y: F.linear(x, y).sum())
o(x, y), o(y, x), o(x, p)
q = torch.func.jacrev(lambda x, y: x * y)
q(x, y), q(y, x), q(x, x)
r = torch.func.grad(lambda x, y: F.mse_loss(x, y))
r(x, y), r(y, x), r(x, x)
