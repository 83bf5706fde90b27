"""The ways out of the graph: detach, data, item, tolist, numpy, no_grad, integers, comparisons, re-wraps."""
import copy

import numpy as np
import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
h = w * 2
h.detach()
h.data
h.detach().clone()
h.clone().detach()
h.detach().requires_grad_()
h.argmax()
h > 1
h == h
h.long()
h.round()
h.sign()
(h > 1).float()
(h > 1).float() * h
torch.where(h > 1, h, torch.zeros_like(h))
torch.tensor(h.tolist())
torch.tensor([h[0].item(), 2.0], requires_grad=True)
torch.tensor(float(h.sum()))
torch.tensor(h.detach().numpy())
torch.from_numpy(np.ones(2))
torch.as_tensor(h)
torch.zeros_like(h)
torch.zeros_like(h, requires_grad=True)
torch.empty_like(w)
torch.rand_like(h)
h.new_zeros(2)
h.new_tensor([1.0, 2.0])
torch.full_like(h, 3.0)
torch.nn.Parameter(h.detach())
torch.nn.Parameter(h.detach(), requires_grad=False)
copy.deepcopy(w)
copy.copy(w)
w.detach().numpy().sum()
h.sum().item() * w
h.shape[0] * w
w.size(0)
h.isnan()
h.max(dim=0).indices
h.max(dim=0).values
h.bernoulli() if False else torch.bernoulli(h.sigmoid())
torch.multinomial(h.sigmoid(), 1)
torch.cat([h, h.detach()])
torch.stack([h.detach(), w.data])
h.half()
h.to(torch.int64)
h.to(torch.float64)
straight = h + (h.round() - h).detach()
straight
with torch.no_grad():
    stopped = h * w
stopped
stopped * w
if h.requires_grad:
    h = h.detach()
h
h = w * 3 if h.requires_grad else h
h
