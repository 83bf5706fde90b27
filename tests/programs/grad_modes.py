"""Grad modes: as blocks, decorators, calls, nested, left and entered again."""
import torch
from torch import nn

w = torch.ones(2, requires_grad=True)
net = nn.Sequential(nn.Linear(2, 2), nn.Tanh())


@torch.no_grad()
def quiet(x):
    return x * w


@torch.enable_grad()
def loud(x):
    return x * w


@torch.inference_mode()
def serve(x):
    return net(x)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(2, 2)

    @torch.no_grad()
    def predict(self, x):
        return self(x)

    def forward(self, x):
        return self.inner(x)


x = torch.ones(1, 2)
quiet(x)
loud(x)
served = serve(x)
served
model = Model()
model.predict(x)
model(x)
with torch.no_grad():
    a = w * 2
    with torch.enable_grad():
        b = w * 2
    c = loud(x)
    leaf = torch.ones(2, requires_grad=True)
    w.requires_grad
    leaf * 2
a
b
c
leaf * 2
with torch.inference_mode():
    d = w * 2
    e = torch.zeros(2)
    w[0]
    with torch.no_grad():
        f = w * 3
    with torch.inference_mode(mode=False):
        g = w * 3
d
e
f
g
e.clone()
e[0]
for training in (True, False):
    with torch.set_grad_enabled(training):
        out = net(x)
    out
out
torch.set_grad_enabled(False)
h = w * 2
torch.set_grad_enabled(True)
i = w * 2
h
i


def lazily():
    yield w * 2
    with torch.no_grad():
        yield w * 3


items = list(lazily())
with torch.no_grad():
    other = [item + 1 for item in lazily()]
other[0]
try:
    with torch.no_grad():
        raise ValueError("left by an exception")
except ValueError:
    j = w * 2
j


def switched_off(x):
    torch.set_grad_enabled(False)
    return x


listed = [switched_off(row) for row in torch.ones(3)]  # nothing switches it on again when a comprehension ends
k = w * 2
torch.set_grad_enabled(True)
total = sum(switched_off(row) for row in torch.ones(3))
total, w * 2
torch.set_grad_enabled(True)
later = (switched_off(row) for row in torch.ones(3))
w * 2
listed = list(later)
w * 2
torch.set_grad_enabled(True)
