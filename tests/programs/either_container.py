"""Containers of which one is chosen, slices that are set and deleted, and what a Function never asks for again."""

import torch
w = torch.ones(3, requires_grad=True)
c = w.sum().item() > 100
a, b = [w], [w]
(a if c else b).append(w.detach())
a[-1]
b[-1]
(a if c else b)[0] = w.detach()
a[0]
b[0]
d, e = {'k': w}, {'k': w}
f = d if c else e
f['k'] = w.detach()
d['k']
e['k']
f.update(k=w * 2)
d['k']
e['k']
x = [w] * 3
x[1:3] = [w.detach(), w * 2]
x[1]
x[0]
len(x)
del x[1:]
x[0]
y = [w, w.detach(), w * 2]
i = int(w.sum().item())
del y[i - 3]
y[0]
y[:] = [w.detach()]
y[0]
del y[:]
len(y)
z = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())
del z[0]
z(w)
q = dict.fromkeys('ab', w)


class Careless(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(-1, 1)

    @staticmethod
    def backward(ctx, grad):
        return grad


changed = w * 2
clamped = Careless.apply(changed)
changed.mul_(2)
clamped.sum().backward()


class Bag(dict):
    def __getattr__(self, name):
        return self[name]

    def __setattr__(self, name, value):
        self[name] = value


bag = Bag(a=w)
bag.a
bag.b = w.detach()
bag.b

# Autograd does not see an op all of whose tensors were made in inference mode.
with torch.inference_mode():
    made = torch.ones(3)
    parameter = torch.nn.Parameter(torch.ones(3))
made * parameter
parameter.exp()

# What one path knows by its key is among the rest that another one has.
some = [x for x in [torch.ones(3)] if x.sum() < 100]
found = {k: x * 2 for k, x in {**dict(zip("ab", some)), "b": made}.items()}
while w.sum() > 100:
    found.update(b=w[:])
found["b"]
