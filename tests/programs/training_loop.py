"""A training loop with validation, running averages and the best weights kept."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self, wide=8):
        super().__init__()
        self.first = nn.Linear(4, wide)
        self.second = nn.Linear(wide, 3)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        h = F.relu(self.first(x))
        return self.second(self.drop(h))


def evaluate(model, batches):
    model.eval()
    right = total = 0
    with torch.no_grad():
        for x, y in batches:
            logits = model(x)
            right += (logits.argmax(1) == y).sum().item()
            total += len(y)
    model.train()
    return right / total


torch.manual_seed(0)
batches = [(torch.randn(5, 4), torch.randint(0, 3, (5,))) for _ in range(3)]
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
best, best_state, history = 0.0, None, []
for epoch in range(2):
    running = 0.0
    for x, y in batches:
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        running += loss.item()
        history.append(loss.detach())
    scheduler.step()
    score = evaluate(model, batches)
    if score >= best:
        best, best_state = score, copy.deepcopy(model.state_dict())
mean = torch.stack(history).mean()
if best_state is not None:
    model.load_state_dict(best_state)
weight = model.first.weight
bias = best_state["first.bias"]
