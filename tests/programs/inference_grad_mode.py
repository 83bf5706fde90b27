"""Grad mode switched on in inference mode: no op is recorded, what is a custom Function is."""

import torch
from torch.autograd import Function
from torch.utils.checkpoint import checkpoint


class Clip(Function):
    """It makes something new."""

    @staticmethod
    def forward(ctx, x):
        return x.clamp(1)

    @staticmethod
    def backward(ctx, grad):
        return grad


class Same(Function):
    """It gives back what it was given."""

    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad


class Doubled(Function):
    """It changes what it was given."""

    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


leaf = torch.ones(3, requires_grad=True)
computed, constant = leaf * 2, torch.ones(3)
with torch.inference_mode():
    Clip.apply(computed)
    torch.set_grad_enabled(True)
    clipped = Clip.apply(computed)
    clipped, clipped * 2, clipped[0], clipped.detach()
    Same.apply(computed)
    Clip.apply(constant), Clip.apply(leaf), Clip.apply(leaf * 1), Clip.apply(clipped)
    Doubled.apply(clipped), clipped
    Clip.apply(computed.view(3))
    with torch.no_grad():
        Clip.apply(computed)
    Clip.apply(computed)
    checkpoint(lambda x: x * 2, computed, use_reentrant=True)
    checkpoint(lambda x: x * 2, computed, use_reentrant=False)
    with torch.inference_mode(False):
        Clip.apply(computed), computed * 2
    with torch.inference_mode():
        Clip.apply(computed)
clipped, clipped * constant
with torch.inference_mode():
    Clip.apply(computed)
    with torch.enable_grad():
        Clip.apply(computed), computed * 2
    Clip.apply(computed)


@torch.inference_mode()
def evaluated(x):
    """The switch is back as it was when it is over."""
    torch.set_grad_enabled(True)
    return Clip.apply(x), x * 2


evaluated(computed), Clip.apply(computed), computed * 2
switched = torch.rand(1) > 2
with torch.inference_mode():
    torch.set_grad_enabled(bool(switched))
    Clip.apply(computed), computed * 2


class Twice(torch.nn.Module):
    """What a full backward hook sees of it goes through a custom Function."""

    def forward(self, x):
        return x * 2, x.view(3), x


twice = Twice()
twice.register_full_backward_hook(lambda *given: None)
with torch.inference_mode():
    twice(computed)
    with torch.enable_grad():
        twice(computed), twice(leaf), twice(constant), twice(clipped)
twice(clipped)
