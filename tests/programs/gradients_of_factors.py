"""The graph of a gradient leads to what the gradient was computed from, and to nothing else behind its root."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

# The gradient for one factor is the other factor.
a = torch.ones(3, requires_grad=True)
b = torch.ones(3, requires_grad=True)
left, right = a.relu(), b.exp()
(of_left,) = torch.autograd.grad((left * right).sum(), left, create_graph=True)
left[0] = 5.0  # which `relu` saved, and the gradient does not need
of_left.sum().backward()
print(a.grad, b.grad)
print(b.grad is not None, right.detach())

# Through an op that keeps its result, it comes by that op.
c = torch.ones(3, requires_grad=True)
(of_c,) = torch.autograd.grad(c.exp().sum(), c, create_graph=True)
of_c.sum().backward()
print(c.grad)

# Of a network, the weights are among the factors, and its last bias is not.
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
x = torch.randn(2, 3, requires_grad=True)
out = net(x)
(slope,) = torch.autograd.grad(out.sum(), x, create_graph=True)
penalty = (slope.norm(dim=1) - 1).pow(2).mean()
penalty.backward()
first, last = net[0], net[2]
print(first.weight.grad, last.weight.grad)
print(last.bias.grad)
print(first.bias.grad)

# The graph of the root is freed, and the gradient's own is still there.
d = torch.ones(3, requires_grad=True)
e = torch.ones(3, requires_grad=True)
product = d * e
(of_d,) = torch.autograd.grad(product.sum(), d, create_graph=True)
product.sum().backward()
of_d.sum().backward()
print(d.grad, e.grad)

# What the weights of the outputs came from is behind the gradient too.
f = torch.ones(3, requires_grad=True)
g = torch.ones(3, requires_grad=True)
(of_f,) = torch.autograd.grad(f * 2, f, grad_outputs=g * 3, create_graph=True)
of_f.sum().backward()
print(f.grad, g.grad)

# A backward that makes a graph leaves such gradients in the leaves.
h = torch.ones(3, requires_grad=True)
k = torch.ones(3, requires_grad=True)
cube = (h.pow(3) * k).sum()
cube.backward(create_graph=True, inputs=[k])
held = k.grad
k.grad = None
held.sum().backward()
print(h.grad, k.grad)

# Through a chain of steps, each of which keeps the one before.
state = torch.ones(3, requires_grad=True)
rate = torch.tensor(0.1, requires_grad=True)
for _ in range(3):
    energy = (state**3).sum()
    (push,) = torch.autograd.grad(energy, state, create_graph=True)
    state = state - rate * push
loss = F.mse_loss(state, torch.zeros(3))
loss.backward()
print(rate.grad)

# A power keeps its result for the gradient of its exponent.
base = torch.full((3,), 2.0, requires_grad=True)
exponent = torch.ones(3, requires_grad=True)
power = base**exponent
(of_base,) = torch.autograd.grad(power.sum(), base, create_graph=True)
power.sum().backward()
of_base.sum().backward()
print(exponent.grad * 1)
