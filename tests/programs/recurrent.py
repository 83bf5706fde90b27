"""Recurrent layers and cells: states that are carried on, and cut on the way."""
import torch
from torch import nn


def cut(state):
    if isinstance(state, torch.Tensor):
        return state.detach()
    return tuple(cut(part) for part in state)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, 6)
        self.lstm = nn.LSTM(6, 5, batch_first=True)
        self.head = nn.Linear(5, 2)

    def forward(self, tokens, state=None):
        out, state = self.lstm(self.embed(tokens), state)
        return self.head(out), state


torch.manual_seed(0)
tagger = Tagger()
optimizer = torch.optim.Adam(tagger.parameters())
state = None
for _ in range(3):
    tokens = torch.randint(0, 10, (2, 4))
    if state is not None:
        state = cut(state)
    out, state = tagger(tokens, state)
    loss = out.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
h, c = state
first = h[0]

cell = nn.GRUCell(3, 4)
hidden = torch.zeros(2, 4)
outputs = []
for step in range(3):
    hidden = cell(torch.randn(2, 3), hidden)
    outputs.append(hidden)
stacked = torch.stack(outputs)
stacked.sum().backward()

gru = nn.GRU(3, 4, bidirectional=True)
sequence, last = gru(torch.randn(5, 2, 3))
both = torch.cat([last[0], last[1]], dim=-1)
with torch.no_grad():
    quiet, quiet_last = gru(torch.randn(5, 2, 3))
quiet[-1]
