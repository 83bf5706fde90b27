"""Gradients of gradients, gradients of some inputs only, graphs kept and freed, hooks on tensors."""
import torch

x = torch.tensor([1.0, 2.0], requires_grad=True)
y = torch.tensor([3.0, 4.0], requires_grad=True)
z = (x ** 3 * y).sum()
(gx,) = torch.autograd.grad(z, x, create_graph=True)
gx
gxx = torch.autograd.grad(gx.sum(), x, create_graph=True)[0]
gxx
gxx.sum().backward()
x.grad
y.grad
plain = torch.autograd.grad((x * y).sum(), [x, y])
plain[0]
unused = torch.autograd.grad((x * 2).sum(), [x, y], allow_unused=True)
unused[0]
weighted = torch.autograd.grad(x * 2, x, grad_outputs=torch.ones(2))[0]
weighted
x.grad = None
loss = (x * y).sum()
loss.backward(retain_graph=True)
loss.backward()
x.grad
x.grad.zero_()
middle = x * 2
middle.retain_grad()
middle.sum().backward()
middle.grad
seen = []
hooked = x * 3
handle = hooked.register_hook(lambda grad: seen.append(grad) or grad * 2)
hooked.sum().backward()
handle.remove()
seen[0]
x.grad


def inner_step(weight, data, rate=0.1):
    loss = (weight * data).pow(2).sum()
    (grad,) = torch.autograd.grad(loss, weight, create_graph=True)
    return weight - rate * grad


meta = torch.ones(2, requires_grad=True)
fast = meta
for _ in range(2):
    fast = inner_step(fast, torch.tensor([1.0, 2.0]))
fast
fast.sum().backward()
meta.grad
jacobian = torch.autograd.functional.jacobian(lambda t: t * 2, x)
jacobian
