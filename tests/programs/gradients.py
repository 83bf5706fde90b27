"""Gradients: filled, cleared, filled anew, with and without graphs of their own, handed back by hooks."""

import torch, torch.nn as nn, torch.nn.utils.prune
from torch.autograd import grad, Function
w = torch.ones(3, requires_grad=True)
v = torch.ones(3, requires_grad=True)
(w * v).sum().backward()
w.grad
v.grad
w.grad is None
w.grad = torch.zeros(3)
w.grad
(w * v).sum().backward(inputs=[w])
v.grad
nn.Parameter(w.grad)
w.grad.requires_grad_()
w.grad
w.grad = None
loss = (w ** 3).sum()
loss.backward(create_graph=True)
w.grad
w.grad.sum().backward()
w.grad
w.grad = None
a = w.clone()
a.retain_grad()
b = a * 2
b.sum().backward()
a.grad
b.grad
g = grad((w * v).sum(), [w, v])
g[0]
g = grad((w * v).sum(), (w,), create_graph=True)
g[0]
g = grad((w ** 2).sum(), w, create_graph=True)[0]
grad(g.sum(), w)[0]
g2 = grad((w * 3).sum(), w, create_graph=True)[0]
g2
grad([w.sum(), v.sum()], [w, v], grad_outputs=[None, None])
grad(w * v, w, grad_outputs=torch.ones(3))
grad(w * v, w, torch.ones(3), is_grads_batched=False)
j = torch.stack([grad((w * v)[i], w, retain_graph=True)[0] for i in range(3)])
j
with torch.no_grad():
    x = grad if False else w * 2
x
c = (w * v).sum()
c.backward(retain_graph=True)
c.backward()
w.grad
w.grad.zero_()
w.grad
opt = torch.optim.SGD([w], lr=0.1)
opt.zero_grad()
w.grad
opt.zero_grad(set_to_none=False)
w.grad
(w * 2).sum().backward()
opt.step()
w.grad
w
opt.zero_grad(False)
w.grad
for p in (w, v):
    if p.grad is not None:
        p.grad.detach_()
        p.grad.zero_()
    p.grad
def closure():
    opt.zero_grad()
    l = (w ** 2).sum()
    l.backward()
    return l
opt.step(closure)
w.grad
torch.autograd.backward([w.sum(), v.sum()])
v.grad
torch.autograd.backward((w * v), torch.ones(3))
h = w.register_hook(lambda g: g * 2)
w.sum().backward()
w.grad
h.remove()
k = []
w.register_post_accumulate_grad_hook(lambda p: k.append(p.grad.clone()))
w.sum().backward()
k[0]
n = nn.Linear(3, 3)
n.zero_grad()
n(w).sum().backward()
n.weight.grad
nn.utils.clip_grad_norm_(n.parameters(), 1.)
torch.nn.utils.get_total_norm([p.grad for p in n.parameters()])
sum(p.grad.norm() ** 2 for p in n.parameters())
gs = [p.grad for p in n.parameters() if p.grad is not None]
gs[0]
flat = torch.cat([q.view(-1) for q in gs])
flat
for p, q in zip(n.parameters(), gs):
    p.grad = q.clone() * 0.5
n.weight.grad
with torch.no_grad():
    for p in n.parameters():
        p -= 0.1 * p.grad
        p.add_(p.grad, alpha=-0.1)
n.weight
n.weight.grad = None
n.weight.grad
acc = {k_: torch.zeros_like(p) for k_, p in n.named_parameters()}
for k_, p in n.named_parameters():
    acc[k_] += p.detach()
acc['weight']
fisher = {k_: p.grad.data.clone().pow(2) if p.grad is not None else torch.zeros_like(p) for k_, p in n.named_parameters()}
fisher['bias']
ewc = sum((fisher[k_] * (p - acc[k_]) ** 2).sum() for k_, p in n.named_parameters())
ewc
per = []
for i in range(2):
    n.zero_grad()
    n(torch.randn(3)).sum().backward()
    per.append([p.grad.clone() for p in n.parameters()])
per[0][0]
torch.stack([p_[0] for p_ in per]).mean(0)
y = w * 2
y.register_hook(lambda g: None)
y.sum().backward()
with torch.enable_grad():
    with torch.no_grad():
        z = w * 2
    q_ = w * 2
z
q_
def f(x):
    x.requires_grad_(True)
    with torch.enable_grad():
        return grad(x.sum(), x)[0]
f(torch.ones(3))
u = torch.ones(3)
f(u)
u
r = (w.detach() * v.detach()).requires_grad_()
(r * 2).sum().backward()
r.grad


# A transform of what may be None; a state that is loaded is written.
perhaps = dict(zip("ab", [q for q in [torch.ones(3), torch.zeros(3)] if q.sum() < 10]))
torch.func.grad_and_value(lambda x, y: (x * y).sum())(perhaps.get("b"), w * 2)[0] * 1
base = torch.ones(3, 3)
layer = nn.Linear(3, 3)
layer.weight = nn.Parameter(base.detach())
turned = base[0].unsqueeze(0).expand(3, 3)
layer.load_state_dict({name: value.clone() for name, value in layer.state_dict().items()})
base.requires_grad_()
turned
pruned = torch.nn.utils.prune.l1_unstructured(nn.Linear(3, 3), "weight", 0.3)
pruned.weight
pruned(torch.ones(3))
