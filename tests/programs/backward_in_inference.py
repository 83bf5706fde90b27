"""In inference mode, a backward makes inference tensors: gradients, and what hooks and custom functions compute."""

import torch
from torch import nn
class Clip(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(-1)
    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        return grad * (x.abs() < 1)
w = torch.ones(3, requires_grad=True)
p = nn.Linear(3, 3)
y = Clip.apply(w * 1)
z = p(y)
z.register_hook(lambda g: g * 2)
w.register_hook(lambda h: h * 2)
def post(q):
    q, q.grad, q.grad * 2
w.register_post_accumulate_grad_hook(post)
p.register_full_backward_hook(lambda module, gi, go: (gi[0], go[0]) and None)
z = p(y).sum() + z.sum()
with torch.inference_mode():
    z.backward(retain_graph=True)
    w.grad, w.grad * 2
w.grad, p.weight.grad, w.grad * 2
v = torch.ones(3, requires_grad=True)
v.sum().backward()
v.grad
with torch.inference_mode():
    (v.grad * 2)
q = v.sum()
with torch.inference_mode():
    q.backward()
v.grad
with torch.inference_mode():
    g = torch.autograd.grad(z, [w, y], retain_graph=True)
g[0], g[1]
z = p(y)
z.register_hook(lambda g: g * 2)
o = torch.ones(3)
with torch.inference_mode():
    z.backward(o, retain_graph=True)
    z.backward(torch.ones(3), retain_graph=True)
    torch.autograd.backward([z], [o])
w.grad
