"""Optimizers of one's own and of torch, by their groups of parameters and what they remember."""

import math

import torch
from torch import nn
from torch.optim import Optimizer


class SGDW(Optimizer):
    def __init__(self, params, lr=0.01, momentum=0.9, weight_decay=0.0):
        defaults = dict(lr=lr, momentum=momentum, weight_decay=weight_decay)
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                d_p = p.grad
                state = self.state[p]
                if group["weight_decay"] != 0:
                    d_p = d_p.add(p, alpha=group["weight_decay"])
                if "momentum_buffer" not in state:
                    buf = state["momentum_buffer"] = torch.clone(d_p).detach()
                else:
                    buf = state["momentum_buffer"]
                    buf.mul_(group["momentum"]).add_(d_p)
                p.add_(buf, alpha=-group["lr"])
        return loss


class OldAdam(Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps))

    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                grad = p.grad.data
                state = self.state[p]
                if len(state) == 0:
                    state["step"] = 0
                    state["exp_avg"] = torch.zeros_like(p.data)
                    state["exp_avg_sq"] = torch.zeros_like(p.data)
                exp_avg, exp_avg_sq = state["exp_avg"], state["exp_avg_sq"]
                beta1, beta2 = group["betas"]
                state["step"] += 1
                exp_avg.mul_(beta1).add_(grad, alpha=1 - beta1)
                exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
                denom = exp_avg_sq.sqrt().add_(group["eps"])
                step_size = group["lr"] * math.sqrt(1 - beta2 ** state["step"]) / (1 - beta1 ** state["step"])
                p.data.addcdiv_(exp_avg, denom, value=-step_size)


class SAM(Optimizer):
    def __init__(self, params, base_optimizer, rho=0.05, **kwargs):
        defaults = dict(rho=rho, **kwargs)
        super().__init__(params, defaults)
        self.base_optimizer = base_optimizer(self.param_groups, **kwargs)
        self.param_groups = self.base_optimizer.param_groups

    @torch.no_grad()
    def first_step(self, zero_grad=False):
        grad_norm = self._grad_norm()
        for group in self.param_groups:
            scale = group["rho"] / (grad_norm + 1e-12)
            for p in group["params"]:
                if p.grad is None:
                    continue
                self.state[p]["old_p"] = p.data.clone()
                e_w = p.grad * scale.to(p)
                p.add_(e_w)
        if zero_grad:
            self.zero_grad()

    @torch.no_grad()
    def second_step(self, zero_grad=False):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.data = self.state[p]["old_p"]
        self.base_optimizer.step()
        if zero_grad:
            self.zero_grad()

    def _grad_norm(self):
        shared_device = self.param_groups[0]["params"][0].device
        return torch.norm(torch.stack([p.grad.norm(p=2).to(shared_device) for group in self.param_groups for p in group["params"] if p.grad is not None]), p=2)


net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
x, y = torch.randn(16, 4), torch.randint(0, 2, (16,))
criterion = nn.CrossEntropyLoss()
for opt in (SGDW(net.parameters(), weight_decay=1e-2), OldAdam(net.parameters())):
    for _ in range(2):
        opt.zero_grad()
        loss = criterion(net(x), y)
        loss.backward()
        opt.step()
sam = SAM(net.parameters(), torch.optim.SGD, lr=0.1)
for _ in range(2):
    criterion(net(x), y).backward()
    sam.first_step(zero_grad=True)
    criterion(net(x), y).backward()
    sam.second_step(zero_grad=True)

optimizer = torch.optim.Adam([{"params": net[0].parameters(), "lr": 1e-3}, {"params": net[2].parameters()}], lr=1e-2)
for epoch in range(2):
    optimizer.zero_grad()
    out = net(x)
    loss = criterion(out, y)
    loss.backward()
    total_norm = 0.0
    for group in optimizer.param_groups:
        for p in group["params"]:
            if p.grad is not None:
                param_norm = p.grad.data.norm(2)
                total_norm += param_norm.item() ** 2
                p.grad.mul_(0.5)
    total_norm = total_norm ** 0.5
    optimizer.step()
    for group in optimizer.param_groups:
        group["lr"] *= 0.9
    all_params = [p for g in optimizer.param_groups for p in g["params"]]
    flat = torch.cat([p.grad.view(-1) for p in all_params])
    vec = nn.utils.parameters_to_vector(net.parameters())
    print(total_norm, flat.norm().item(), vec.shape)

lbfgs = torch.optim.LBFGS(net.parameters(), lr=0.1, max_iter=3)


def closure():
    lbfgs.zero_grad()
    output = net(x)
    loss = criterion(output, y)
    loss.backward()
    return loss


final = lbfgs.step(closure)
print(final)
for p in net.parameters():
    state = lbfgs.state[p]
