"""Custom Functions: several outputs, what is marked, views under no_grad, gradients that may be None."""

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable
class Two(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        idx = (a > b).long()
        ctx.mark_non_differentiable(idx)
        return a * b, a + b, idx
    @staticmethod
    def backward(ctx, g1, g2, gi):
        a, b = ctx.saved_tensors
        ga = gb = None
        if ctx.needs_input_grad[0]:
            ga = g1 * b + g2
        if ctx.needs_input_grad[1]:
            gb = g1 * a + g2
        return ga, gb
class Inc(Function):
    @staticmethod
    def forward(ctx, x):
        x.add_(1)
        ctx.mark_dirty(x)
        return x
    @staticmethod
    def backward(ctx, g):
        return g
class Once(Function):
    @staticmethod
    def forward(ctx, x, k=2):
        ctx.k = k
        return x * k
    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        return g * ctx.k, None
class Rev(Function):
    @staticmethod
    def forward(ctx, x, alpha):
        ctx.alpha = alpha
        return x.view_as(x)
    @staticmethod
    def backward(ctx, g):
        return g.neg() * ctx.alpha, None
class Round(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return torch.round(x)
    @staticmethod
    def backward(ctx, g):
        if g is None:
            return None
        return g
a = torch.ones(3, requires_grad=True)
b = torch.ones(3)
p, s, i = Two.apply(a, b)
p, s, i
(p.sum() + s.sum()).backward()
a.grad
b.grad
c = a * 2
d = Inc.apply(c)
c
d
e = Once.apply(a)
e2 = Once.apply(a, 3)
e.sum().backward()
r = Rev.apply(a, 0.5)
r
Rev.apply(b, 0.5)
q = Round.apply(a)
q
with torch.no_grad():
    Two.apply(a, b)
    Rev.apply(a, 1.0)
f = Two.apply
f(b, b)
class Exp(torch.nn.Module):
    def forward(self, x):
        return Round.apply(x) + Rev.apply(x, 1.)
Exp()(a)
x = torch.ones(3, requires_grad=True)
y = Once.apply(x)
g, = torch.autograd.grad(y.sum(), x, create_graph=True)
g
class Limited(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(-1, 1)
    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return g * (x.abs() < 1)
given = torch.ones(3, requires_grad=True).sort().values
limited = Limited.apply(given)
given.detach_()
limited.sum().backward()
