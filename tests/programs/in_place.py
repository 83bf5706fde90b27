"""In-place edits: of plain tensors, of results, of leaves where it is allowed, through views and operators."""
import torch
import torch.nn as nn
import torch.nn.functional as F

w = torch.ones(3, requires_grad=True)
plain = torch.zeros(3)
plain.add_(1.0)
plain *= 2
plain[0] = 5.0
total = torch.zeros(3)
total += w
total
filled = torch.zeros(2, 3)
filled[0] = w
filled
filled[1]
h = w * 2
h.mul_(3)
h
h += 1
h.clamp_(max=4.0)
h.sum().backward()
y = w.exp() + 0
F.relu(y, inplace=True)
y
y.masked_fill_(y > 100, 0.0)
y
act = nn.ReLU(inplace=True)
z = act(w - 1)
z
with torch.no_grad():
    w.add_(0.1)
    w -= 0.1 * w.grad
    w.grad.zero_()
w
w.grad
buffer = torch.zeros(3)
with torch.no_grad():
    buffer.copy_(w)
buffer
tracked = torch.zeros(3)
tracked.copy_(w)
tracked
made = torch.zeros(3).requires_grad_()
made
result = w * 1
result.detach_()
result
row = torch.zeros(2, 2)
part = row[0]
part.mul_(2)
row
nn.init.normal_(w)
w
v = torch.zeros(4)
v.scatter_(0, torch.tensor([1]), 2.0)
v.index_add_(0, torch.tensor([0]), w[:1])
v
