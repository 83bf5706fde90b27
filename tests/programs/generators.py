"""Batches from generators, iterators, zips and chunks."""

import itertools
import random
from typing import Iterator

import torch
from torch import nn


def infinite(loader):
    while True:
        for batch in loader:
            yield batch


def chunks(x, n):
    for i in range(0, len(x), n):
        yield x[i : i + n]


def augment(batches, sigma=0.1):
    for x, y in batches:
        yield x + sigma * torch.randn_like(x), y


class Prefetcher:
    def __init__(self, loader):
        self.loader = iter(loader)
        self.preload()

    def preload(self):
        try:
            self.next_input, self.next_target = next(self.loader)
        except StopIteration:
            self.next_input = None
            self.next_target = None
            return
        self.next_input = self.next_input.float()

    def next(self):
        input = self.next_input
        target = self.next_target
        self.preload()
        return input, target


class SyntheticStream:
    def __init__(self, n):
        self.n = n

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        for _ in range(self.n):
            x = torch.randn(4, 6)
            yield x, x.sum(1, keepdim=True)

    def __len__(self):
        return self.n


class Counter:
    def __init__(self, limit):
        self.limit, self.i = limit, 0

    def __iter__(self):
        self.i = 0
        return self

    def __next__(self):
        if self.i >= self.limit:
            raise StopIteration
        self.i += 1
        return torch.full((2, 6), float(self.i))


model = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.01)
stream = SyntheticStream(3)
for x, y in augment(stream):
    loss = (model(x) - y).abs().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
it = infinite([(torch.randn(4, 6), torch.randn(4, 1)) for _ in range(2)])
for step in range(3):
    x, y = next(it)
    loss = nn.functional.mse_loss(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
fetch = Prefetcher(stream)
inp, tgt = fetch.next()
while inp is not None:
    out = model(inp)
    err = (out - tgt).pow(2).mean()
    err.backward()
    inp, tgt = fetch.next()
for part in chunks(torch.randn(9, 6), 4):
    z = model(part)
outs = [model(c) for c in Counter(2)]
cat = torch.cat(outs)
pairs = zip(stream, itertools.count())
for (x, y), i in pairs:
    w = model(x) * y
for i, (x, y) in zip(range(2), it):
    v = model(x).sum() + y.sum()
zs = list(itertools.islice((model(x) for x, _ in stream), 2))
total = torch.stack([t.mean() for t in zs]).sum()
total.backward()
batches = list(stream)
random.shuffle(batches)
xs, ys = zip(*batches)
X, Y = torch.cat(xs), torch.cat(ys)
acc = 0
for xb, yb in zip(X.split(4), Y.split(4)):
    acc = acc + (model(xb) - yb).pow(2).sum()
(acc / len(X)).backward()
sorted_losses = sorted((model(x).mean().item() for x in xs), reverse=True)
best = min(batches, key=lambda b: (model(b[0]) - b[1]).abs().mean().item())
print(cat.shape, total.item(), acc.item(), sorted_losses[0], best[0].shape)
