"""Sequences of several lengths, packed for a recurrent layer; losses with weights of their own, gradients put together by hand."""

import logging
import random
from collections import Counter, defaultdict, namedtuple
from contextlib import contextmanager
from typing import NamedTuple

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, RandomSampler, TensorDataset

logger = logging.getLogger(__name__)
Losses = namedtuple("Losses", "cls reg total")


class Batch(NamedTuple):
    tokens: torch.Tensor
    lengths: torch.Tensor
    labels: torch.Tensor


class Corpus(Dataset):
    def __init__(self, n=12):
        self.data = [(torch.randint(1, 20, (random.randint(3, 6),)), random.randint(0, 1)) for _ in range(n)]

    def __len__(self):
        return len(self.data)

    def __getitem__(self, i):
        return self.data[i]


class Stream(IterableDataset):
    def __iter__(self):
        for i in range(6):
            yield torch.randn(4), float(i)


def pad_collate(batch):
    tokens, labels = zip(*batch)
    lengths = torch.tensor([len(t) for t in tokens])
    padded = pad_sequence(tokens, batch_first=True, padding_value=0)
    return Batch(padded, lengths, torch.tensor(labels))


class Attention(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.w = nn.Linear(d, 1)

    def forward(self, h, mask):
        scores = self.w(h).squeeze(-1)
        scores = scores.masked_fill(~mask, -1e9)
        alpha = scores.softmax(-1)
        return torch.bmm(alpha.unsqueeze(1), h).squeeze(1), alpha


class Tagger(nn.Module):
    def __init__(self, vocab=20, d=8):
        super().__init__()
        self.emb = nn.Embedding(vocab, d, padding_idx=0)
        self.rnn = nn.LSTM(d, d, batch_first=True, bidirectional=True, num_layers=2, dropout=0.1)
        self.attn = Attention(2 * d)
        self.heads = nn.ModuleDict({"cls": nn.Linear(2 * d, 2), "reg": nn.Linear(2 * d, 1)})
        self.log_vars = nn.Parameter(torch.zeros(2))

    def forward(self, batch: Batch):
        x = self.emb(batch.tokens)
        packed = pack_padded_sequence(x, batch.lengths, batch_first=True, enforce_sorted=False)
        out, (h, c) = self.rnn(packed)
        out, _ = pad_packed_sequence(out, batch_first=True)
        mask = torch.arange(out.size(1))[None, :] < batch.lengths[:, None]
        ctx, alpha = self.attn(out, mask)
        return {name: head(ctx) for name, head in self.heads.items()}, alpha


def compute(model, out, batch):
    cls = F.cross_entropy(out["cls"], batch.labels)
    reg = F.smooth_l1_loss(out["reg"].squeeze(-1), batch.lengths.float())
    total = 0
    for i, l in enumerate((cls, reg)):
        precision = torch.exp(-model.log_vars[i])
        total = total + precision * l + model.log_vars[i]
    return Losses(cls, reg, total)


@contextmanager
def temporarily_eval(model):
    was = model.training
    model.eval()
    try:
        yield model
    finally:
        model.train(was)


def pcgrad(losses, params):
    grads = [torch.autograd.grad(l, params, retain_graph=True) for l in losses]
    flat = [torch.cat([g.reshape(-1) for g in gs]) for gs in grads]
    merged = [f.clone() for f in flat]
    for i, gi in enumerate(merged):
        for j in range(len(flat)):
            if i != j:
                dot = torch.dot(gi, flat[j])
                if dot < 0:
                    gi -= dot * flat[j] / flat[j].norm() ** 2
    g = torch.stack(merged).mean(0)
    offset = 0
    for p in params:
        n = p.numel()
        p.grad = g[offset : offset + n].view_as(p).clone()
        offset += n


def main():
    random.seed(0)
    torch.manual_seed(0)
    model = Tagger()
    loader = DataLoader(Corpus(), batch_size=4, shuffle=True, collate_fn=pad_collate)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
    warm = torch.optim.lr_scheduler.LinearLR(opt, 0.1, total_iters=2)
    counts, sums = Counter(), defaultdict(float)
    for epoch in range(2):
        for batch in loader:
            out, alpha = model(batch)
            losses = compute(model, out, batch)
            opt.zero_grad()
            if epoch == 0:
                losses.total.backward()
            else:
                shared = [p for n, p in model.named_parameters() if "rnn" in n or "emb" in n]
                pcgrad([losses.cls, losses.reg], shared)
            opt.step()
            for name, value in zip(Losses._fields, losses):
                sums[name] += value.item()
                counts[name] += 1
        warm.step()
    with temporarily_eval(model) as m, torch.inference_mode():
        preds = []
        for batch in loader:
            logits, alpha = m(batch)
            preds.extend(logits["cls"].argmax(-1).tolist())
    avg = {k: sums[k] / counts[k] for k in sums}
    print(avg, len(preds), alpha.is_inference(), losses.total.requires_grad)
    stream = DataLoader(Stream(), batch_size=2)
    lin = nn.Linear(4, 1)
    for xb, yb in stream:
        pred = lin(xb)
        err = (pred.squeeze(1) - yb.float()).abs().mean()
        err.backward()
    ds = TensorDataset(torch.randn(6, 4), torch.arange(6))
    sampler = BatchSampler(RandomSampler(ds), 2, drop_last=False)
    for xb, yb in DataLoader(ds, batch_sampler=sampler):
        z = lin(xb).mean() + yb.float().mean()
    x0, y0 = ds[0]
    first = next(iter(loader))
    print(err.item(), z.requires_grad, x0.shape, y0.item(), first.tokens.shape, lin.weight.grad.shape)


main()
