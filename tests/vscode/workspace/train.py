"""Fits a small network to a noisy line, with weights that decay and a report at the end."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.hidden = nn.Linear(1, width)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        return self.out(torch.relu(self.hidden(x)))


def fit(model, batches, epochs=3, decay=1e-4):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    total = 0.0
    for _ in range(epochs):
        for x, y in batches:
            loss = (model(x) - y).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss
        for weight in model.parameters():
            weight.data.mul_(1 - decay)
    return total


def evaluate(model, batches):
    model.eval()
    worst = 0.0
    for x, y in batches:
        error = (model(x) - y).abs().max().item()
        worst = max(worst, error)
    return worst


x = torch.linspace(-1, 1, 64).unsqueeze(1)
batches = [(x, 2 * x + 0.1 * torch.randn_like(x)) for _ in range(10)]
model = Net()
fit(model, batches)
before = model.hidden.weight.detach()
before.mul_(0.5)
print(evaluate(model, batches))
