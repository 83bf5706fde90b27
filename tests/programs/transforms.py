"""Transforms of functions: grad, vmap, vjp, jvp, jacobians, functional_call."""

import torch
from torch import nn
from torch.func import functional_call, grad, hessian, jacrev, jvp, vjp, vmap, stack_module_state


def f(x):
    return (x ** 3).sum()


x = torch.randn(3, requires_grad=True)
g = grad(f)(x)
gg = grad(lambda v: grad(f)(v).sum())(torch.randn(3))
J = jacrev(torch.sin)(torch.randn(4))
H = hessian(f)(torch.randn(2))
out, vjp_fn = vjp(torch.sin, torch.randn(3))
(ct,) = vjp_fn(torch.ones(3))
primal, tangent = jvp(torch.sin, (torch.randn(3),), (torch.ones(3),))
batched = vmap(f)(torch.randn(5, 3))
print(g.shape, gg.shape, J.shape, H.shape, ct.shape, tangent.shape, batched.shape, out.shape, primal.shape)

model = nn.Linear(3, 2)
params = dict(model.named_parameters())
buffers = dict(model.named_buffers())


def compute_loss(params, buffers, sample, target):
    batch = sample.unsqueeze(0)
    targets = target.unsqueeze(0)
    predictions = functional_call(model, (params, buffers), (batch,))
    return nn.functional.cross_entropy(predictions, targets)


data, targets = torch.randn(6, 3), torch.randint(0, 2, (6,))
detached = {k: v.detach() for k, v in model.named_parameters()}
ft_compute_grad = grad(compute_loss)
ft_compute_sample_grad = vmap(ft_compute_grad, in_dims=(None, None, 0, 0))
per_sample = ft_compute_sample_grad(detached, buffers, data, targets)
print({k: v.shape for k, v in per_sample.items()})
y = functional_call(model, params, (data,))
loss = nn.functional.cross_entropy(y, targets)
loss.backward()
print(model.weight.grad.norm())
jac = torch.autograd.functional.jacobian(lambda t: t ** 2, torch.randn(3))
hes = torch.autograd.functional.hessian(f, torch.randn(3))
print(jac.shape, hes.shape)
a = torch.randn(3, requires_grad=True)
b = (a ** 2).sum()
(ga,) = torch.autograd.grad(b, a, create_graph=True)
hvp = torch.autograd.grad((ga * torch.randn(3)).sum(), a)[0]
print(ga.requires_grad, hvp.requires_grad)
