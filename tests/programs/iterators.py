"""What itertools gives, and generators whose body goes on when tensors were handed out."""

import itertools

import torch

w = torch.ones(3, requires_grad=True)
for tt in itertools.accumulate([w, w.detach()], torch.add):
    tt
for t1, t2 in itertools.product([w], [w.detach(), w * 2]):
    t1
    t2
for t1, t2 in itertools.zip_longest([w], [w.detach(), w * 2]):
    t1
    t2
x1, x2 = itertools.tee([w * 2])
next(x1)
for t3, t4 in itertools.combinations([w, w.detach(), w * 2], 2):
    t3
    t4
for i, t5 in zip(itertools.count(), [w, w.detach()]):
    t5
for k_, grp in itertools.groupby([w, w], key=lambda t: t.requires_grad):
    for t6 in grp:
        t6
for t7 in itertools.starmap(lambda a, b: a * b, [(w, w), (w, w.detach())]):
    t7
for t8 in itertools.takewhile(lambda t: True, [w, w.detach()]):
    t8
for t9, t10 in itertools.pairwise([w, w.detach(), w]):
    t9
    t10
for t11 in itertools.cycle([w]):
    t11
    break
for t12 in reversed([w, w.detach()]):
    t12

held = torch.zeros(3)


def edits():
    yield held
    held.add_(w)
    yield held * 2


[x * 1 for x in edits()]
held
