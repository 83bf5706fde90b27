"""Optimizers: groups, closures, gradients that come and go, averages of weights, freezing on the way."""
import copy

import torch
from torch import nn

torch.manual_seed(0)
body, head = nn.Linear(3, 3), nn.Linear(3, 1)
optimizer = torch.optim.AdamW([{"params": body.parameters(), "lr": 1e-3}, {"params": head.parameters()}], lr=1e-2)
body.weight.grad
head(body(torch.ones(2, 3))).mean().backward()
body.weight.grad
optimizer.step()
optimizer.zero_grad()
body.weight.grad
optimizer.zero_grad(set_to_none=False)
target = copy.deepcopy(body)
for parameter in target.parameters():
    parameter.requires_grad_(False)
for step in range(2):
    out = head(body(torch.ones(2, 3)))
    wanted = head(target(torch.ones(2, 3))).detach()
    loss = (out - wanted).pow(2).mean()
    optimizer.zero_grad(set_to_none=False)
    loss.backward()
    with torch.no_grad():
        for old, new in zip(target.parameters(), body.parameters()):
            old.mul_(0.9).add_(new, alpha=0.1)
            new.grad
    optimizer.step()
target.weight
for group in optimizer.param_groups:
    group["lr"] *= 0.5
    for parameter in group["params"]:
        parameter
lbfgs = torch.optim.LBFGS(body.parameters(), max_iter=2)


def closure():
    lbfgs.zero_grad()
    loss = body(torch.ones(1, 3)).pow(2).sum()
    loss.backward()
    return loss


lbfgs.step(closure)
x = torch.zeros(3, requires_grad=True)
adam = torch.optim.Adam([x], lr=0.1)
for _ in range(2):
    adam.zero_grad()
    distance = (x - 1).pow(2).sum()
    distance.backward()
    adam.step()
    x.data.clamp_(0, 1)
    x
x.grad
for parameter in body.parameters():
    parameter.data = parameter.data.clone()
    parameter.grad = None
body.weight
body.weight.grad
manual = torch.ones(2, requires_grad=True)
for _ in range(2):
    (manual * 2).sum().backward()
    with torch.no_grad():
        manual -= 0.1 * manual.grad
    manual.grad = None
manual
retained = torch.ones(3, requires_grad=True) * 2
retained.retain_grad()
torch.optim.SGD([retained], lr=0.1)
retained
