"""Layers that extend those of torch, put in the place of others; adapters, and what of all that trains."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class LoRALinear(nn.Linear):
    def __init__(self, in_features, out_features, r=2, alpha=4, merge=True, **kwargs):
        nn.Linear.__init__(self, in_features, out_features, **kwargs)
        self.r = r
        self.merged = False
        if r > 0:
            self.lora_A = nn.Parameter(self.weight.new_zeros((r, in_features)))
            self.lora_B = nn.Parameter(self.weight.new_zeros((out_features, r)))
            self.scaling = alpha / r
            self.weight.requires_grad = False
        self.reset_parameters()

    def reset_parameters(self):
        nn.Linear.reset_parameters(self)
        if hasattr(self, "lora_A"):
            nn.init.kaiming_uniform_(self.lora_A, a=5 ** 0.5)
            nn.init.zeros_(self.lora_B)

    def train(self, mode=True):
        nn.Linear.train(self, mode)
        if mode:
            if self.merged:
                self.weight.data -= (self.lora_B @ self.lora_A) * self.scaling
                self.merged = False
        elif not self.merged:
            self.weight.data += (self.lora_B @ self.lora_A) * self.scaling
            self.merged = True
        return self

    def forward(self, x):
        if self.r > 0 and not self.merged:
            result = F.linear(x, self.weight, bias=self.bias)
            result += (x @ self.lora_A.t() @ self.lora_B.t()) * self.scaling
            return result
        return F.linear(x, self.weight, bias=self.bias)


def mark_only_lora_as_trainable(model, bias="none"):
    for n, p in model.named_parameters():
        if "lora_" not in n:
            p.requires_grad = False
    if bias == "none":
        return
    for m in model.modules():
        if isinstance(m, LoRALinear) and m.bias is not None:
            m.bias.requires_grad = True


def lora_state_dict(model):
    my = model.state_dict()
    return {k: my[k] for k in my if "lora_" in k}


class Adapter(nn.Module):
    def __init__(self, d, r=2):
        super().__init__()
        self.down = nn.Linear(d, r)
        self.up = nn.Linear(r, d)
        nn.init.zeros_(self.up.weight)
        nn.init.zeros_(self.up.bias)
        self.gate = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return x + torch.tanh(self.gate) * self.up(F.relu(self.down(x)))


def replace_linear(module):
    for name, child in module.named_children():
        if isinstance(child, nn.Linear) and not isinstance(child, LoRALinear):
            new = LoRALinear(child.in_features, child.out_features, bias=child.bias is not None)
            new.weight.data = child.weight.data
            setattr(module, name, new)
        else:
            replace_linear(child)


base = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Sequential(nn.Linear(8, 8), Adapter(8)), nn.Linear(8, 2))
replace_linear(base)
mark_only_lora_as_trainable(base, bias="lora_only")
for m in base.modules():
    if isinstance(m, Adapter):
        for p in m.parameters():
            p.requires_grad_(True)
trainable = [p for p in base.parameters() if p.requires_grad]
opt = torch.optim.AdamW(trainable, lr=1e-2)
frozen_before = {n: p.clone() for n, p in base.named_parameters() if not p.requires_grad}
for _ in range(3):
    x = torch.randn(4, 6)
    loss = base(x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
base.eval()
y = base(torch.randn(1, 6))
base.train()
print(loss.item(), sorted(lora_state_dict(base)), y.requires_grad)
for n, before in frozen_before.items():
    assert torch.allclose(before, dict(base.named_parameters())[n], atol=1e-5), n

perhaps_replaced = nn.Linear(3, 3)
perhaps_replaced.weight.requires_grad = False
if torch.rand(3).sum() < 0:
    perhaps_replaced.weight = nn.Parameter(torch.ones(3, 3))
held = list(perhaps_replaced.parameters())
held[0].sum()
held[1].sum()
perhaps_replaced.bias.data.fill_(0)
perhaps_replaced(torch.ones(2, 3)).sum()
