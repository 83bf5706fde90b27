"""Hooks that are put there on a branch, taken away again, or at tensors that a backward may not come by."""

import torch
from torch import nn

x = torch.ones(3, requires_grad=True)
y = torch.ones(3, requires_grad=True)
net = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
some = x.sum().item() > 100  # it is not
seen = None


def keep(gradient):
    global seen
    seen = gradient


def double(module, args, output):
    return output.detach() * 2


# A hook of a tensor that is taken away does not run.
handle = x.register_hook(keep)
handle.remove()
(x * 2).sum().backward()
seen

# One that may be there may run.
if some:
    x.register_hook(keep)
(x * 2).sum().backward()
seen
if some:
    x.register_hook(keep)
else:
    x.retain_grad()
(x * 3).sum().backward()

# One that is there runs only if a backward comes by.
y.register_hook(keep)
product = x * y if some else x * 3
product.sum().backward()
seen
y.grad
(x * y).sum().backward()
seen
y.grad

# Hooks of modules, put there on a branch.
if some:
    handle = net.register_forward_hook(double)
net(x)
if not some:
    handle = net.register_full_backward_hook(lambda module, into, out: None)
net(x)
handle.remove()
net(x)
if some:
    net[0].register_forward_pre_hook(lambda module, args: (args[0].detach(),))
net[0](x)


class Keeper:
    def __init__(self, layers):
        self.handles = [layer.register_forward_hook(self.kept) for layer in layers]
        self.last = None

    def kept(self, module, args, output):
        self.last = output.detach()
        return output * 2

    def remove(self):
        for each in self.handles:
            each.remove()


keeper = Keeper(net)
net(x)
keeper.last
keeper.remove()
net(x)

# A leaf that is frozen between forward and backward gets no gradient; one of two leaves gets it.
first, second = (torch.ones(3, requires_grad=True) for _ in range(2))
either = x * (first if some else second)
either.sum().backward()
first.grad
second.grad
third = torch.ones(3, requires_grad=True)
loss = (x * third).sum()
third.requires_grad = False
loss.backward()
third.grad

# A view that has its graph from its base loses it with the base.
base = torch.ones(3, 3)
view = base[:]
base[1] = y
base.detach_()
view * 2

# Changes of whole lists, by numbers and by tensors.
many = [x * 1, x + 2]
others = [torch.ones(3), y * 3]
torch._foreach_mul_(many, 0.5)
many[0]
torch._foreach_add_(many, others)
many[1]
torch._foreach_mul_(many, [0.5, 0.3])
many[0]
torch._foreach_sin_(many)
many[0]
torch._foreach_mul_(many, others)
many[1]
plain = [torch.ones(3), torch.ones(3)]
torch._foreach_add_(plain, others)
plain[0]
plain[1]
scaled = [x + 0]
torch._foreach_mul_(scaled, 0.5)
scaled[0].sum().backward()
scaled[0].sum().backward()

with torch.autocast("cpu"):
    nn.functional.scaled_dot_product_attention(net(torch.ones(3, 3)), torch.ones(3, 3), torch.ones(3, 3))
