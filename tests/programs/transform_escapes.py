"""What a function transform does to constants made inside it, and to tensors of its own that get out."""

import torch

weight = torch.ones(3, requires_grad=True)
outer = weight * 1
plain = torch.ones(3)

# `.data` of what was made inside is a constant there; outside, it asks as it did
made_inside = torch.func.jacrev(lambda x: x * (weight * 1).data)(plain)
of_a_view = torch.func.jacrev(lambda x: x * weight.real.data)(weight)
from_outside = torch.func.jacrev(lambda x: x * weight.data)(weight)
detached = torch.func.jacrev(lambda x: x * (weight * 1).detach())(weight)
by_grad = torch.func.grad(lambda x: (x * (weight * 1).data).sum())(plain)

# of what is linear the derivative does not come from where it is taken
linear = torch.func.jacrev(lambda x: x * weight.sigmoid())(outer)
nothing = torch.autograd.grad(linear.sum(), outer, allow_unused=True)[0]


class Meter:
    def __init__(self):
        self.last = None
        self.all = []


meter = Meter()


def noting(x):
    meter.last = x * 2
    meter.all.append(outer * 2)
    return (x * outer).sum()


derivative = torch.func.grad(noting)(plain)
last = meter.last
first = meter.all[0]
value, tangent = torch.func.jvp(noting, (plain,), (torch.ones(3),))
again = meter.last * 2
after = outer * 2
