"""Autograd functions of one's own, with what they save and what their backward gives."""
import torch
from torch import nn
from torch.autograd import Function


class Clip(Function):
    @staticmethod
    def forward(ctx, x, limit):
        ctx.save_for_backward(x)
        ctx.limit = limit
        return x.clamp(-limit, limit)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (x.abs() < ctx.limit), None


class Reverse(Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -grad


class Two(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_non_differentiable(index := x.argmax())
        return x * 2, index

    @staticmethod
    def backward(ctx, grad, _):
        return grad * 2


class Layer(nn.Module):
    def forward(self, x):
        return Reverse.apply(x)


w = torch.tensor([0.5, 2.0], requires_grad=True)
clipped = Clip.apply(w, 1.0)
clipped
Clip.apply(torch.ones(2), 1.0)
clipped.sum().backward()
w.grad
doubled, index = Two.apply(w)
doubled
index
Layer()(w * 2)
with torch.no_grad():
    Clip.apply(w, 1.0)
reverse = Reverse.apply
reverse(w)
