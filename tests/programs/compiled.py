"""Compiled functions and modules, partials and decorators around them."""

import functools

import torch
import torch.nn.functional as F
from torch import nn


@torch.compile(backend="eager")
def gelu_mlp(x, w1, w2):
    h = F.gelu(x @ w1)
    return h @ w2


@functools.partial(torch.compile, backend="eager", dynamic=False)
def norm_loss(pred, target):
    return (pred - target).square().mean()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.norm = nn.InstanceNorm2d(4, affine=True)
        self.plain = nn.InstanceNorm2d(4)
        self.group = nn.GroupNorm(2, 4)
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        x = self.norm(self.conv(x))
        x = self.plain(F.relu(x))
        x = self.group(x).mean((2, 3))
        return self.fc(x)


w1 = torch.randn(4, 8, requires_grad=True)
w2 = nn.Parameter(torch.randn(8, 2))
out = gelu_mlp(torch.randn(3, 4), w1, w2)
loss = norm_loss(out, torch.zeros(3, 2))
loss.backward()
print(w1.grad.shape, w2.grad.shape)
net = torch.compile(Net(), backend="eager")
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(2):
    y = net(torch.randn(2, 1, 6, 6))
    l = F.cross_entropy(y, torch.tensor([0, 1]))
    opt.zero_grad(set_to_none=True)
    l.backward()
    opt.step()
print(l.item(), net.norm.weight.requires_grad)


def timed(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        result = fn(*args, **kwargs)
        wrapper.calls += 1
        return result

    wrapper.calls = 0
    return wrapper


def freeze(scale):
    def deco(fn):
        @functools.wraps(fn)
        def inner(*args, **kwargs):
            with torch.no_grad():
                return fn(*args, **kwargs) * scale

        return inner

    return deco


@timed
def predict(m, x):
    return m(x).softmax(-1)


@freeze(scale=2.0)
def frozen(m, x):
    return m(x)


p = predict(net, torch.randn(1, 1, 6, 6))
q = frozen(net, torch.randn(1, 1, 6, 6))
print(p.requires_grad, q.requires_grad, predict.calls)
loss_fn = functools.partial(F.cross_entropy, label_smoothing=0.1)
act = functools.partial(F.leaky_relu, negative_slope=0.2)
z = loss_fn(act(net(torch.randn(2, 1, 6, 6))), torch.tensor([1, 0]))
z.backward()
scripted = torch.jit.script(nn.Linear(2, 2))
print(scripted(torch.randn(1, 2)).requires_grad)
